#include "upstream/server_address.h"

#include <errno.h>
#include <event2/util.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
		setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
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

static void on_found(void *arg, const struct evutil_addrinfo *found, const char *why)
{
	struct server_address *a = arg;
	const struct evutil_addrinfo *choice;
	unsigned count = 0, skip;

	a->lookup = NULL;
	loop_enter(a->loop);
	if (!found) {
		report_unresolved(a, why);
		return;
	}
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

static void begin(struct server_address *a, bool checks)
{
	struct lookup *lookup;

	a->checks = checks;
	a->began = a->loop->now;
	lookup = resolver_start(a->resolver, a->where->host, a->where->port, on_found, a);
	if (lookup)
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
		.is_name = where->port != 0 && resolver_is_name(where->host),
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
	lookup_cancel(a->lookup);
	a->lookup = NULL;
	if (is_connecting(a)) {
		event_del(&a->connecting);
		close(event_get_fd(&a->connecting));
	}
}
