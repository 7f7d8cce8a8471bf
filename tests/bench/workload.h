#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include "reply.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORKLOAD_MAX_KEYS 10000000
#define WORKLOAD_MIN_MEMBER 8
#define WORKLOAD_MAX_MEMBER 250
#define WORKLOAD_MEMBER_NAMES 10000000 /* of seven digits */
#define WORKLOAD_MAX_MEMBERS (WORKLOAD_MEMBER_NAMES - 1)

/* The requests to render. */
struct workload {
	const char *op;
	bool resp;
	size_t keys;
	size_t value_size;
	size_t members;
	size_t member_size;
};

/* A rendered request: it begins at ${offset} and ends where the next one begins. */
struct request {
	size_t offset;
	uint16_t key;    /* position of its first key, relative to offset */
	uint16_t member; /* position of its member; 0: it has none */
	uint32_t form;   /* index into want[] */
};

/* Requests, contiguous, so that adjacent ones are sent in one write without a copy. */
struct pool {
	char *bytes;
	struct request *requests; /* one more than count: the last one has the end */
	size_t count;
	struct reply_want want[2];
	size_t first_member; /* number of keys to draw from */
	size_t members;      /* number of members to draw from; 0: the members never change */
	uint64_t random;
};

/* Returns the name of op number ${index}, NULL after the last. */
const char *workload_op_name(size_t index);

/*
 * Renders the requests of ${work}; they are the same for equal keys, members and sizes, whatever
 * the protocol. Exits with a message if the op is unknown or the protocol has no such op. The
 * caller frees the pool with pool_free.
 */
void workload_render(const struct workload *work, struct pool *pool);

/*
 * Renders the data that must be stored before ${work} can run; each request is to be sent once.
 * Returns an empty pool if none is needed.
 */
void workload_render_load(const struct workload *work, struct pool *pool);

/*
 * Draws new members for the requests from ${first} up to ${last}: a pool is sent repeatedly, and
 * adding existing members is less work for some servers than adding new ones.
 */
void pool_redraw(struct pool *pool, size_t first, size_t last);

void pool_free(struct pool *pool);

/* Returns ${memory}; exits with a message if it is NULL. */
void *must(void *memory);

#endif
