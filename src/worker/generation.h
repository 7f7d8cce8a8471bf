/*
 * What a worker carries out requests with: the servers, the lanes, and the rules of the settings they were made for. A reload that
 * changes these makes a new generation. Requests finish in the generation in which they began, and a client's later requests begin
 * in the new one when all its earlier ones are answered. So no operation meets two rings, and the order of each client's requests
 * stays. What two generations do at once to one key is safe, as with two proxies.
 */
#ifndef WORKER_GENERATION_H
#define WORKER_GENERATION_H

#include "collection/lane/lanes.h"
#include "collection/move/moves.h"
#include "command/host.h"
#include "config/settings.h"
#include "upstream/servers.h"

struct generations;
struct meter;
struct names;
struct push_board;
struct rule_count;

/* While keys move, calls go through here. */
struct moving_calls {
	struct env env; /* first, as in struct generation: it sends calls to the servers that they name */
	struct generations *all;
	struct servers *servers;
	struct moves *moves; /* NULL if no keys move */
};

struct generation {
	struct host host; /* first: a pointer to one is a pointer to the other */
	struct generations *all;
	struct settings *settings;
	struct collection_options collection_options;
	struct servers *servers;
	struct moving_calls moving;
	struct rule_count **rule_counts; /* of each rule for sets and lists */
	size_t users;                    /* clients and tasks */
	uint64_t bytes_seen;             /* COUNT_bytes_read at the last call of env.later */
	TAILQ_ENTRY(generation) link;
};

/* The generations of a worker. The worker sets the first members before generations_init. The rest is zero then. */
struct generations {
	struct loop *loop;
	struct meter *meter;
	struct large_filter *large;
	struct {
		struct push_board *board;
		void (*tell)(void *arg); /* the other workers look at the board */
		void *arg;
	} pushes; /* to lists for which clients wait */
	struct news *news;
	size_t threads;               /* of the daemon, which share cache_memory */
	const struct host *functions; /* for tasks: `begin` to `done` of each host */
	void *arg;                    /* for these functions */
	uint64_t random;              /* state of random_next() */
	uint64_t connects;            /* connections to servers that came up */

	struct pool pool;
	struct server_options options;
	struct resolver *resolver;
	struct generation *current;       /* carries out new requests */
	TAILQ_HEAD(, generation) retired; /* finish what began in them */
	struct loop_job retire;           /* a timer, while there are any */
	struct {
		struct lanes_stats lanes;
		struct moves_stats moves;
	} past; /* of generations that are gone */
};

/* Borrows `names` until generations_fini. */
void generations_init(struct generations *all, struct names *names);

/* Requires generations_stop, and that no client or task is left. */
void generations_fini(struct generations *all);

/* Connections that are opened from now on have the options of these settings. */
void generations_set_options(struct generations *all, const struct settings *settings);

/*
 * Makes a generation, which keeps a reference to the settings. It shares the connections to those servers that the current one has
 * too. generations_enter or generations_stop takes it.
 */
struct generation *generation_create(struct generations *all, struct settings *settings);

/* The generation is the current one from now on. The former one is freed once nothing uses it. */
void generations_enter(struct generations *all, struct generation *generation);

/* A turn of the loop begins: sets the clocks, and copies the counters of the lanes to the meter. */
void generations_turn(struct generations *all);

/* Another worker has pushed to a list, perhaps one for which clients wait. */
void generations_look_for_pushes(struct generations *all);

/* All clients that wait for lists are answered, and none waits from now on. */
void generations_end_waits(struct generations *all);

/* Whether no operation is in flight in any of them. */
bool generations_are_idle(const struct generations *all);

/* Closes all connections, which fails all calls, and runs all that is queued in the loop. Takes a generation or NULL. */
void generations_stop(struct generations *all, struct generation *next);

static inline struct generation *generation_of(const struct host *host)
{
	return (struct generation *)host;
}

/* A client or a task uses the generation, and does not use it any more. */
static inline void generation_enter(struct generation *generation)
{
	generation->users++;
}

static inline void generation_leave(struct generation *generation)
{
	generation->users--;
}

#endif
