/* setlistd: reads options and configuration, starts listeners and workers, and stops both on signals. */
#include <errno.h>
#include <event2/event.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "balance.h"
#include "client_limits.h"
#include "config/tls.h"
#include "daemon.h"
#include "net/listener.h"
#include "net/tls_context.h"
#include "options.h"
#include "util/alloc.h"
#include "util/log.h"
#include "worker.h"

enum {
	REPLACING_MOST = 16, /* connections beyond max_connections, each of which waits for an idle one to be closed */
	DESCRIPTORS = 24 + REPLACING_MOST, /* beside clients, listeners and workers */
	DESCRIPTORS_WORKER = 8,
	DESCRIPTORS_SERVER = 2 /* of each worker: one that goes and one that comes */
};

struct process {
	struct daemon daemon;
	struct event_base *base;
	struct listener **listeners;
	size_t listener_count, next, settled, exited;
	bool draining;
};

/*
 * Servers come first: what they, the listeners and the workers need is set aside, and clients share what the system leaves. False
 * if it leaves no place at all.
 */
static bool fit_descriptors(struct config *config, int servers)
{
	rlim_t own = DESCRIPTORS + config->listen_count +
		config->threads * (DESCRIPTORS_WORKER + DESCRIPTORS_SERVER * (rlim_t)servers);
	rlim_t want = own + config->max_connections;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= want)
		return true;
	if (limit.rlim_cur < limit.rlim_max) {
		rlim_t before = limit.rlim_cur;
		limit.rlim_cur = limit.rlim_max >= want ? want : limit.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
			limit.rlim_cur = before;
	}
	if (limit.rlim_cur >= want)
		return true;
	if (limit.rlim_cur <= own) {
		log_error("%llu file descriptors are allowed, and without any client %llu are needed",
			(unsigned long long)limit.rlim_cur, (unsigned long long)own);
		return false;
	}
	log_warn("max_connections is %llu, not %llu: %llu file descriptors are allowed, and %llu would be needed",
		(unsigned long long)(limit.rlim_cur - own), (unsigned long long)config->max_connections,
		(unsigned long long)limit.rlim_cur, (unsigned long long)want);
	config->max_connections = limit.rlim_cur - own;
	return true;
}

static bool switch_user(const char *user)
{
	struct passwd *pw;

	if (!*user)
		return true;
	errno = 0;
	pw = getpwnam(user);
	if (pw && setgroups(1, &pw->pw_gid) == 0 && setgid(pw->pw_gid) == 0 && setuid(pw->pw_uid) == 0)
		return true;
	fprintf(stderr, "setlistd: user %s: %s\n", user, pw || errno ? strerror(errno) : "unknown");
	return false;
}

/* --- running --- */

/* No place is left: with replace_idle the worker whose client was silent first may have one. */
static void find_place(struct daemon *d, int fd, struct tls *tls)
{
	struct worker *worker = d->workers[0];

	for (size_t i = 1; i < d->config->threads; i++) {
		if (limits_oldest(d->workers[i]) < limits_oldest(worker))
			worker = d->workers[i];
	}
	if (!d->config->replace_idle || atomic_load(&d->replacing) >= REPLACING_MOST) {
		daemon_reject(d, fd, tls);
		return;
	}
	atomic_fetch_add(&d->replacing, 1);
	worker_send(worker, (struct mail){ WORKER_REPLACE, fd, tls });
}

static void on_accepted(int fd, struct tls *tls, void *arg)
{
	struct process *p = arg;

	if ((uint64_t)atomic_fetch_add(&p->daemon.connections, 1) >= p->daemon.config->max_connections) {
		find_place(&p->daemon, fd, tls);
		return;
	}
	atomic_fetch_add(&p->daemon.accepted, 1);
	worker_send(balance_choose(&p->daemon, p->next++), (struct mail){ WORKER_TAKE, fd, tls });
}

static void close_listeners(struct process *p)
{
	for (size_t i = 0; i < p->listener_count; i++)
		listener_destroy(p->listeners[i]);
	free(p->listeners);
	p->listeners = NULL;
	p->listener_count = 0;
}

/* The first signal stops accepting and lets requests in progress finish; the second one does not wait for them. */
static void on_signal(evutil_socket_t number, short what, void *arg)
{
	struct process *p = arg;

	(void)what;
	log_info("signal %d: shutting down", (int)number);
	close_listeners(p);
	for (size_t i = 0; i < p->daemon.config->threads; i++)
		worker_send(p->daemon.workers[i], (struct mail){ p->draining ? WORKER_STOP : WORKER_DRAIN, -1, NULL });
	p->draining = true;
}

