#include "upstream/address.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/alloc.h"
#include "util/linux.h"

/*
 * TCP keepalive of connections to servers: seconds idle, seconds between probes, number of
 * probes.
 */
enum { KEEPALIVE_IDLE = 15, KEEPALIVE_PAUSE = 5, KEEPALIVE_COUNT = 3 };

struct resolver {
	struct loop *loop;
	struct names *names;
	int news[2]; /* Pipe from the thread of `names`. */
	struct event *event;
	LIST_HEAD(, server_address) addresses; /* Addresses that have a name. */
};

static void apply_lookup(struct server_address *a);

/* --- news of names --- */

static void address_on_news(evutil_socket_t fd, short what, void *arg)
{
	struct resolver *r = arg;
	struct server_address *a, *next;
	char bytes[64];

	(void)what;
	while (read((int)fd, bytes, sizeof(bytes)) > 0)
		;
	loop_enter(r->loop);
	for (a = LIST_FIRST(&r->addresses); a; a = next) {
		next = LIST_NEXT(a, link);
		apply_lookup(a);
	}
}

struct resolver *resolver_create(struct loop *loop, struct names *names)
{
	struct resolver *r = xcalloc(1, sizeof(*r));

	*r = (struct resolver){ .loop = loop, .names = names };
	LIST_INIT(&r->addresses);
	if (pipe2(r->news, O_CLOEXEC | O_NONBLOCK) < 0)
		abort();
	r->event = event_new(loop->base, r->news[0], EV_READ | EV_PERSIST, address_on_news, r);
	event_add(r->event, NULL);
	names_listen(names, r->news[1]);
	return r;
}

void resolver_destroy(struct resolver *r)
{
	names_unlisten(r->names, r->news[1]);
	event_free(r->event);
	close(r->news[0]);
	close(r->news[1]);
	free(r);
}

/* --- connecting --- */

static void report_failure(struct server_address *a, const char *why)
{
	a->is_news = a->checks && !a->failing;
	a->failing = a->failing || a->checks;
	a->done(a->arg, -1, why);
}

static void address_on_connected(evutil_socket_t fd, short what, void *arg)
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
		report_failure(a, strerror(error));
		return;
	}
	a->current = a->next;
	a->failing = a->is_news = false;
	if (a->name)
		name_suspect(a->name, false);
	a->done(a->arg, (int)fd, NULL);
}

static socklen_t length_of(const union server_sockaddr *address)
{
	switch (address->any.sa_family) {
	case AF_INET:
		return sizeof(address->in);
	case AF_INET6:
		return sizeof(address->in6);
	default:
		return sizeof(address->un);
	}
}

static void connect_to(struct server_address *a, const union server_sockaddr *address)
{
	int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
	    on = 1;

	if (fd < 0) {
		report_failure(a, strerror(errno));
		return;
	}
	if (address->any.sa_family != AF_UNIX) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		linux_keep_alive(fd, KEEPALIVE_IDLE, KEEPALIVE_PAUSE, KEEPALIVE_COUNT);
	}
	if (connect(fd, &address->any, length_of(address)) < 0 && errno != EINPROGRESS) {
		int error = errno;
		close(fd);
		report_failure(a, strerror(error));
		return;
	}
	a->next = *address;
	event_assign(&a->connecting, a->loop->base, fd, EV_WRITE, address_on_connected, a);
	event_add(&a->connecting, NULL);
}

static void connect_unix(struct server_address *a)
{
	union server_sockaddr address = { .un = { .sun_family = AF_UNIX } };

	if (strlen(a->where->host) >= sizeof(address.un.sun_path)) {
		report_failure(a, "path too long");
		return;
	}
	strcpy(address.un.sun_path, a->where->host);
	connect_to(a, &address);
}

/*
 * Each attempt tries the next address of the name. If none is known, the attempt stays pending
 * until a lookup succeeds or the first lookup has failed.
 */
static void connect_by_name(struct server_address *a)
{
	union server_sockaddr address;
	bool final;

	a->awaits = false;
	a->unresolved = !name_choose(a->name, a->tried, a->where->port, &address, &final, a->why);
	if (!a->unresolved) {
		a->tried++;
		connect_to(a, &address);
	} else if (final) {
		report_failure(a, a->why);
	} else {
		a->awaits = true;
	}
}

static bool is_connecting(const struct server_address *a)
{
	return event_initialized(&a->connecting) && event_pending(&a->connecting, EV_WRITE, NULL);
}

/* Called after a lookup. */
static void apply_lookup(struct server_address *a)
{
	if (a->awaits)
		connect_by_name(a);
	else
		a->looked_up(a->arg);
}

void server_address_init(struct server_address *a, struct loop *loop, struct resolver *resolver,
	const struct ring_server *where, const struct server_address_ops *ops, void *arg)
{
	*a = (struct server_address){ .loop = loop,
		.where = where,
		.done = ops->done,
		.looked_up = ops->looked_up,
		.arg = arg };
	if (where->port == 0 || names_parse(where->host, where->port, &a->numeric))
		return;
	a->name = name_get(resolver->names, where->host, false);
	LIST_INSERT_HEAD(&resolver->addresses, a, link);
}

void server_address_fini(struct server_address *a)
{
	if (!a->name)
		return;
	LIST_REMOVE(a, link);
	name_drop(a->name);
}

void server_address_connect(struct server_address *a)
{
	a->checks = false;
	if (a->where->port == 0) {
		connect_unix(a);
	} else if (!a->name) {
		connect_to(a, &a->numeric);
	} else {
		name_suspect(a->name, true);
		connect_by_name(a);
	}
}

void server_address_check(struct server_address *a, uint64_t limit)
{
	bool busy = is_connecting(a);

	if (!a->name || (busy && a->loop->now - a->began < limit))
		return;
	if (busy)
		server_address_give_up(a);
	if (name_has(a->name, &a->current)) {
		a->failing = false;
		return;
	}
	a->checks = true;
	a->began = a->loop->now;
	connect_by_name(a);
}

bool server_address_is_found(const struct server_address *a)
{
	union server_sockaddr address;
	char why[NAME_WHY];
	bool final;

	return a->unresolved && name_choose(a->name, 0, 1, &address, &final, why);
}

void server_address_give_up(struct server_address *a)
{
	union server_sockaddr address;
	bool awaits = a->awaits, final;

	server_address_stop(a);
	if (awaits && !name_choose(a->name, 0, 1, &address, &final, a->why))
		report_failure(a, a->why);
	else
		report_failure(a, "connecting timed out");
}

void server_address_stop(struct server_address *a)
{
	a->awaits = false;
	if (is_connecting(a)) {
		event_del(&a->connecting);
		close(event_get_fd(&a->connecting));
	}
}
