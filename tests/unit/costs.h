/*
 * Several clients of one proxy, whose costs are counted: the calls in flight of each, the work of
 * each slice, the bytes that are held, and how much of it precedes the reply to another client.
 *
 *     requests -> gate of the client -> tasks -> calls -> queue of the server -> results
 *                                             -> slices, in turns of the clients
 *
 * The gate, the turns of slices and the room for patient calls are models of client/, net/work.h
 * and upstream/server.c, which do I/O. Nothing moves by itself: the test answers calls, runs slices
 * and advances the time.
 */
#ifndef UNIT_COSTS_H
#define UNIT_COSTS_H

#include "collection/lane/lanes.h"
#include "collection/move/moves.h"
#include "command/task.h"
#include "memcached.h"
#include "upstream/call_turns.h"
#include "waiting/push_board.h"

enum {
	COSTS_CLIENTS = 4,
	COSTS_SHARE = 128,      /* host.calls_max */
	COSTS_PLACES = 32,      /* patient calls in flight */
	COSTS_PIPELINE = 64,    /* requests of a client in flight */
	COSTS_BUFFER = 1 << 16, /* client_buffer */
	COSTS_STEPS = 256,      /* of a slice */
	COSTS_WAITING = 250     /* max_waiting */
};

/* The largest and total costs since costs_count. */
struct costs_counts {
	size_t flying; /* most calls of one client in flight, without patient ones */
	size_t made;   /* all calls */
	size_t slices; /* all slices of work */
	/* The most of each that is done without a pause. */
	size_t burst;   /* calls, without patient ones */
	size_t overs;   /* how often work found that its slice is over */
	size_t blocks;  /* basic blocks; see counting.h */
	size_t held;    /* most bytes of one client's requests and replies */
	size_t unpaid;  /* most allocated bytes that count for no account */
	size_t bytes;   /* of all values that were read */
	size_t waiting; /* most keys of blocked commands, if all have the same number */
};

struct costs_client {
	struct account account;
	STAILQ_HEAD(, task) tasks;
	struct order order;
	struct slice line; /* the request that is sent next, borrowed */
	bool is_binary;
	size_t left; /* how often it is sent */
	bool reads;  /* Replies are read at once. */
	struct buf out;
	size_t shared; /* unread bytes that are not in `out` */
	struct {
		size_t values, estimate; /* as in client/window.c */
		size_t read, ended;      /* bytes of replies: read, and of complete replies */
	} window;
	size_t flying;
};

struct costs_inner;

struct costs {
	struct host host; /* First: a pointer to one is a pointer to the other. */
	struct env moving;
	struct moves *moves; /* NULL if no keys move */
	struct rules rules;
	struct pool pool;
	struct push_board board;
	struct collection_options options;
	struct memcached servers[2];
	struct costs_client clients[COSTS_CLIENTS];
	size_t keys;                 /* most keys of a request */
	struct costs_client *acting; /* NULL: work of the proxy itself */
	struct costs_counts counts;
	struct costs_inner *inner;
};

/* Creates a proxy for these rules, which are borrowed. `moves`: all keys are at their former server. */
void costs_init(
	struct costs *c, const struct rules *rules, const struct collection_options *options);
/* Requires that nothing is in flight. */
void costs_fini(struct costs *c);

/* From now on all keys move, except v. */
void costs_move(struct costs *c);

/* Forgets what is cached, as another proxy. Requires that nothing is in flight. */
void costs_forget(struct costs *c);
/* Restarts the counts. */
void costs_count(struct costs *c);

void costs_put(struct costs *c, const char *key, struct slice value);

/* Makes a client send a request `times` times, after its earlier ones. */
void costs_send(struct costs *c, size_t client, struct slice line, bool is_binary, size_t times);
/* The client disconnects. */
void costs_leave(struct costs *c, size_t client);

/* Answers the oldest call, or runs the next slice. Returns false if there is none. */
bool costs_answer(struct costs *c);
bool costs_slice(struct costs *c);
/* Advances the time, and calls the timers that are due. */
void costs_pass(struct costs *c, uint64_t ms);

/* Runs all slices, without an answer; the same, with answers and time, until nothing is left to do. */
void costs_settle(struct costs *c);
void costs_finish(struct costs *c);

/* Returns how many calls are in flight or queued. */
size_t costs_calls(const struct costs *c);
/* Returns whether some of a client's requests have no reply yet. */
bool costs_waits(const struct costs *c, size_t client);

#endif
