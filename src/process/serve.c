#include "process/serve.h"

#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "admin.h"
#include "process/admin_port.h"
#include "process/listening.h"
#include "process/peers.h"
#include "process/sandbox.h"
#include "process/start.h"
#include "protocol/dialect.h"
#include "upstream/names.h"
#include "upstream/news.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/linux.h"
#include "util/log.h"
#include "util/version.h"
#include "worker/balance.h"
#include "worker/daemon.h"
#include "worker/worker.h"

static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
enum { SIGNALS = sizeof(signals) / sizeof(signals[0]), NEWS = SIGNALS, LOG_TIME, LEAVE, EVENTS };

struct process {
	struct daemon daemon;
	const struct options *options;
	struct event_base *base;
	struct event *events[EVENTS];
	struct listening *listening;
	struct listener *control_listener; /* Listener of the operators' private socket; or NULL. */
	struct peers *control;             /* Operators; or NULL. */
	struct admin_port *admin;
	/* Number of workers that use the new settings, and number of workers that have stopped. */
	size_t tried, exited;
	/* Workers are switching to the settings, at the start or after a reload. */
	bool settling;
	bool again;  /* A reload was requested meanwhile. */
	bool closed; /* No client is accepted any more. */
};

/*
 * Time for which connections to another process may still arrive here while they are being
 * established.
 */
enum { LEAVE_MS = 100 };

/* --- messages to a supervisor --- */

/*
 * Sends a datagram of sd_notify(3) to the socket in NOTIFY_SOCKET, if that is set. A name that
 * begins with @ is in the abstract namespace.
 */
static void notify_systemd(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t n = path ? strlen(path) : 0;
	int fd;

	if (n < 2 || n >= sizeof(to.sun_path))
		return;
	memcpy(to.sun_path, path, n);
	if (to.sun_path[0] == '@')
		to.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)!sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&to,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
	close(fd);
}

static void notify_reloading(void)
{
	char text[64];

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
		clock_us(CLOCK_MONOTONIC));
	notify_systemd(text);
}

/* --- workers --- */

static void send_all(struct process *p, enum mail_kind kind)
{
	for (size_t i = 0; i < p->daemon.threads; i++)
		worker_send(p->daemon.workers[i], (struct mail){ kind, -1, NULL });
}

static void start_workers(struct process *p)
{
	struct daemon *d = &p->daemon;
	uint64_t seed;

	p->settling = true;
	d->balances = xcalloc(d->threads, sizeof(*d->balances));
	d->workers = xcalloc(d->threads, sizeof(struct worker *));
	d->meters = xcalloc(d->threads, sizeof(struct meter *));
	for (size_t i = 0; i < d->threads; i++) {
		if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
			abort();
		d->workers[i] = worker_start(d, i, seed);
		d->meters[i] = &d->workers[i]->meter;
	}
}

static void join_workers(struct process *p)
{
	for (size_t i = 0; i < p->daemon.threads; i++)
		worker_join(p->daemon.workers[i]);
	free(p->daemon.workers);
	free(p->daemon.meters);
	free(p->daemon.balances);
}

/* --- the configuration --- */

/* Returns new settings that can be used, or NULL. */
static struct settings *reread_settings(struct process *p)
{
	struct settings *s = settings_read(p->options, p->daemon.servers.names, true);
	struct buf errors = BUF_EMPTY;

	if (!s)
		return NULL;
	settings_keep_fixed(s, p->daemon.settings);
	if (start_fit_descriptors(&s->config, settings_servers(s), &errors) &&
		admin_port_prepare(p->admin, &s->config, &errors) &&
		listening_prepare(p->listening, &s->config, &errors))
		return s;
	admin_port_undo(p->admin);
	settings_complain(p->options->file, &errors, true);
	settings_release(s);
	return NULL;
}

