/*
 * Which server holds a key: as libmemcached decides, so that setlistd and the clients that use libmemcached agree. The ring is our
 * own, of more servers than libmemcached takes. It does no I/O, and is never changed, so any thread may read it.
 */
#ifndef UPSTREAM_RING_H
#define UPSTREAM_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "util/slice.h"

struct ring;

enum { RING_SERVERS_MAX = 1000 };

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
	char *name; /* in its certificate, if that is not the host; or NULL */
};

/* A place on a ring: a server has those keys whose hashes lie between the point before and this one, which is included. */
struct ring_point {
	uint32_t hash;
	uint16_t server;
};

/* Gives the ring of 1 to RING_SERVERS_MAX servers, which are copied. The caller owns it. */
struct ring *ring_create(const struct ring_server *servers, int count, enum ring_distribution distribution);

/*
 * As ring_create, of these points in any order, for keys with a hash of enum hashkit_hash_algorithm_t. If there are no points, the
 * hash of a key modulo the number of servers is its server.
 */
struct ring *ring_create_of_points(
	const struct ring_server *servers, int count, int hash, const struct ring_point *points, size_t n);

void ring_destroy(struct ring *ring);

/* The number of servers, and one of them, which the ring owns. */
int ring_count(const struct ring *ring);
const struct ring_server *ring_server(const struct ring *ring, int index);

/* The index of the server that holds `key`. */
int ring_lookup(const struct ring *ring, struct slice key);

/*
 * Puts the index of the server that holds `key` into `out`, and behind it those of the n - 1 next ones on the ring. All differ. Gives
 * their number, from 1 to n: less than n if there are no more.
 */
int ring_spread(const struct ring *ring, struct slice key, int n, uint16_t *out);

/*
 * A checksum of where keys are: equal for two rings that find all of a thousand keys at servers of the same name, however they
 * were configured.
 */
uint64_t ring_fingerprint(const struct ring *ring);

#endif
