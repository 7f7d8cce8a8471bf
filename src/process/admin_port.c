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
#include "protocol/dialect.h"
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

/* A request. All slices are borrowed. */
struct http_request {
	struct peer *peer;
	struct slice method, path, host;
	bool keeps;    /* Keep the connection open for another request. */
	bool has_body; /* Has a body with a known length, unless it is `chunked`. */
	bool chunked;
};

/* --- reading requests --- */

static bool is_word(struct slice text, const char *word)
{
	return text.n == strlen(word) && strncasecmp(text.p, word, text.n) == 0;
}

/* Parses "GET /path HTTP/1.1". */
static bool read_first_line(struct slice line, struct http_request *r)
{
	struct slice version;

	r->method = slice_token(&line);
	r->path = slice_token(&line);
	version = slice_token(&line);
	r->path.n = (size_t)(slice_find(r->path.p, r->path.p + r->path.n, '?') - r->path.p);
	r->keeps = is_word(version, "HTTP/1.1");
	return line.n == 0 && (r->keeps || is_word(version, "HTTP/1.0"));
}

static void read_header(struct slice line, struct http_request *r)
{
	struct slice name = slice_cut(&line, ':'), value = slice_token(&line);

	if (is_word(name, "Host"))
		r->host = value;
	else if (is_word(name, "Connection"))
		r->keeps = r->keeps && !is_word(value, "close");
	else if (is_word(name, "Content-Length"))
		r->has_body = !slice_equal(value, SLICE("0"));
	else if (is_word(name, "Transfer-Encoding"))
		r->chunked = true;
}

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
static void answer(struct http_request *r, const char *status, const char *type, const char *headers, struct buf *text)
{
	struct buf out = BUF_EMPTY;
	time_t now = time(NULL);
	char date[64];
	struct tm tm;

	strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &tm));
	buf_printf(&out,
		"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: no-store\r\n"
		"X-Content-Type-Options: nosniff\r\nDate: %s\r\n%s%s\r\n",
		status, type, buf_size(text), date, headers, r->keeps ? "" : "Connection: close\r\n");
	if (!slice_equal(r->method, SLICE("HEAD")))
		buf_add_slice(&out, buf_slice(text));
	peers_answer(r->peer, buf_slice(&out), !r->keeps);
	buf_free(&out);
	buf_free(text);
}

static void answer_line(struct http_request *r, const char *status, const char *headers, const char *line)
{
	struct buf text = BUF_EMPTY;

	buf_printf(&text, "%s\n", line);
	answer(r, status, "text/plain; charset=utf-8", headers, &text);
}

/* Returns why clients are not served; NULL if they are. */
static const char *obstacle(const struct admin_port *port)
{
	if (port->daemon->stopping)
		return "draining";
	if (!port->daemon->serving)
		return "starting: not all servers have been tried yet";
	return collect_seen(port->daemon).any_up ? NULL : "no server is up";
}

static void on_health(struct admin_port *port, struct http_request *r)
{
	(void)port;
	answer_line(r, "200 OK", "", "alive");
}

static void on_ready(struct admin_port *port, struct http_request *r)
{
	const char *why = obstacle(port);

	answer_line(r, why ? "503 Service Unavailable" : "200 OK", "", why ? why : "ready");
}

static void on_metrics(struct admin_port *port, struct http_request *r)
{
	struct buf text = BUF_EMPTY;

	report_metrics(port->daemon, obstacle(port), &text);
	answer(r, "200 OK", "text/plain; version=0.0.4; charset=utf-8", "", &text);
}

static void on_stats(struct admin_port *port, struct http_request *r)
{
	struct buf text = BUF_EMPTY;

	report_json(port->daemon, &port->timeline, obstacle(port), &text);
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
static void on_page(struct admin_port *port, struct http_request *r)
{
	struct buf text = BUF_EMPTY;
	uint64_t random[2];
	char nonce[33], headers[512];

	(void)port;
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		abort();
	snprintf(nonce, sizeof(nonce), "%016llx%016llx", (unsigned long long)random[0], (unsigned long long)random[1]);
	snprintf(headers, sizeof(headers),
		"Content-Security-Policy: default-src 'none'; script-src 'nonce-%s'; style-src 'nonce-%s'; "
		"connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
		"Referrer-Policy: no-referrer\r\n",
		nonce, nonce);
	print_page(nonce, &text);
	answer(r, "200 OK", "text/html; charset=utf-8", headers, &text);
}

/* --- paths --- */

static const struct {
	const char *path;
	void (*answer)(struct admin_port *port, struct http_request *r);
} paths[] = {
	{ "/", on_page },
	{ "/healthz", on_health },
	{ "/metrics", on_metrics },
	{ "/readyz", on_ready },
	{ "/stats.json", on_stats },
};
enum { PATHS = sizeof(paths) / sizeof(paths[0]) };

static void dispatch(struct admin_port *port, struct http_request *r)
{
	char host[300];
	size_t i = 0;

	snprintf(host, sizeof(host), "%.*s", (int)r->host.n, r->host.p);
	while (i < PATHS && !slice_equal(r->path, slice_of(paths[i].path, strlen(paths[i].path))))
		i++;
	if (!is_host_allowed(&port->daemon->settings->config, host))
		answer_line(r, "403 Forbidden", "",
			"The host is not an IP address, not localhost, and not in admin_hosts.");
	else if (!slice_equal(r->method, SLICE("GET")) && !slice_equal(r->method, SLICE("HEAD")))
		answer_line(r, "405 Method Not Allowed", "Allow: GET, HEAD\r\n", "Only GET and HEAD are supported.");
	else if (i < PATHS)
		paths[i].answer(port, r);
	else
		answer_line(r, "404 Not Found", "", "Available: / /healthz /metrics /readyz /stats.json");
}

/*
 * A body is not read. The connection of a request with a body is closed after the answer. A
 * chunked body has no known length, so the connection is closed at once.
 */
static ssize_t on_request(void *port, struct peer *peer, struct slice in)
{
	struct http_request r = { .peer = peer };
	struct slice rest = in, line;
	bool first = true, good = false;
	size_t n;

	for (; dialect_line(rest, &line, &n) && (first || line.n); first = false) {
		if (first)
			good = read_first_line(line, &r);
		else
			read_header(line, &r);
		rest = slice_skip(rest, n);
	}
	if (!dialect_line(rest, &line, &n))
		return 0;
	if (r.chunked)
		return -1;
	r.keeps = r.keeps && good && !r.has_body;
	if (!good)
		answer_line(&r, "400 Bad Request", "", "This is not an HTTP/1.1 request.");
	else if (r.has_body)
		answer_line(&r, "413 Request Entity Too Large", "", "A request must not have a body.");
	else
		dispatch(port, &r);
	return (ssize_t)(in.n - rest.n + n);
}

/* --- the timeline --- */

static void on_tick(evutil_socket_t fd, short what, void *port)
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
	return port->next || config_fault(config, config_line(config, "admin"), errors, "admin: %s", why);
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
	static const struct peers_kind kind = {
		.name = "admin", .most = 32, .size = 8192, .seconds = 15, .request = on_request
	};
	struct admin_port *port = xcalloc(1, sizeof(*port));

	port->base = base;
	port->daemon = daemon;
	port->peers = peers_create(base, &kind, port);
	port->tick = event_new(base, -1, EV_PERSIST, on_tick, port);
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