/* Logs the names of the options that have changed. */
static void log_changes(const struct settings *old, const struct settings *new)
{
	struct buf names = BUF_EMPTY;

	for (const struct config_option *o = config_options; o->name; o++) {
		if (!config_same(&old->config, &new->config, o))
			buf_printf(&names, "%s%s", buf_size(&names) ? ", " : "", o->name);
	}
	if (!rules_same(&old->config.rules, &new->config.rules))
		buf_printf(&names, "%srules", buf_size(&names) ? ", " : "");
	BUF_ADD(&names, "\0");
	log_notice(
		"reloading: changed: %s", *buf_slice(&names).p ? buf_slice(&names).p : "no option");
	buf_free(&names);
}

static void watch_names(struct process *p, const struct settings *s)
{
	names_set_interval(p->daemon.servers.names, s->config.dns_interval);
	settings_watch(s, true);
}

static void reload_settings(struct process *p)
{
	struct settings *s;

	p->again = p->settling;
	if (p->settling || p->daemon.stopping)
		return;
	notify_reloading();
	s = reread_settings(p);
	if (!s) {
		log_error("the new configuration was refused; the old one stays in effect");
		peers_answer_all(p->control,
			SLICE("ERROR refused, the old configuration stays in effect; see the "
			      "log\r\n"));
		notify_systemd("READY=1");
		return;
	}
	log_changes(p->daemon.settings, s);
	settings_watch(p->daemon.settings, false);
	settings_release(p->daemon.settings);
	watch_names(p, s);
	p->daemon.settings = s;
	log_set_verbose(s->config.verbose);
	log_open(s->config.log == LOG_TO_SYSLOG);
	p->settling = true;
	p->tried = 0;
	send_all(p, WORKER_RELOAD);
}

/* Runs in the thread of the worker that accepts. */
static void serve_commit_listeners(void *arg)
{
	struct process *p = arg;

	listening_commit(p->listening, p->daemon.settings, p->daemon.workers[0]);
}

static void set_listens(struct process *p)
{
	struct buf places = BUF_EMPTY;

	config_texts(&p->daemon.settings->config, config_option("listen"), &places);
	/* Each text is followed by a zero byte; the last one is kept. There may be no text. */
	for (size_t i = 0; i + 1 < buf_size(&places); i++)
		places.data[i] = places.data[i] ? places.data[i] : ' ';
	free(p->daemon.listens);
	BUF_ADD(&places, "\0");
	p->daemon.listens = xstrdup(
		listening_is_inherited(p->listening) ? "inherited sockets" : buf_slice(&places).p);
	buf_free(&places);
}

static void log_moves(const struct settings *s)
{
	if (s->former)
		log_notice("keys %s %s from ring %016" PRIx64 " of %d servers",
			(int64_t)time(NULL) < s->move_at ? "will move at"
							 : "have been moving since",
			s->config.move_at, s->former_hash, ring_count(s->former));
}

/*
 * Called when each worker has tried to connect to all servers. So the abilities of the servers
 * are known before the first request, and a listener is closed only when its replacement is
 * open.
 */
static void finish_settling(struct process *p)
{
	bool reloaded = p->daemon.serving;

	p->settling = false;
	p->daemon.serving = true;
	if (p->daemon.stopping)
		return;
	worker_call(p->daemon.workers[0], serve_commit_listeners, p);
	set_listens(p);
	admin_port_commit(p->admin);
	log_notice("%s: ring %016" PRIx64 " of %d servers", reloaded ? "reloaded" : "ready",
		p->daemon.settings->ring_hash, ring_count(p->daemon.settings->ring));
	log_moves(p->daemon.settings);
	notify_systemd("READY=1");
	if (reloaded && !p->again)
		peers_answer_all(p->control, SLICE("OK\r\n"));
	if (p->again)
		reload_settings(p);
}

static void serve_on_news(evutil_socket_t fd, short what, void *arg)
{
	struct process *p = arg;
	char news[128];
	ssize_t n = read((int)fd, news, sizeof(news));

	(void)what;
	for (ssize_t i = 0; i < n; i++) {
		p->tried += news[i] == DAEMON_TRIED;
		p->exited += news[i] == DAEMON_EXITED;
		if (news[i] == DAEMON_TRIED && p->tried == p->daemon.threads)
			finish_settling(p);
	}
	if (p->exited == p->daemon.threads)
		event_base_loopbreak(p->base);
}

