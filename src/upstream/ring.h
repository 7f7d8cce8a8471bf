/*
 * Maps keys to servers in the same way as libmemcached, so that setlistd and clients that use
 * libmemcached agree. The implementation is our own, since libmemcached limits the number of
 * servers. It does no I/O. A ring is immutable, so any thread may read it.
 */
#ifndef UPSTREAM_RING_H
#define UPSTREAM_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "util/slice.h"

struct ring;

enum { RING_SERVERS_MAX = 1000 };

enum ring_distribution {
	RING_KETAMA,     /* Weighted ketama with MD5, as in most clients. */
	RING_CONSISTENT, /* The consistent hashing of libmemcached, with one_at_a_time. */
	RING_MODULA      /* The default of libmemcached. */
};

/* A server, unresolved. For a Unix socket `host` is its path and `port` is 0. */
struct ring_server {
	char *host;
	uint16_t port;
	uint32_t weight;
	char *name; /* Name in the server's certificate, if it differs from the host; or NULL. */
};

/*
 * A point on a ring. Its server has the keys whose hashes are above the previous point and not
 * above this one.
 */
struct ring_point {
	uint32_t hash;
	uint16_t server;
};

/*
 * Creates the ring of 1 to RING_SERVERS_MAX servers, which are copied. The caller owns the
 * result.
 */
struct ring *ring_create(
	const struct ring_server *servers, int count, enum ring_distribution distribution);

/*
 * As ring_create(), with `n` points in any order; `hash` is the hash function of keys, an enum
 * hashkit_hash_algorithm_t. If `n` is 0, the server of a key is its hash modulo the number of
 * servers.
 */
struct ring *ring_create_of_points(const struct ring_server *servers, int count, int hash,
	const struct ring_point *points, size_t n);

void ring_destroy(struct ring *ring);

/* Return the number of servers, and one of them, which the ring owns. */
int ring_count(const struct ring *ring);
const struct ring_server *ring_server(const struct ring *ring, int index);

/* Returns the index of the server that holds `key`. */
int ring_lookup(const struct ring *ring, struct slice key);

/*
 * Stores in `out` the index of the server that holds `key`, followed by the n - 1 next servers
 * on the ring, all different. Returns how many were stored: 1 to n, less than n if the ring has
 * no more servers.
 */
int ring_spread(const struct ring *ring, struct slice key, int n, uint16_t *out);

/*
 * Returns a checksum of the distribution of keys. Two rings have the same checksum if they map
 * each of a thousand keys to a server of the same name, however they were configured.
 */
uint64_t ring_fingerprint(const struct ring *ring);

#endif
