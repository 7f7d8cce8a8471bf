/*
 * The notes of a worker for operators: its hot keys, the largest sets and lists, and the last
 * slow requests. Written by the worker and read by other threads, with a lock.
 *
 * Hot keys are the keys with most requests, and the keys with most bytes, in a sample of 1 in
 * TOPK_SAMPLE. Each key of a request counts, with an equal share of the bytes of the request
 * and its reply. Every NOTES_HALF_LIFE seconds of the monotonic clock all earlier counts are
 * halved. The worker takes the lock only for sampled keys.
 */
#ifndef MEASURE_NOTES_H
#define MEASURE_NOTES_H

#include <pthread.h>
#include <stdbool.h>

#include "util/escape.h"
#include "util/topk.h"

enum hot_by { HOT_BY_REQUESTS, HOT_BY_BYTES, HOT_KINDS };

/* A large collection that was not read for LARGE_FORGET seconds is dropped. */
enum { NOTES_HALF_LIFE = 300, LARGE_ENTRIES = 32, LARGE_FORGET = 3600 };
enum { REQUEST_UNIT = 1 << 20 }; /* One request, so that integers can add parts of it. */
enum { SLOW_REQUESTS = 128, SLOW_KEY = 64, SLOW_CLIENT = 64, SLOW_SERVER = 64 };

/* Sums over all sampled keys of several workers. */
struct hot_total {
	uint64_t weight;
	uint64_t requests; /* Times REQUEST_UNIT. */
};

/* A set or list that was read or compacted lately. */
struct large_collection {
	struct topk_key top; /* Its weight is the number of stored bytes, without indexes. */
	/*
	 * Number of members or elements. Approximate for a set with tables, since removals of
	 * absent members count too.
	 */
	uint64_t members;
	int64_t seen; /* Unix time of the last read. */
};

struct slow_request {
	uint64_t time;                   /* Unix time of the reply, in milliseconds. */
	char client[SLOW_CLIENT];        /* "address:port", or "unix" */
	const char *command;             /* Name of the command, or "" if none; constant. */
	char key[ESCAPE_SIZE(SLOW_KEY)]; /* Escaped and truncated; "" for none. */
	/* The server whose reply was received last; "" if unknown. */
	char server[SLOW_SERVER];
	uint64_t took; /* Microseconds in all; the next three are parts of it. */
	/*
	 * Time before that call was made: queued for a turn, in a lane, or for earlier calls of
	 * the same request.
	 */
	uint64_t waited;
	uint64_t on_server; /* Time from that call to its reply. */
	/* Time at the end for which replies were pending because the client did not read them. */
	uint64_t on_client;
};

struct notes {
	struct topk_sample sample; /* Used only by the worker, as the next two. */
	/* The loop's microseconds when the last slow request was answered. */
	uint64_t slow_turn;
	size_t slow_in_turn;  /* Number of slow requests answered in that turn so far. */
	pthread_mutex_t lock; /* Protects all members below. */
	uint64_t seed;        /* Seed of hashes. */
	/* Milliseconds of the monotonic clock at the start or the last reset. */
	uint64_t since;
	struct topk hot[HOT_KINDS];
	/*
	 * By how much the sampled keys exceed their requests, times REQUEST_UNIT: a key of a
	 * request with n keys adds 1 - 1/n. It is halved together with the weights. It is exactly
	 * 0 if no request has several keys.
	 */
	uint64_t excess;
	size_t large_count;
	/* Bytes of the smallest entry, or fewer, at the Unix time `searched`. */
	uint64_t large_least;
	int64_t searched;
	/*
	 * The last bytes of each key, so that most keys that are not in the list need no
	 * comparison.
	 */
	uint64_t marks[LARGE_ENTRIES];
	struct large_collection large[LARGE_ENTRIES];
	/*
	 * Number of slow requests since the start or the last reset. The last one is at
	 * (slow_count - 1) % SLOW_REQUESTS.
	 */
	uint64_t slow_count;
	struct slow_request slow[SLOW_REQUESTS];
};

/*
 * Initializes the notes. `random` is any number unknown to clients. `now` is the monotonic
 * clock in milliseconds, here and below.
 */
void notes_init(struct notes *notes, uint64_t random, uint64_t now);
void notes_fini(struct notes *notes);

/* Clear all notes, or only the slow requests. May be called from any thread. */
void notes_reset(struct notes *notes, uint64_t now);
void notes_reset_slow(struct notes *notes);

/* --- hot keys --- */

/*
 * Counts the sampled ones of the `count` keys of a request, which are separated by spaces.
 * `bytes` are the bytes of all keys. Called by the worker's thread when the sample does not
 * pass all of them.
 */
void notes_sample_keys(
	struct notes *notes, struct slice keys, uint64_t count, uint64_t bytes, uint64_t now);

/*
 * Copies the entries of one kind to `out`, not scaled by the sample, and returns their number.
 * Adds the weight of all keys, and their requests, to `total`. May be called from any thread.
 */
size_t notes_copy_hot(struct notes *notes, enum hot_by by, uint64_t now,
	struct topk_key out[TOPK_ENTRIES], struct hot_total *total);

/*
 * Returns the seconds since the start or the last reset, halved as the counts are: a weight
 * divided by them is a rate.
 */
double notes_seconds(struct notes *notes, uint64_t now);

/* --- large sets and lists --- */

/* Records a set or list that was read at this Unix time. */
void notes_add_large(
	struct notes *notes, struct slice key, uint64_t members, uint64_t bytes, int64_t now);

/* Copies the collections read lately, unordered. Returns their number. For any thread. */
size_t notes_copy_large(
	struct notes *notes, int64_t now, struct large_collection out[LARGE_ENTRIES]);

/* For topk_merge(), with entries of several workers: keeps the one that was read last. */
void notes_join_large(void *into, const void *from);

/* --- slow requests --- */

/*
 * Returns whether one more slow request should be added for this turn, which is identified by
 * its microsecond. If thousands of slow requests are answered in one turn, the last ones add no
 * information, and recording all would delay the next requests.
 */
static inline bool notes_have_room(struct notes *notes, uint64_t turn)
{
	notes->slow_in_turn = notes->slow_turn == turn ? notes->slow_in_turn + 1 : 1;
	notes->slow_turn = turn;
	return notes->slow_in_turn <= SLOW_REQUESTS;
}

/* Adds a copy of a request. */
void notes_add_slow(struct notes *notes, const struct slow_request *request);

/*
 * Copies the recorded slow requests, unordered, and returns their number. Adds the number of
 * all slow requests to `count`. May be called from any thread.
 */
size_t notes_copy_slow(
	struct notes *notes, struct slow_request out[SLOW_REQUESTS], uint64_t *count);

#endif
