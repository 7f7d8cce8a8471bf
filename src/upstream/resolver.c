#include "upstream/resolver.h"

#include <arpa/inet.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "util/alloc.h"
#include "util/log.h"

/* A later libevent caches answers, unless it is asked not to. */
#ifndef EVDNS_BASE_NO_CACHE
#define EVDNS_BASE_NO_CACHE 0
#endif

/* A file that is younger than this may change again without a change of its time. */
enum { SETTLED_S = 2 };

static const char hosts_path[] = "/etc/hosts", servers_path[] = "/etc/resolv.conf";

/* What a file was when it was read. */
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
	void (*done)(void *arg, const struct evutil_addrinfo *found, const char *why); /* NULL if cancelled */
	void *arg;
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

bool resolver_is_name(const char *host)
{
	char address[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, host, address) != 1 && inet_pton(AF_INET6, host, address) != 1;
}

/* evdns calls this once for each lookup, also for one that was cancelled. */
static void on_ended(int error, struct evutil_addrinfo *found, void *arg)
{
	struct lookup *lookup = arg;

	lookup->resolver->pending--;
	if (lookup->done && found && !error)
		lookup->done(lookup->arg, found, NULL);
	else if (lookup->done)
		lookup->done(lookup->arg, NULL, error ? evutil_gai_strerror(error) : "no address");
	if (found)
		evutil_freeaddrinfo(found);
	free(lookup);
}

struct lookup *resolver_start(struct resolver *r, const char *host, uint16_t port,
	void (*done)(void *arg, const struct evutil_addrinfo *found, const char *why), void *arg)
{
	struct evutil_addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct evdns_getaddrinfo_request *request;
	struct lookup *lookup = xcalloc(1, sizeof(*lookup));
	char service[8];

	*lookup = (struct lookup){ .resolver = r, .done = done, .arg = arg };
	if (resolver_is_name(host))
		read_files(r);
	snprintf(service, sizeof(service), "%u", port);
	r->pending++;
	request = evdns_getaddrinfo(r->dns, host, service, &hints, on_ended, lookup);
	if (!request)
		return NULL;
	lookup->request = request;
	return lookup;
}

void lookup_cancel(struct lookup *lookup)
{
	if (!lookup)
		return;
	lookup->done = NULL;
	evdns_getaddrinfo_cancel(lookup->request);
}