static bool open_listeners(struct process *p)
{
	const struct config *config = p->daemon.config;
	char error[256];

	p->listeners = xcalloc(config->listen_count, sizeof(*p->listeners));
	for (size_t i = 0; i < config->listen_count; i++) {
		const struct address *a = &config->listen[i];
		struct listener *l =
			listener_create(p->base, a->host, a->port, config->socket_mode, on_accepted, p, error);
		if (!l) {
			fprintf(stderr, "setlistd: cannot listen: %s\n", error);
			return false;
		}
		if (a->tls)
			listener_use_tls(l, p->daemon.tls);
		p->listeners[p->listener_count++] = l;
	}
	if (p->listener_count == 0)
		fputs("setlistd: nothing to listen on\n", stderr);
	return p->listener_count > 0;
}

static uint64_t seed(void)
{
	uint64_t value;

	if (getrandom(&value, sizeof(value), 0) != sizeof(value))
		abort();
	return value;
}

static void start_workers(struct process *p)
{
	struct daemon *d = &p->daemon;

	d->workers = xcalloc(d->config->threads, sizeof(struct worker *));
	for (size_t i = 0; i < d->config->threads; i++)
		d->workers[i] = worker_start(d, seed());
}

/* Starts accepting after each worker has tried all servers: so the first request knows what the servers can do. */
static void on_news(evutil_socket_t fd, short what, void *arg)
{
	struct process *p = arg;
	char news[128];
	ssize_t n = read((int)fd, news, sizeof(news));

	(void)what;
	for (ssize_t i = 0; i < n; i++) {
		p->settled += news[i] == DAEMON_SETTLED;
		p->exited += news[i] == DAEMON_EXITED;
		if (news[i] == DAEMON_SETTLED && p->settled == p->daemon.config->threads) {
			for (size_t l = 0; l < p->listener_count; l++)
				listener_start(p->listeners[l]);
		}
	}
	if (p->exited == p->daemon.config->threads)
		event_base_loopbreak(p->base);
}

static void join_workers(struct process *p)
{
	for (size_t i = 0; i < p->daemon.config->threads; i++)
		worker_join(p->daemon.workers[i]);
	free(p->daemon.workers);
}

static int run(const struct config *config, const struct ring *ring, struct tls_context *tls)
{
	struct process p = { .daemon = { .config = config, .ring = ring, .tls = tls, .started = time(NULL) } };
	struct event *signals[2], *news;
	static const int numbers[2] = { SIGTERM, SIGINT };
	int status = 1, pipes[2];

	p.base = event_base_new();
	if (!p.base || pipe(pipes) < 0)
		abort();
	p.daemon.news = pipes[1];
	news = event_new(p.base, pipes[0], EV_READ | EV_PERSIST, on_news, &p);
	event_add(news, NULL);
	pthread_mutex_init(&p.daemon.lock, NULL);
	p.daemon.large = xcalloc(1, sizeof(*p.daemon.large));
	signal(SIGPIPE, SIG_IGN);
	/* Before the sockets: a signal may come as soon as the first one exists, and its default action kills the process. */
	for (int i = 0; i < 2; i++) {
		signals[i] = evsignal_new(p.base, numbers[i], on_signal, &p);
		event_add(signals[i], NULL);
	}
	if (open_listeners(&p) && switch_user(config->user)) {
		start_workers(&p);
		event_base_dispatch(p.base);
		join_workers(&p);
		status = 0;
	}
	for (int i = 0; i < 2; i++) {
		event_free(signals[i]);
		close(pipes[i]);
	}
	event_free(news);
	close_listeners(&p);
	pthread_mutex_destroy(&p.daemon.lock);
	free(p.daemon.large);
	event_base_free(p.base);
	return status;
}

int main(int argc, char **argv)
{
	struct options options = options_parse(argc, argv);
	struct tls_context *tls = NULL;
	struct ring *ring = NULL;
	struct config config;
	char error[256];
	int status = 1;

	event_set_mem_functions(xmalloc, xrealloc, free);
	tls_init();
	config_init(&config);
	if (options_configure(&options, &config)) {
		log_set_level(LOG_LEVEL_WARN + (int)(config.verbose < 2 ? config.verbose : 2));
		ring = config_ring(&config, error);
		tls = ring ? config_tls(&config, error) : NULL;
		if (!tls) {
			fprintf(stderr, "setlistd: %s\n", error);
		} else if (options.test) {
			puts("configuration ok");
			status = 0;
		} else if (fit_descriptors(&config, ring_count(ring))) {
			status = run(&config, ring, tls);
		}
	}
	tls_context_drop(tls);
	ring_destroy(ring);
	config_fini(&config);
	return status;
}