/* --- the control socket --- */

enum { COMMAND_MAX = 256 };

static size_t serve_on_command(void *arg, struct peer *peer, struct slice in)
{
	struct slice line;
	size_t n;

	if (!dialect_line(in, &line, &n)) {
		if (in.n < COMMAND_MAX)
			return 0;
		peers_answer(peer, SLICE("ERROR a command has at most 256 bytes\r\n"), true);
		return in.n;
	}
	if (slice_equal(line, SLICE("reload")))
		reload_settings(arg);
	else
		peers_answer(peer, SLICE("ERROR unknown command; the only command is: reload\r\n"),
			false);
	return n;
}

static bool open_control(struct process *p, const struct config *config, struct buf *errors)
{
	static const struct peers_kind kind = { .name = "control",
		.most = 16,
		.size = COMMAND_MAX,
		.seconds = 60,
		.request = serve_on_command };
	struct listener_place place = { .host = config->control, .mode = 0600 };
	char why[256];

	if (!*config->control)
		return true;
	p->control = peers_create(p->base, &kind, p);
	p->control_listener = listener_create(&place, why);
	if (!p->control_listener)
		return config_fault(
			config, config_line(config, "control"), errors, "control: %s", why);
	listener_start(p->control_listener, p->base, PEERS_ACCEPT, peers_take, p->control);
	return true;
}

/* --- signals --- */

/*
 * Runs in the thread of the worker that accepts. The other workers get the message after their
 * last new client. This one drains when it reads its message, which is before a refused client
 * could send it anything.
 */
static void serve_close_and_drain(void *arg)
{
	static const struct mail drain = { WORKER_DRAIN, -1, NULL };
	struct process *p = arg;

	worker_send(p->daemon.workers[0], drain);
	listening_close(p->listening);
	for (size_t i = 1; i < p->daemon.threads; i++)
		worker_send(p->daemon.workers[i], drain);
}

static void begin_leaving(struct process *p)
{
	if (!p->closed)
		worker_call(p->daemon.workers[0], serve_close_and_drain, p);
	p->closed = true;
}

static void serve_on_left(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	begin_leaving(arg);
}

/*
 * The first signal stops accepting, and requests in progress are finished; the second one
 * cancels them.
 */
static void stop_workers(struct process *p)
{
	static const struct timeval pause = { 0, LEAVE_MS * 1000 };
	bool aside;

	if (p->daemon.stopping) {
		begin_leaving(p);
		send_all(p, WORKER_STOP);
		return;
	}
	p->daemon.stopping = true;
	/*
	 * This must be first: a client that connects after the notice must reach the new
	 * process.
	 */
	aside = listening_step_aside(p->listening);
	notify_systemd("STOPPING=1");
	if (aside)
		event_add(p->events[LEAVE], &pause);
	else
		begin_leaving(p);
}

static void serve_on_signal(evutil_socket_t number, short what, void *arg)
{
	struct process *p = arg;

	(void)what;
	if (number == SIGHUP) {
		log_info("signal %d: reloading the configuration", (int)number);
		reload_settings(p);
	} else {
		log_notice("signal %d: %s", (int)number,
			p->daemon.stopping ? "dropping requests in progress"
					   : "draining: refusing new clients, completing requests "
					     "in progress");
		stop_workers(p);
	}
}

/*
 * Once its event is freed, a signal has its default action again, so a signal during the last
 * steps of a regular exit would look like a kill.
 */
