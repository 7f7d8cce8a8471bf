#include "process/admin_port.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "measure/collect.h"
#include "measure/report.h"
#include "net/listener.h"
#include "process/admin_host.h"
#include "process/page.h"
#include "util/alloc.h"

/*
 * A connection has so long for a request and its answer, however it spends the time; then it is closed. The timer looks after
 * them, and soon when a new one waits for a place.
 */
enum { PEERS_MAX = 32, HEADERS_MAX = 8192, INPUT_MAX = 2 * HEADERS_MAX };
enum { TIMEOUT_S = 15, LOOK_MS = 1000, LOOK_SOON_MS = 10 };

/*
 * A connection, which is libevent's. It has no limit of their number and of the time of each, nor does it tell of their end. So each
 * has a second reference, which shows whether libevent has dropped its own one.
 */
struct peer {
	TAILQ_ENTRY(peer) link; /* in the order of their last requests */
	struct bufferevent *stream;
	time_t since; /* its last request, by the monotonic clock */
	bool is_full; /* when the timer looked last, as in is_stuck; since then there was no request */
	bool is_cut;
};

/* An address that is open. */
struct site {
	char text[256]; /* "" for none */
	struct evconnlistener *listener;
	struct evhttp_bound_socket *socket; /* once it is served */
};

struct admin_port {
	struct event_base *base;
	struct daemon *daemon;
	struct evhttp *http;
	struct site now, next;
	bool reuseport; /* as the configuration of the last admin_port_prepare has it */
	enum admin_phase phase;
	struct event *timer;
	TAILQ_HEAD(peer_list, peer) peers;
	int count;
};

/* --- connections --- */

static time_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

/* libevent takes the connection as broken, and closes it. It might not see that it is: from one with a full input it reads nothing. */
static void cut(struct peer *peer)
{
	peer->is_cut = true;
	bufferevent_trigger_event(peer->stream, BEV_EVENT_READING | BEV_EVENT_ERROR, BEV_TRIG_DEFER_CALLBACKS);
}

static void forget(struct admin_port *port, struct peer *peer)
{
	TAILQ_REMOVE(&port->peers, peer, link);
	port->count--;
	bufferevent_decref(peer->stream);
	free(peer);
}

/* Whether libevent has closed it. */
static bool is_gone(const struct peer *peer)
{
	bufferevent_event_cb on_event;

	bufferevent_getcb(peer->stream, NULL, NULL, &on_event, NULL);
	return !on_event;
}

/*
 * Whether libevent reads a request, and finds no end of a line in a full input. It bounds all lines but those of chunks, and goes on
 * looking without a pause. What was full at one time only may be requests, which it is about to answer.
 */
static bool is_stuck(struct peer *peer)
{
	bool was_full = peer->is_full;
	bufferevent_data_cb on_data;

	bufferevent_getcb(peer->stream, &on_data, NULL, NULL, NULL);
	peer->is_full = on_data && evbuffer_get_length(bufferevent_get_input(peer->stream)) >= INPUT_MAX;
	return was_full && peer->is_full;
}

static void set_timer(struct admin_port *port)
{
	bool soon = port->count >= PEERS_MAX;
	struct timeval tv = { soon ? 0 : LOOK_MS / 1000, soon ? LOOK_SOON_MS * 1000 : 0 };

	if (port->count || port->now.listener)
		event_add(port->timer, &tv);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct admin_port *port = arg;
	struct peer *peer, *next;

	(void)fd;
	(void)what;
	for (peer = TAILQ_FIRST(&port->peers); peer; peer = next) {
		next = TAILQ_NEXT(peer, link);
		if (is_gone(peer))
			forget(port, peer);
		else if (is_stuck(peer) || now() - peer->since >= TIMEOUT_S)
			cut(peer);
	}
	if (port->count < PEERS_MAX && port->now.listener)
		evconnlistener_enable(port->now.listener);
	set_timer(port);
}

/* The oldest one gives its place to the next one, which waits in the kernel meanwhile. */
static void make_place(struct admin_port *port)
{
	struct peer *peer;

	TAILQ_FOREACH(peer, &port->peers, link) {
		if (!peer->is_cut && !is_gone(peer))
			break;
	}
	if (peer)
		cut(peer);
	evconnlistener_disable(port->now.listener);
}

static struct bufferevent *on_connection(struct event_base *base, void *arg)
{
	struct admin_port *port = arg;
	struct peer *peer = xcalloc(1, sizeof(*peer));

