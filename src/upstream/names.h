/*
 * The resolver of the process: names of servers and their addresses. One thread looks up each name at regular intervals, however many
 * servers and workers use it; the result is read without waiting. A failed lookup leaves the addresses that are known in use.
 *
 * c-ares asks the name servers. It sends the queries for IPv4 and IPv6 apart, so a late answer to one does not delay the other; it repeats
 * a truncated one over TCP; and it reads /etc/hosts, /etc/resolv.conf and the line `hosts` of /etc/nsswitch.conf. The C library's
 * getaddrinfo returns only when both are answered. It also loads modules, whose system calls the sandbox cannot know.
 */
#ifndef UPSTREAM_NAMES_H
#define UPSTREAM_NAMES_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

#include "util/buf.h"

struct name;
struct names;

union server_sockaddr {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
};

enum { NAME_WHY = 512 };

/* All functions below may be called from any thread, except names_create and names_destroy. The thread starts with the first name. */
struct names *names_create(void);
/* All names must have been dropped. */
void names_destroy(struct names *names);

/* Milliseconds between two lookups of a name; 0: only when a connection fails. A name that failed is looked up sooner. */
void names_set_interval(struct names *names, uint64_t ms);

/* After each lookup a byte is written to `fd`, which is non-blocking, until names_unlisten. */
void names_listen(struct names *names, int fd);
void names_unlisten(struct names *names, int fd);

/* Parses a numeric address, without any lookup. Returns false if the host is a name. */
bool names_parse(const char *host, uint16_t port, union server_sockaddr *out);

/*
 * Returns a name, which is looked up until name_drop. With `all`, each of its addresses is a server; else it must have one address,
 * or one of each family. An existing name with `all` is looked up again.
 */
struct name *name_get(struct names *names, const char *host, bool all);
void name_drop(struct name *name);

/* Waits until the first lookup has ended, or that of name_get, but not longer than until `deadline` in milliseconds, as clock_us counts CLOCK_MONOTONIC. */
void name_await(struct name *name, uint64_t deadline);

/* Of a name with `all`: appends its addresses, sorted, with spaces between them. Returns false, with the reason, if they are not known. */
bool name_addresses(struct name *name, struct buf *out, char why[NAME_WHY]);
/* Of a name with `all`: a warning is logged, and names_changed counts it, while its addresses are others than these; NULL for none. */
void name_expect(struct name *name, const char *addresses);
uint64_t names_changed(struct names *names);

/* Whether the name has several addresses of one family at the moment, with the reason why no server can have it. */
bool name_is_several(struct name *name, char why[NAME_WHY]);

/*
 * The address for the `nth` attempt to connect. If none is known, returns false with the reason; `*final` is false while the first
 * lookup is under way.
 */
bool name_choose(
	struct name *name, unsigned nth, uint16_t port, union server_sockaddr *out, bool *final, char why[NAME_WHY]);
/* Whether it is an address of the name. */
bool name_has(struct name *name, const union server_sockaddr *address);

/* A connection to the name's address is being made or has failed: it may be outdated. */
void name_suspect(struct name *name);
/* A connection was made. */
void name_trust(struct name *name);

#endif