static void block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (int i = 0; i < SIGNALS; i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

/* --- the log --- */

static void serve_on_log_time(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	log_summarize(false);
}

/* --- the start --- */

static bool open_all(struct process *p)
{
	const struct config *config = &p->daemon.settings->config;
	struct buf errors = BUF_EMPTY;

	/*
	 * The HTTP port and the control socket are opened before the ports of clients. If one
	 * of them fails, no client has connected yet; if both succeed, they are open as soon as
	 * clients can connect.
	 */
	if (admin_port_prepare(p->admin, config, &errors) && open_control(p, config, &errors) &&
		listening_inherit(p->listening, &errors) &&
		listening_prepare(p->listening, config, &errors) &&
		start_switch_user(config, &errors))
		return true;
	settings_complain(p->options->file, &errors, false);
	return false;
}

static void log_start(const struct process *p, const struct settings *settings)
{
	log_notice("setlistd %s started: listening on %s, servers: %d, configuration: %s",
		setlistd_version, p->daemon.listens, ring_count(settings->ring),
		p->options->file ? p->options->file : "the command line");
}

static void init(struct process *p, int pipes[2])
{
	static const struct timeval interval = { LOG_SECONDS, 0 };

	p->base = event_base_new();
	if (!p->base || pipe(pipes) < 0)
		abort();
	p->admin = admin_port_create(p->base, &p->daemon);
	p->listening = listening_create();
	p->daemon.news = pipes[1];
	pthread_mutex_init(&p->daemon.lock, NULL);
	p->daemon.large = xcalloc(1, sizeof(*p->daemon.large));
	p->daemon.servers.fresh = xcalloc(1, sizeof(*p->daemon.servers.fresh));
	if (getrandom(&p->daemon.servers.fresh->seed, sizeof(p->daemon.servers.fresh->seed), 0) < 0)
		abort();
	p->daemon.board = xcalloc(1, sizeof(*p->daemon.board));
	p->daemon.servers.news = news_create();
	p->daemon.descriptors = opendir(LINUX_DESCRIPTORS);
	signal(SIGPIPE, SIG_IGN);
	p->events[NEWS] = event_new(p->base, pipes[0], EV_READ | EV_PERSIST, serve_on_news, p);
	p->events[LOG_TIME] = event_new(p->base, -1, EV_PERSIST, serve_on_log_time, NULL);
	p->events[LEAVE] = evtimer_new(p->base, serve_on_left, p);
	/*
	 * Before the sockets are opened: a signal may arrive as soon as the first one exists,
	 * and its default action kills the process.
	 */
	for (int i = 0; i < SIGNALS; i++)
		p->events[i] = evsignal_new(p->base, signals[i], serve_on_signal, p);
	for (int i = 0; i <= NEWS; i++)
		event_add(p->events[i], NULL);
	event_add(p->events[LOG_TIME], &interval);
}

int serve(const struct options *options, struct settings *settings, struct names *names)
{
	struct process p = {
		.daemon = { .settings = settings,
			.threads = settings->config.threads,
			.started = time(NULL),
			.servers = { .names = names },
			.command = admin_answer },
		.options = options,
	};
	int status = 1, pipes[2];
	struct buf errors = BUF_EMPTY;

	if (!start_fit_descriptors(&settings->config, settings_servers(settings), &errors)) {
		settings_complain(options->file, &errors, false);
		settings_release(settings);
		return 1;
	}
	init(&p, pipes);
	if (open_all(&p)) {
		set_listens(&p);
		log_start(&p, settings);
		if (settings->config.sandbox)
			sandbox_enter();
		start_workers(&p);
		watch_names(&p, settings);
		admin_port_commit(p.admin);
		event_base_dispatch(p.base);
		join_workers(&p);
		log_notice("stopped");
		status = 0;
	}
	block_signals();
	listening_destroy(p.listening);
	listener_destroy(p.control_listener);
	peers_destroy(p.control);
	admin_port_destroy(p.admin);
	for (int i = 0; i < EVENTS; i++)
		event_free(p.events[i]);
	close(pipes[0]);
	close(pipes[1]);
	pthread_mutex_destroy(&p.daemon.lock);
	free(p.daemon.large);
	free(p.daemon.servers.fresh);
	free(p.daemon.listens);
	free(p.daemon.board);
	news_destroy(p.daemon.servers.news);
	if (p.daemon.descriptors)
		closedir(p.daemon.descriptors);
	log_summarize(true);
	event_base_free(p.base);
	settings_release(p.daemon.settings);
	return status;
}
