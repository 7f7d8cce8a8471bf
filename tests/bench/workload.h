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

/* What to ask for. */
struct workload {
	const char *op;
	bool resp;
	size_t keys;
	size_t value_size;
	size_t members;
	size_t member_size;
};

/* A request ready to be sent: it lies at ${offset} and ends where the next one begins. */
struct request {
	size_t offset;
	uint16_t key;    /* where its first key lies, counted from offset */
	uint16_t member; /* where its member lies; 0: it has none */
	uint32_t form;   /* index into want[] */
};

/* Requests, one right behind the other, so that neighbours go out in one write without a copy. */
struct pool {
	char *bytes;
	struct request *requests; /* one more than count: the last holds the end */
	size_t count;
	struct reply_want want[2];
	size_t first_member; /* of those to draw from */
	size_t members;      /* to draw from; 0: the members stay as they are */
	uint64_t random;
};

/* The name of op number ${index}, NULL past the last. */
const char *workload_op_name(size_t index);

/*
 * Renders the requests of ${work}; the same ones whenever keys, members and sizes are the same,
 * whatever the protocol. Exits with a message if the op is unknown or the protocol has no such
 * op. The caller gives the pool back with pool_free.
 */
void workload_render(const struct workload *work, struct pool *pool);

/*
 * Renders what must be stored before ${work} can run, each request to be sent once. An empty pool
 * when there is nothing to store.
 */
void workload_render_load(const struct workload *work, struct pool *pool);

/*
 * Draws new members for the requests from ${first} up to ${last}: a pool is sent many times over,
 * and adding what is there already is less work for some servers than adding something new.
 */
void pool_redraw(struct pool *pool, size_t first, size_t last);

void pool_free(struct pool *pool);

/* Gives ${memory} back; exits with a message if it is NULL. */
void *must(void *memory);

#endif
