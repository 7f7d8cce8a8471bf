/*
 * Which server holds a key, as libmemcached says it, so that setlistd and every client on that library agree. Nothing here
 * does I/O; the ring is built once and only read afterwards, from any thread.
 */
#ifndef UPSTREAM_RING_H
#define UPSTREAM_RING_H

#include <stdint.h>

#include "util/slice.h"

struct ring;

enum ring_distribution {
	RING_KETAMA,     /* weighted ketama, md5: what most clients mean by ketama */
	RING_CONSISTENT, /* libmemcached's plain consistent hashing, one_at_a_time */
	RING_MODULA      /* libmemcached's own default */
};

/* As the configuration names it. */
const char *ring_distribution_name(enum ring_distribution distribution);

/* One server: what its name resolves to is not our business here. A Unix socket has its path as host, and port 0. */
struct ring_server {
	char *host;
	uint16_t port;
	uint32_t weight;
};

/*
 * Builds the ring of these servers, or of a libmemcached configuration string ("--SERVER=..."). NULL with the reason in
 * `error` when that cannot be.
 */
struct ring *ring_create(
	const struct ring_server *servers, int count, enum ring_distribution distribution, char error[256]);
struct ring *ring_create_from_string(const char *configuration, char error[256]);
void ring_destroy(struct ring *ring);

/* How many servers there are, and one of them; borrowed from the ring. */
int ring_count(const struct ring *ring);
const struct ring_server *ring_server(const struct ring *ring, int index);

/* The index of the server that holds `key`. */
int ring_lookup(const struct ring *ring, struct slice key);

#endif
