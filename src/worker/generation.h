/*
 * The servers, lanes and rules with which a worker carries out requests, and the settings for
 * which they were created. A reload that changes any of these creates a new generation.
 * Requests finish in the generation in which they began; a client's later requests use the new
 * one after all its earlier requests are answered. So no operation uses two rings, and the
 * order of each client's requests is kept. Concurrent operations of two generations on one key
 * are as safe as operations of two proxies.
 */
#ifndef WORKER_GENERATION_H
#define WORKER_GENERATION_H

#include "collection/copies/copies.h"
#include "collection/fresh/fresh.h"
#include "collection/lane/lanes.h"
#include "collection/move/moves.h"
#include "collection/room.h"
#include "command/host.h"
#include "config/settings.h"
#include "upstream/servers.h"

struct generations;
struct meter;
struct names;
struct push_board;
struct rule_count;

/* Wraps the calls while keys move. */
struct moving_calls {
	/* First, as in struct generation. Sends calls to the servers that they name. */
	struct env env;
	struct generations *all;
	struct moves *moves; /* NULL if no keys move. */
};

/* The end of a turn, or a later turn, in which reads are answered from memory. */
struct fresh_job {
	struct loop_job job;
	struct waiter *waiter;
};

struct generation {
	struct host host; /* First, so a pointer to one is a pointer to the other. */
	struct generations *all;
	struct settings *settings;
	struct collection_options collection_options;
	struct servers *servers;
	struct moving_calls moving;
	struct copies *copies; /* NULL if no rule has copies. */
	int64_t clock_ahead;   /* Milliseconds, of stamps before our own clock. */
	uint64_t looked;       /* When this was determined. */
	struct fresh *fresh;   /* NULL if no rule has fresh_for. */
	struct fresh_job fresh_job;
	struct rule_count **rule_counts; /* One entry for each rule for sets and lists. */
	size_t users;                    /* Clients and tasks that use the generation. */
	uint64_t bytes_seen;             /* COUNT_bytes_read at the last call of env.later. */
	TAILQ_ENTRY(generation) link;
};

/*
 * The generations of a worker. The worker sets the first members before generations_init(); all
 * others must be zero.
 */
struct generations {
	struct loop *loop;
	struct meter *meter;
	struct large_filter *large;
	struct fresh_slots *fresh_slots;
	struct {
		struct push_board *board;
		void (*tell)(void *arg); /* Makes the other workers check the board. */
		void *arg;
	} pushes; /* Pushes to lists that have blocked clients. */
	struct news *news;
	/* Number of threads of the daemon, which share cache_memory. */
	size_t threads;
	/* Functions for tasks, from `begin` to `done`, copied to each host. */
	const struct host *functions;
	void *arg;         /* Argument of these functions. */
	uint64_t random;   /* State of random_next(). */
	uint64_t connects; /* Connections to servers that were established. */

	struct pool pool;
	struct rooms rooms;
	struct fresh_stats fresh;
	struct server_options options;
	struct resolver *resolver;
	struct generation *current;       /* Carries out new requests. */
	TAILQ_HEAD(, generation) retired; /* Former generations with unfinished requests. */
	struct loop_job retire;           /* Timer, running while there are retired generations. */
	struct {
		struct lanes_stats lanes;
		struct moves_stats moves;
		struct copies_stats copies;
	} past; /* Counters of generations that were freed. */
};

/* Borrows `names` until generations_fini(). */
void generations_init(struct generations *all, struct names *names);

/* Must be called after generations_stop(), when no client or task is left. */
void generations_fini(struct generations *all);

/* Sets the options of connections that are opened from now on. */
void generations_set_options(struct generations *all, const struct settings *settings);

/*
 * Creates a generation, which adds a reference to `settings`. It shares connections to servers
 * that the current generation has too. Must be passed to generations_enter() or
 * generations_stop().
 */
struct generation *generation_create(struct generations *all, struct settings *settings);

/* Makes a generation the current one. The former one is freed once it is unused. */
void generations_enter(struct generations *all, struct generation *generation);

/*
 * Sets the clocks and copies the counters of the lanes to the meter. Called at the start of a
 * turn of the loop.
 */
void generations_turn(struct generations *all);

/* Checks the board for pushes of other workers to lists that have blocked clients. */
void generations_look_for_pushes(struct generations *all);

/* Answers all clients that are blocked on lists. No client blocks from now on. */
void generations_end_waits(struct generations *all);

/* Returns whether no operation is in flight in any generation. */
bool generations_are_idle(const struct generations *all);

/*
 * Closes all connections, which fails all calls, and runs all queued jobs of the loop. Takes
 * ownership of `next`, which may be NULL.
 */
void generations_stop(struct generations *all, struct generation *next);

static inline struct generation *generation_of(const struct host *host)
{
	return (struct generation *)host;
}

/* Begin and end the use of a generation by a client or a task. */
static inline void generation_enter(struct generation *generation)
{
	generation->users++;
}

static inline void generation_leave(struct generation *generation)
{
	generation->users--;
}

#endif
