/*
 * Which server holds a key: as libmemcached decides, so that setlistd and the clients that use libmemcached agree. It does no
 * I/O. A ring is never changed, so any thread may read it.
 */
#ifndef UPSTREAM_RING_H
#define UPSTREAM_RING_H

#include <stdint.h>

#include "util/slice.h"

struct ring;

enum ring_distribution {
	RING_KETAMA,     /* weighted ketama with md5, as most clients have it */
	RING_CONSISTENT, /* libmemcached's consistent hashing with one_at_a_time */
	RING_MODULA      /* libmemcached's default */
};

/* A server, unresolved. For a Unix socket `host` is its path, and `port` is 0. */
struct ring_server {
	char *host;
	uint16_t port;
	uint32_t weight;
};

/*
 * Builds the ring of these servers, or of a libmemcached configuration string ("--SERVER=..."). The caller owns the ring. On
 * failure gives NULL, with the reason in `error`.
 */
struct ring *ring_create(
	const struct ring_server *servers, int count, enum ring_distribution distribution, char error[256]);
struct ring *ring_create_from_string(const char *configuration, char error[256]);
void ring_destroy(struct ring *ring);

/* The number of servers, and one of them, which the ring owns. */
int ring_count(const struct ring *ring);
const struct ring_server *ring_server(const struct ring *ring, int index);

/* The index of the server that holds `key`. */
int ring_lookup(const struct ring *ring, struct slice key);

/*
 * A checksum of where keys are: equal for two rings that find all of a thousand keys at servers of the same name, however they
 * were configured.
 */
uint64_t ring_fingerprint(const struct ring *ring);

#endif
