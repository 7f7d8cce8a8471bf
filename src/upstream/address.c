#include "upstream/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/dns.h>
#include <event2/util.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "util/alloc.h"
#include "util/linux.h"
#include "util/log.h"

/* --- names --- */

/* A later libevent caches answers, unless it is asked not to. */
#ifndef EVDNS_BASE_NO_CACHE
#define EVDNS_BASE_NO_CACHE 0
#endif

/* TCP keepalive of connections to servers: seconds, seconds, number of probes. */
enum { KEEPALIVE_IDLE = 15, KEEPALIVE_PAUSE = 5, KEEPALIVE_COUNT = 3 };

/* A file that is younger than this may change again without a change of its time. */
enum { SETTLED_S = 2 };

static const char hosts_path[] = "/etc/hosts", servers_path[] = "/etc/resolv.conf";

/* The state of a file when it was read. */
struct stamp {
	struct stat was;
	bool settled; /* a change since then shows */
};

struct resolver {
	struct event_base *base;
	struct evdns_base *dns;
	struct stamp hosts, servers;
	size_t pending; /* lookups that evdns has not ended */
};

struct lookup {
	struct resolver *resolver;
	struct evdns_getaddrinfo_request *request;
	struct server_address *address; /* NULL if cancelled */
};

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Whether the file must be read again. A file that is missing is one of all zeroes. */
static bool has_changed(struct stamp *stamp, const char *path)
{
	struct stat now = { 0 };
	bool same;

	(void)!stat(path, &now);
	same = stamp->settled && now.st_dev == stamp->was.st_dev && now.st_ino == stamp->was.st_ino &&
		now.st_size == stamp->was.st_size && same_time(now.st_mtim, stamp->was.st_mtim) &&
		same_time(now.st_ctim, stamp->was.st_ctim);
	stamp->was = now;
	stamp->settled = time(NULL) - now.st_ctim.tv_sec >= SETTLED_S;
	return !same;
}

/* Questions that wait for an answer are asked again, of the new name servers. */
static void read_files(struct resolver *r)
{
	if (has_changed(&r->hosts, hosts_path)) {
		evdns_base_clear_host_addresses(r->dns);
		evdns_base_load_hosts(r->dns, hosts_path);
	}
	if (has_changed(&r->servers, servers_path)) {
		evdns_base_clear_nameservers_and_suspend(r->dns);
		evdns_base_search_clear(r->dns);
		evdns_base_resolv_conf_parse(r->dns, DNS_OPTIONS_ALL & ~DNS_OPTION_HOSTSFILE, servers_path);
		evdns_base_resume(r->dns);
	}
}

/* It would write to standard error itself. */
static void on_log(int is_warning, const char *text)
{
	if (is_warning)
		log_info("name servers: %s", text);
}

static void set_log(void)
{
	evdns_set_log_fn(on_log);
}

struct resolver *resolver_create(struct event_base *base)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct resolver *r = xcalloc(1, sizeof(*r));

	pthread_once(&once, set_log);
	r->base = base;
	r->dns = evdns_base_new(base, EVDNS_BASE_DISABLE_WHEN_INACTIVE | EVDNS_BASE_NO_CACHE);
	if (!r->dns)
		abort();
	return r;
}

void resolver_destroy(struct resolver *r)
{
	for (size_t turns = r->pending; r->pending && turns; turns--)
		event_base_loop(r->base, EVLOOP_NONBLOCK);
	evdns_base_free(r->dns, 0);
	free(r);
}

/* Whether a host is a name, and no address. */
static bool is_name(const char *host)
{
	char address[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, host, address) != 1 && inet_pton(AF_INET6, host, address) != 1;
}

/* --- addresses --- */

static void report_failure(struct server_address *a, const char *why, bool unresolved)
{
	bool counts = unresolved || a->checks;

	a->is_news = counts && !a->failing;
	a->failing = a->failing || counts;
	a->done(a->arg, -1, why);
}

static void report_unresolved(struct server_address *a, const char *why)
{
	snprintf(a->why, sizeof(a->why), "its name is not resolved: %s", why);
	report_failure(a, a->why, true);
}

static bool same_address(const union server_sockaddr *a, const struct sockaddr *b)
{
	const void *other = b; /* it is aligned as its kind needs */

	if (a->any.sa_family != b->sa_family)
		return false;
	if (b->sa_family == AF_INET)
		return memcmp(&a->in.sin_addr, &((const struct sockaddr_in *)other)->sin_addr,
			       sizeof(struct in_addr)) == 0;
	return memcmp(&a->in6.sin6_addr, &((const struct sockaddr_in6 *)other)->sin6_addr, sizeof(struct in6_addr)) ==
		0;
}

