/* The last slow requests of a worker. The worker writes them, and other threads read them, both with a lock. */
#ifndef MEASURE_SLOW_H
#define MEASURE_SLOW_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/escape.h"

enum { SLOW_REQUESTS = 128, SLOW_KEY = 64, SLOW_CLIENT = 64, SLOW_SERVER = 64 };

struct slow_request {
	uint64_t time;                   /* Unix time when it was answered, in milliseconds */
	char client[SLOW_CLIENT];        /* "address:port", or "unix" */
	const char *command;             /* its name, or "" for no command; it stays for ever */
	char key[ESCAPE_SIZE(SLOW_KEY)]; /* escaped, and cut; "" for none */
	char server[SLOW_SERVER];        /* that gave the last reply which it waited for; "" if that is not known */
	uint64_t took;                   /* microseconds in all, and of these: */
	uint64_t waited; /* before that call was made: for a turn, in a lane, for earlier calls of the same request */
	uint64_t on_server; /* from that call to its reply */
	uint64_t on_client; /* at the end, with replies that the client had not taken */
};

struct slow {
	uint64_t turn;        /* the worker's: microseconds of the loop when the last one was answered */
	size_t in_turn;       /* that were answered then */
	pthread_mutex_t lock; /* protects all below */
	uint64_t count;       /* since the start or the last reset; the last one is at (count - 1) % SLOW_REQUESTS */
	struct slow_request list[SLOW_REQUESTS];
};

void slow_init(struct slow *slow);
void slow_fini(struct slow *slow);

/*
 * Whether one more is to be added that was answered in the turn of this microsecond. When thousands are answered in one turn, the
 * last ones tell no more than the first ones, and noting all would make the next requests slow.
 */
static inline bool slow_has_room(struct slow *slow, uint64_t turn)
{
	slow->in_turn = slow->turn == turn ? slow->in_turn + 1 : 1;
	slow->turn = turn;
	return slow->in_turn <= SLOW_REQUESTS;
}

/* Adds a request, which is copied. */
void slow_add(struct slow *slow, const struct slow_request *request);

/* Forgets all. From any thread. */
void slow_reset(struct slow *slow);

/* Copies those that are left, in no order, and gives their number. Adds the number of all to `count`. From any thread. */
size_t slow_copy(struct slow *slow, struct slow_request out[SLOW_REQUESTS], uint64_t *count);

#endif