	peer->stream = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_incref(peer->stream);
	/* While a reply waits for the client, libevent goes on reading. */
	bufferevent_setwatermark(peer->stream, EV_READ, 0, INPUT_MAX);
	peer->since = now();
	TAILQ_INSERT_TAIL(&port->peers, peer, link);
	if (++port->count >= PEERS_MAX)
		make_place(port);
	if (port->count >= PEERS_MAX)
		set_timer(port);
	return peer->stream;
}

/* A new request: its time begins. */
static void renew(struct admin_port *port, struct evhttp_request *request)
{
	struct bufferevent *stream = evhttp_connection_get_bufferevent(evhttp_request_get_connection(request));
	struct peer *peer;

	TAILQ_FOREACH(peer, &port->peers, link) {
		if (peer->stream == stream)
			break;
	}
	if (!peer)
		return;
	peer->since = now();
	peer->is_full = false;
	TAILQ_REMOVE(&port->peers, peer, link);
	TAILQ_INSERT_TAIL(&port->peers, peer, link);
}

/* Most likely no file descriptor is left. Until the timer fires, the loop would spin. `arg` is not ours: it is libevent's. */
static void on_error(struct evconnlistener *listener, void *arg)
{
	(void)arg;
	evconnlistener_disable(listener);
}

/* --- answers --- */

static void add_header(struct evhttp_request *request, const char *name, const char *value)
{
	evhttp_add_header(evhttp_request_get_output_headers(request), name, value);
}

/* Takes the text. The reply to HEAD has the length that the text would have. */
static void answer(struct evhttp_request *request, int status, const char *type, struct buf *text)
{
	struct evbuffer *out = evbuffer_new();
	struct slice s = buf_slice(text);
	char length[24];

	snprintf(length, sizeof(length), "%zu", s.n);
	add_header(request, "Content-Type", type);
	add_header(request, "Content-Length", length);
	add_header(request, "Cache-Control", "no-store");
	add_header(request, "X-Content-Type-Options", "nosniff");
	if (evhttp_request_get_command(request) != EVHTTP_REQ_HEAD)
		evbuffer_add(out, s.p, s.n);
	evhttp_send_reply(request, status, NULL, out);
	evbuffer_free(out);
	buf_free(text);
}

static void answer_line(struct evhttp_request *request, int status, const char *line)
{
	struct buf text = BUF_EMPTY;

	buf_printf(&text, "%s\n", line);
	answer(request, status, "text/plain; charset=utf-8", &text);
}

/* Why clients are not served; NULL if they are. */
static const char *obstacle(const struct admin_port *port)
{
	if (port->phase == ADMIN_DRAINING)
		return "draining";
	if (port->phase == ADMIN_STARTING)
		return "starting: not all servers were tried";
	return collect_any_server_up(port->daemon) ? NULL : "no server is up";
}

static void on_health(struct admin_port *port, struct evhttp_request *request)
{
	(void)port;
	answer_line(request, HTTP_OK, "alive");
}

static void on_ready(struct admin_port *port, struct evhttp_request *request)
{
	const char *why = obstacle(port);

	answer_line(request, why ? HTTP_SERVUNAVAIL : HTTP_OK, why ? why : "ready");
}

static void on_metrics(struct admin_port *port, struct evhttp_request *request)
{
	struct buf text = BUF_EMPTY;

	report_metrics(port->daemon, obstacle(port), &text);
	answer(request, HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", &text);
}

static void on_stats(struct admin_port *port, struct evhttp_request *request)
{
	struct buf text = BUF_EMPTY;

	report_json(port->daemon, obstacle(port), &text);
	answer(request, HTTP_OK, "application/json", &text);
}

/* The script and the style of the page are allowed by a number that nobody can know before, and nothing else is. */
static void on_page(struct admin_port *port, struct evhttp_request *request)
{
	struct buf text = BUF_EMPTY;
	uint64_t random[2];
	char nonce[33], policy[256];

	(void)port;
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		abort();
	snprintf(nonce, sizeof(nonce), "%016llx%016llx", (unsigned long long)random[0], (unsigned long long)random[1]);
	snprintf(policy, sizeof(policy),
		"default-src 'none'; script-src 'nonce-%s'; style-src 'nonce-%s'; connect-src 'self'; img-src data:; "
		"base-uri 'none'; "
		"form-action 'none'; frame-ancestors 'none'",
		nonce, nonce);
	page_print(nonce, &text);
	add_header(request, "Content-Security-Policy", policy);
	add_header(request, "Referrer-Policy", "no-referrer");
	answer(request, HTTP_OK, "text/html; charset=utf-8", &text);
}

static const struct {
	const char *path;
	void (*answer)(struct admin_port *port, struct evhttp_request *request);
} paths[] = {
	{ "/", on_page },
	{ "/healthz", on_health },
	{ "/metrics", on_metrics },
	{ "/readyz", on_ready },
	{ "/stats.json", on_stats },
};

static void on_request(struct evhttp_request *request, void *arg)
{
	struct admin_port *port = arg;
	enum evhttp_cmd_type method = evhttp_request_get_command(request);
	const char *host = evhttp_find_header(evhttp_request_get_input_headers(request), "Host");
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));

	renew(port, request);
	if (!host || !admin_host_allowed(&port->daemon->settings->config, host)) {
		answer_line(request, 403, "The host is no IP address, not localhost, and not in admin_hosts.");
		return;
	}
	if (method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD) {
		add_header(request, "Allow", "GET, HEAD");
		answer_line(request, HTTP_BADMETHOD, "Only GET and HEAD are answered.");
		return;
	}
	for (size_t i = 0; path && i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (strcmp(path, paths[i].path) == 0) {
			paths[i].answer(port, request);
			return;
		}
	}
	answer_line(request, HTTP_NOTFOUND, "There is: / /healthz /metrics /readyz /stats.json");
}