static void on_connected(evutil_socket_t fd, short what, void *arg)
{
	struct server_address *a = arg;
	int error = 0;
	socklen_t n = sizeof(error);

	(void)what;
	loop_enter(a->loop);
	if (getsockopt((int)fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
		error = errno;
	if (error) {
		close((int)fd);
		report_failure(a, strerror(error), false);
		return;
	}
	a->current = a->next;
	a->failing = a->is_news = false;
	a->done(a->arg, (int)fd, NULL);
}

static void connect_to(struct server_address *a, const struct sockaddr *address, socklen_t length)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;

	if (fd < 0) {
		report_failure(a, strerror(errno), false);
		return;
	}
	if (address->sa_family != AF_UNIX) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		linux_keep_alive(fd, KEEPALIVE_IDLE, KEEPALIVE_PAUSE, KEEPALIVE_COUNT);
	}
	if (connect(fd, address, length) < 0 && errno != EINPROGRESS) {
		int error = errno;
		close(fd);
		report_failure(a, strerror(error), false);
		return;
	}
	memcpy(&a->next, address, length);
	event_assign(&a->connecting, a->loop->base, fd, EV_WRITE, on_connected, a);
	event_add(&a->connecting, NULL);
}

static void connect_unix(struct server_address *a)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (strlen(a->where->host) >= sizeof(address.sun_path)) {
		report_failure(a, "path too long", false);
		return;
	}
	strcpy(address.sun_path, a->where->host);
	connect_to(a, (struct sockaddr *)&address, sizeof(address));
}

static void choose(struct server_address *a, const struct evutil_addrinfo *found)
{
	const struct evutil_addrinfo *choice;
	unsigned count = 0, skip;

	for (choice = found; choice; choice = choice->ai_next) {
		if (a->checks && same_address(&a->current, choice->ai_addr)) {
			a->failing = false;
			return;
		}
		count++;
	}
	/* Each attempt tries the next address of the name. */
	choice = found;
	for (skip = a->tried++ % count; skip > 0; skip--)
		choice = choice->ai_next;
	connect_to(a, choice->ai_addr, (socklen_t)choice->ai_addrlen);
}

/* evdns calls this once for each lookup, also for one that was cancelled. */
static void on_ended(int error, struct evutil_addrinfo *found, void *arg)
{
	struct lookup *lookup = arg;
	struct server_address *a = lookup->address;

	lookup->resolver->pending--;
	free(lookup);
	if (a) {
		a->lookup = NULL;
		loop_enter(a->loop);
	}
	if (a && found && !error)
		choose(a, found);
	else if (a)
		report_unresolved(a, error ? evutil_gai_strerror(error) : "no address");
	if (found)
		evutil_freeaddrinfo(found);
}

/* If no name server has to be asked, the lookup ends within the call. */
static void begin(struct server_address *a, bool checks)
{
	struct evutil_addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct evdns_getaddrinfo_request *request;
	struct lookup *lookup = xcalloc(1, sizeof(*lookup));
	char service[8];

	*lookup = (struct lookup){ .resolver = a->resolver, .address = a };
	a->checks = checks;
	a->began = a->loop->now;
	if (a->is_name)
		read_files(a->resolver);
	snprintf(service, sizeof(service), "%u", a->where->port);
	a->resolver->pending++;
	request = evdns_getaddrinfo(a->resolver->dns, a->where->host, service, &hints, on_ended, lookup);
	if (!request)
		return;
	lookup->request = request;
	a->lookup = lookup;
}

static bool is_connecting(const struct server_address *a)
{
	return event_initialized(&a->connecting) && event_pending(&a->connecting, EV_WRITE, NULL);
}

void server_address_init(struct server_address *a, struct loop *loop, struct resolver *resolver,
	const struct ring_server *where, void (*done)(void *arg, int fd, const char *why), void *arg)
{
	*a = (struct server_address){
		.loop = loop,
		.resolver = resolver,
		.where = where,
		.done = done,
		.arg = arg,
		.is_name = where->port != 0 && is_name(where->host),
	};
}

void server_address_connect(struct server_address *a)
{
	if (a->where->port == 0)
		connect_unix(a);
	else
		begin(a, false);
}

void server_address_check(struct server_address *a, uint64_t limit)
{
	bool busy = a->lookup || is_connecting(a);

	if (!a->is_name || (busy && a->loop->now - a->began < limit))
		return;
	if (busy)
		server_address_give_up(a);
	begin(a, true);
}

void server_address_give_up(struct server_address *a)
{
	bool looks_up = a->lookup;

	server_address_stop(a);
	if (looks_up)
		report_unresolved(a, "no answer in time");
	else
		report_failure(a, "connecting took too long", false);
}

void server_address_stop(struct server_address *a)
{
	if (a->lookup) {
		a->lookup->address = NULL;
		evdns_getaddrinfo_cancel(a->lookup->request);
	}
	a->lookup = NULL;
	if (is_connecting(a)) {
		event_del(&a->connecting);
		close(event_get_fd(&a->connecting));
	}
}
