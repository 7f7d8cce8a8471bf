/*
 * Looks up the names of servers, without blocking the loop: one resolver for each worker.
 *
 * libevent's evdns asks the name servers. It keeps no answers, but it reads /etc/hosts and /etc/resolv.conf only once. So they are
 * read here again before a lookup if they have changed. The C library's getaddrinfo would follow them by itself. But it blocks
 * for as long as no name server answers, so it would need a thread, for which an exit has to wait. It also loads modules, whose
 * system calls the sandbox cannot know.
 */
#ifndef UPSTREAM_RESOLVER_H
#define UPSTREAM_RESOLVER_H

#include <event2/util.h>
#include <stdbool.h>
#include <stdint.h>

struct event_base;
struct lookup;
struct resolver;

/* Borrows `base` until resolver_destroy. */
struct resolver *resolver_create(struct event_base *base);

/* All lookups must have been cancelled. Runs the base for those that evdns has not ended yet. */
void resolver_destroy(struct resolver *resolver);

/* Whether a host is a name, and no address. */
bool resolver_is_name(const char *host);

/*
 * Looks up a name or an address. `done` gets the addresses, which are borrowed, or NULL and the reason. It is called within this
 * function if no name server has to be asked: then the result is NULL. Otherwise the result is valid until `done` is called.
 */
struct lookup *resolver_start(struct resolver *resolver, const char *host, uint16_t port,
	void (*done)(void *arg, const struct evutil_addrinfo *found, const char *why), void *arg);

/* `done` is not called any more. NULL does nothing. */
void lookup_cancel(struct lookup *lookup);

#endif
