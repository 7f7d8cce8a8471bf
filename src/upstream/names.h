/*
 * The resolver of the process: names of servers and their addresses. One thread looks up each
 * name at regular intervals, however many servers and workers use it; results are read without
 * blocking. If a lookup fails, the known addresses remain in use.
 *
 * The lookups are done by c-ares. It queries IPv4 and IPv6 separately, so a late answer to one
 * does not delay the other; it repeats truncated queries over TCP; and it reads /etc/hosts,
 * /etc/resolv.conf and the line `hosts` of /etc/nsswitch.conf. getaddrinfo() of the C library
 * returns only after both answers, and loads modules, whose system calls the sandbox cannot
 * list.
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

/*
 * All functions below may be called from any thread, except names_create() and names_destroy().
 * The resolver thread is started when the first name is added.
 */
struct names *names_create(void);
/* All names must have been dropped. */
void names_destroy(struct names *names);

/*
 * Sets the milliseconds between two lookups of a name. 0 means that names are looked up only
 * when a connection fails. A name whose lookup failed is looked up sooner.
 */
void names_set_interval(struct names *names, uint64_t ms);

/*
 * Registers `fd`, which must be non-blocking: a byte is written to it after each lookup, until
 * names_unlisten().
 */
void names_listen(struct names *names, int fd);
void names_unlisten(struct names *names, int fd);

/* Parses a numeric address, without any lookup. Returns false if the host is a name. */
bool names_parse(const char *host, uint16_t port, union server_sockaddr *out);

/*
 * Returns a name, which is looked up until name_drop(). With `all`, each of its addresses is a
 * server; otherwise it must have one address, or one of each family. An existing name with
 * `all` is looked up again.
 */
struct name *name_get(struct names *names, const char *host, bool all);
void name_drop(struct name *name);

/*
 * Waits until the first lookup, or the one that name_get() started, has ended, or until
 * `deadline`, in milliseconds of CLOCK_MONOTONIC.
 */
void name_await(struct name *name, uint64_t deadline);

/*
 * For a name with `all`: appends its addresses, sorted and separated by spaces. Returns false,
 * with the reason in `why`, if they are not known.
 */
bool name_addresses(struct name *name, struct buf *out, char why[NAME_WHY]);
/*
 * For a name with `all`: sets the addresses that the ring uses; NULL for none. While the name
 * has other addresses, names_changed() counts it, and a warning is logged.
 */
void name_expect(struct name *name, const char *addresses);
uint64_t names_changed(struct names *names);

/*
 * Returns whether the name currently has several addresses of one family, and stores in `why`
 * why it cannot be the name of a server.
 */
bool name_is_several(struct name *name, char why[NAME_WHY]);

/*
 * Stores the address for attempt number `nth` to connect in `out`. If none is known, returns
 * false with the reason; `*final` is then false while the first lookup is in progress.
 */
bool name_choose(struct name *name, unsigned nth, uint16_t port, union server_sockaddr *out,
	bool *final, char why[NAME_WHY]);
/* Returns whether `address` is one of the name's addresses. */
bool name_has(struct name *name, const union server_sockaddr *address);

/*
 * `suspect`: a connection to the name's address is being made or has failed, so the address may
 * be outdated. Otherwise a connection was made.
 */
void name_suspect(struct name *name, bool suspect);

#endif