/* --- the address --- */

static void close_site(struct admin_port *port, struct site *site)
{
	if (site->socket)
		evhttp_del_accept_socket(port->http, site->socket);
	else if (site->listener)
		evconnlistener_free(site->listener);
	*site = (struct site){ .listener = NULL };
}

void admin_port_undo(struct admin_port *port)
{
	close_site(port, &port->next);
	memcpy(port->next.text, port->now.text, sizeof(port->next.text));
}

bool admin_port_prepare(struct admin_port *port, const struct config *config, char error[256])
{
	enum { BACKLOG = 128, FLAGS = LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC };
	struct address a = { .port = 0 };
	struct listener_place place = { .host = a.host, .reuseport = config->reuseport };
	int fd;

	admin_port_undo(port);
	port->reuseport = config->reuseport;
	if (strcmp(config->admin, port->now.text) == 0)
		return true;
	snprintf(port->next.text, sizeof(port->next.text), "%s", config->admin);
	if (!*config->admin)
		return true;
	/* settings_read has checked it. */
	(void)config_admin_address(config->admin, &a);
	place.port = a.port;
	fd = listener_bind(&place, error);
	if (fd < 0)
		return false;
	port->next.listener = evconnlistener_new(port->base, NULL, NULL, FLAGS, BACKLOG, fd);
	if (port->next.listener)
		return true;
	snprintf(error, 256, "%s: %s", config->admin, strerror(errno));
	close(fd);
	return false;
}

void admin_port_commit(struct admin_port *port)
{
	if (strcmp(port->next.text, port->now.text) == 0) {
		if (port->now.listener && port->reuseport)
			listener_share_port(evconnlistener_get_fd(port->now.listener));
		return;
	}
	close_site(port, &port->now);
	port->now = port->next;
	port->next.listener = NULL;
	if (!port->now.listener)
		return;
	port->now.socket = evhttp_bind_listener(port->http, port->now.listener);
	evconnlistener_set_error_cb(port->now.listener, on_error);
	set_timer(port);
}

/* --- the whole --- */

struct admin_port *admin_port_create(struct event_base *base, struct daemon *daemon)
{
	struct admin_port *port = xcalloc(1, sizeof(*port));

	port->base = base;
	port->daemon = daemon;
	TAILQ_INIT(&port->peers);
	port->timer = evtimer_new(base, on_timer, port);
	port->http = evhttp_new(base);
	evhttp_set_bevcb(port->http, on_connection, port);
	evhttp_set_gencb(port->http, on_request, port);
	evhttp_set_max_headers_size(port->http, HEADERS_MAX);
	evhttp_set_max_body_size(port->http, 0);
	evhttp_set_timeout(port->http, TIMEOUT_S);
	evhttp_set_allowed_methods(port->http,
		EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST | EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE |
			EVHTTP_REQ_OPTIONS | EVHTTP_REQ_PATCH);
	return port;
}

void admin_port_set_phase(struct admin_port *port, enum admin_phase phase)
{
	port->phase = phase;
}

void admin_port_destroy(struct admin_port *port)
{
	struct peer *peer;

	if (!port)
		return;
	admin_port_undo(port);
	evhttp_free(port->http);
	while ((peer = TAILQ_FIRST(&port->peers)))
		forget(port, peer);
	event_free(port->timer);
	free(port);
}
