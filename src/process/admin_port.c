#include "process/admin_port.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <time.h>

#include "measure/collect.h"
#include "measure/report.h"
#include "net/listener.h"
#include "process/peers.h"
#include "protocol/http.h"
#include "util/alloc.h"
#include "util/num.h"

struct admin_port {
	struct event_base *base;
	struct daemon *daemon;
	struct peers *peers;
	char address[256]; /* The open address; "" for none. */
	struct listener *listener, *next;
	struct event *tick; /* Adds a point to the timeline each second, while the port is open. */
	struct timeline timeline;
};

/* A request, and the peer that has sent it. */
struct asked {
	struct peer *peer;
	struct http_request http;
};

/* --- hosts: a defence against DNS rebinding --- */

/*
 * Returns whether requests for this host are answered: an IP address, localhost, or one of
 * admin_hosts, with or without a port. A malicious page in a browser on this network can make
 * its own name resolve to our address, and would then read the replies. But its requests have
 * its name as host. The port is removed from `host`.
 */
static bool is_host_allowed(const struct config *config, char *host)
{
	char *colon = strrchr(host, ':');
	unsigned char address[16];
	uint32_t port;
	size_t n;

	if (colon && num_parse_u32(slice_of(colon + 1, strlen(colon + 1)), &port) && port <= 65535)
		*colon = '\0';
	n = strlen(host);
	if (n == 0 || n >= 256)
		return false;
	if (*host == '[' && host[n - 1] == ']') {
		host[n - 1] = '\0';
		return inet_pton(AF_INET6, host + 1, address) == 1;
	}
	if (inet_pton(AF_INET, host, address) == 1 || strcasecmp(host, "localhost") == 0)
		return true;
	for (size_t i = 0; i < config->admin_hosts.count; i++) {
		if (strcasecmp(host, config->admin_hosts.at[i]) == 0)
			return true;
	}
	return false;
}

/* --- answers --- */

/*
 * Sends an answer, and takes over the content of `text`. `status` is a number and its reason,
 * and `headers` are lines with their ends. The reply to HEAD has the length that the text would
 * have.
 */
static void answer(struct asked *r, const char *status, const char *type, const char *headers,
	struct buf *text)
{
	struct buf out = BUF_EMPTY;
	time_t now = time(NULL);
	char date[64];
	struct tm tm;

	strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &tm));
	buf_printf(&out,
		"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: "
		"no-store\r\n"
		"X-Content-Type-Options: nosniff\r\nDate: %s\r\n%s%s\r\n",
		status, type, buf_size(text), date, headers,
		r->http.keeps ? "" : "Connection: close\r\n");
	if (!slice_equal(r->http.method, SLICE("HEAD")))
		buf_add_slice(&out, buf_slice(text));
	peers_answer(r->peer, buf_slice(&out), !r->http.keeps);
	buf_free(&out);
	buf_free(text);
}

static void answer_line(struct asked *r, const char *status, const char *headers, const char *line)
{
	struct buf text = BUF_EMPTY;

	buf_printf(&text, "%s\n", line);
	answer(r, status, "text/plain; charset=utf-8", headers, &text);
}

/* Returns why clients are not served; NULL if they are. */
static const char *readiness_obstacle(const struct admin_port *port)
{
	if (port->daemon->stopping)
		return "draining";
	if (!port->daemon->serving)
		return "starting: not all servers have been tried yet";
	return collect_seen(port->daemon).any_up ? NULL : "no server is up";
}

static void admin_port_on_health(struct admin_port *port, struct asked *r)
{
	(void)port;
	answer_line(r, "200 OK", "", "alive");
}

static void admin_port_on_ready(struct admin_port *port, struct asked *r)
{
	const char *why = readiness_obstacle(port);

	answer_line(r, why ? "503 Service Unavailable" : "200 OK", "", why ? why : "ready");
}

static void admin_port_on_metrics(struct admin_port *port, struct asked *r)
{
	struct buf text = BUF_EMPTY;

	report_metrics(port->daemon, readiness_obstacle(port), &text);
	answer(r, "200 OK", "text/plain; version=0.0.4; charset=utf-8", "", &text);
}

static void admin_port_on_stats(struct admin_port *port, struct asked *r)
{
	struct buf text = BUF_EMPTY;

	report_json(port->daemon, &port->timeline, readiness_obstacle(port), &text);
	answer(r, "200 OK", "application/json", "", &text);
}

/* --- the page --- */

/* The assembler reads the file. The path is relative to the top folder, where `make` runs. */
__asm__(".section .rodata\n"
	".global page_begin\n"
	".global page_end\n"
	"page_begin:\n"
	".incbin \"src/process/page.html\"\n"
	"page_end:\n"
	".previous\n");

extern const char page_begin[], page_end[];

/*
 * Appends the page. Its style and its script get the nonce, which the browser compares with the
 * policy in the header.
 */
static void print_page(const char *nonce, struct buf *out)
{
	static const char mark[] = "nonce=\"\"";
	enum { BEFORE = sizeof("nonce=\"") - 1 };
	const char *at = page_begin, *found;

	while ((found = memmem(at, (size_t)(page_end - at), mark, sizeof(mark) - 1))) {
		buf_add(out, at, (size_t)(found - at) + BEFORE);
		buf_add(out, nonce, strlen(nonce));
		at = found + BEFORE;
	}
	buf_add(out, at, (size_t)(page_end - at));
}

/* A random nonce permits the script and the style of the page. The browser runs no other script. */
static void admin_port_on_page(struct admin_port *port, struct asked *r)
{
	struct buf text = BUF_EMPTY;
	uint64_t random[2];
	char nonce[33], headers[512];

	(void)port;
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		abort();
	snprintf(nonce, sizeof(nonce), "%016llx%016llx", (unsigned long long)random[0],
		(unsigned long long)random[1]);
	snprintf(headers, sizeof(headers),
		"Content-Security-Policy: default-src 'none'; script-src 'nonce-%s'; style-src "
		"'nonce-%s'; "
		"connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
		"frame-ancestors 'none'\r\n"
		"Referrer-Policy: no-referrer\r\n",
		nonce, nonce);
	print_page(nonce, &text);
	answer(r, "200 OK", "text/html; charset=utf-8", headers, &text);
}

/* --- paths --- */

static const struct {
	const char *path;
	void (*answer)(struct admin_port *port, struct asked *r);
} paths[] = {
	{ "/", admin_port_on_page },
	{ "/healthz", admin_port_on_health },
	{ "/metrics", admin_port_on_metrics },
	{ "/readyz", admin_port_on_ready },
	{ "/stats.json", admin_port_on_stats },
};
enum { PATHS = sizeof(paths) / sizeof(paths[0]) };

static void dispatch(struct admin_port *port, struct asked *r)
{
	char host[300];
	size_t i = 0;

	snprintf(host, sizeof(host), "%.*s", (int)r->http.host.n, r->http.host.p);
	while (i < PATHS &&
		!slice_equal(r->http.path, slice_of(paths[i].path, strlen(paths[i].path))))
		i++;
	if (!is_host_allowed(&port->daemon->settings->config, host))
		answer_line(r, "403 Forbidden", "",
			"The host is not an IP address, not localhost, and not in admin_hosts.");
	else if (!slice_equal(r->http.method, SLICE("GET")) &&
		!slice_equal(r->http.method, SLICE("HEAD")))
		answer_line(r, "405 Method Not Allowed", "Allow: GET, HEAD\r\n",
			"Only GET and HEAD are supported.");
	else if (i < PATHS)
		paths[i].answer(port, r);
	else
		answer_line(r, "404 Not Found", "",
			"Available: / /healthz /metrics /readyz /stats.json");
}

static size_t admin_port_on_request(void *port, struct peer *peer, struct slice in)
{
	struct asked r = { .peer = peer };
	size_t n = http_parse(in, &r.http);

	if (n > 0 && r.http.refusal)
		answer_line(&r, r.http.refusal->status, "", r.http.refusal->why);
	else if (n > 0)
		dispatch(port, &r);
	return n;
}

static void admin_port_on_cut_off(void *port, struct peer *peer, bool late)
{
	struct asked r = { .peer = peer };
	const struct http_refusal *why = late ? &http_late : &http_cut_off;

	(void)port;
	answer_line(&r, why->status, "", why->why);
}

/* --- the timeline --- */

static void admin_port_on_tick(evutil_socket_t fd, short what, void *port)
{
	struct admin_port *p = port;

	(void)fd;
	(void)what;
	collect_timeline(p->daemon, &p->timeline);
}

/* Starts the timeline when there is an address, and clears it when there is none. */
static void keep_timeline(struct admin_port *port)
{
	static const struct timeval interval = { TIMELINE_MS / 1000, TIMELINE_MS % 1000 * 1000 };

	if (!port->listener) {
		event_del(port->tick);
		memset(&port->timeline, 0, sizeof(port->timeline));
	} else if (!event_pending(port->tick, EV_TIMEOUT, NULL)) {
		collect_timeline(port->daemon, &port->timeline);
		event_add(port->tick, &interval);
	}
}

/* --- the address --- */

void admin_port_undo(struct admin_port *port)
{
	listener_destroy(port->next);
	port->next = NULL;
}

bool admin_port_prepare(struct admin_port *port, const struct config *config, struct buf *errors)
{
	struct address a;
	struct listener_place place = { .host = a.host, .reuseport = config->reuseport };
	char why[256];

	admin_port_undo(port);
	if (!*config->admin || strcmp(config->admin, port->address) == 0)
		return true;
	/* config_set() has already checked the address. */
	(void)config_admin_address(config->admin, &a);
	place.port = a.port;
	port->next = listener_create(&place, why);
	return port->next ||
		config_fault(config, config_line(config, "admin"), errors, "admin: %s", why);
}

void admin_port_commit(struct admin_port *port)
{
	const struct config *config = &port->daemon->settings->config;

	if (strcmp(config->admin, port->address) == 0) {
		if (port->listener && config->reuseport)
			listener_share(port->listener);
		return;
	}
	listener_destroy(port->listener);
	port->listener = port->next;
	port->next = NULL;
	snprintf(port->address, sizeof(port->address), "%s", config->admin);
	if (port->listener)
		listener_start(port->listener, port->base, PEERS_ACCEPT, peers_take, port->peers);
	keep_timeline(port);
}

/* --- creation and destruction --- */

struct admin_port *admin_port_create(struct event_base *base, struct daemon *daemon)
{
	static const struct peers_kind kind = { .name = "admin",
		.most = 32,
		.size = HTTP_HEAD_MAX,
		.seconds = 15,
		.request = admin_port_on_request,
		.cut_off = admin_port_on_cut_off };
	struct admin_port *port = xcalloc(1, sizeof(*port));

	port->base = base;
	port->daemon = daemon;
	port->peers = peers_create(base, &kind, port);
	port->tick = event_new(base, -1, EV_PERSIST, admin_port_on_tick, port);
	if (!port->tick)
		abort();
	return port;
}

void admin_port_destroy(struct admin_port *port)
{
	if (!port)
		return;
	listener_destroy(port->next);
	listener_destroy(port->listener);
	peers_destroy(port->peers);
	event_free(port->tick);
	free(port);
}
