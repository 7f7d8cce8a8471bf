/*
 * The notes of a worker for operators: its hot keys, the largest sets and lists, and the last slow requests. The worker writes, and
 * other threads read, both with a lock.
 *
 * Hot keys are those that cause most requests, and those that cause most bytes, of a sample of 1 in TOPK_SAMPLE. Each key of a request
 * counts. Its bytes are an equal share of those of the request and its reply. Every NOTES_HALF_LIFE seconds of the monotonic clock all
 * that was counted before counts half. The worker takes the lock for the sampled keys alone.
 */
#ifndef MEASURE_NOTES_H
#define MEASURE_NOTES_H

#include <pthread.h>
#include <stdbool.h>

#include "util/escape.h"
#include "util/topk.h"

enum hot_by { HOT_BY_REQUESTS, HOT_BY_BYTES, HOT_KINDS };

/* Large collections that were not read for LARGE_FORGET seconds are forgotten. */
enum { NOTES_HALF_LIFE = 300, LARGE_ENTRIES = 32, LARGE_FORGET = 3600 };
enum { SLOW_REQUESTS = 128, SLOW_KEY = 64, SLOW_CLIENT = 64, SLOW_SERVER = 64 };

/* A set or list that was read or compacted lately. */
struct large_collection {
	struct topk_key top; /* weighs as many bytes as are stored, without indexes */
	uint64_t
		members; /* or elements; of a set with tables about as many, since removals of what was never added count */
	int64_t seen; /* Unix time when it was read last */
};

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

struct notes {
	struct topk_sample sample; /* the worker's, as the next two */
	uint64_t slow_turn;        /* microseconds of the loop when the last slow request was answered */
	size_t slow_in_turn;       /* slow requests that were answered then */
	pthread_mutex_t lock;      /* protects all below */
	uint64_t seed;             /* of hashes */
	uint64_t since;            /* milliseconds of the monotonic clock: the start, or the last reset */
	struct topk hot[HOT_KINDS];
	size_t large_count;
	uint64_t large_least; /* bytes of the smallest entry, or fewer, as it was at `searched`, a Unix time */
	int64_t searched;
	uint64_t marks[LARGE_ENTRIES]; /* of the keys, so that most keys that are not in the list need no comparison */
	struct large_collection large[LARGE_ENTRIES];
	uint64_t
		slow_count; /* since the start or the last reset; the last one is at (slow_count - 1) % SLOW_REQUESTS */
	struct slow_request slow[SLOW_REQUESTS];
};

/* `random` is any number that clients do not know. `now` is the monotonic clock in milliseconds, here and below. */
void notes_init(struct notes *notes, uint64_t random, uint64_t now);
void notes_fini(struct notes *notes);

/* Forgets all, or the slow requests. From any thread. */
void notes_reset(struct notes *notes, uint64_t now);
void notes_reset_slow(struct notes *notes);

/* --- hot keys --- */

/*
 * Counts the sampled ones of the `count` keys of a request, separated by spaces if there are several. `bytes` are of all. From the worker's
 * thread, when the sample does not pass all of them.
 */
void notes_sample_keys(struct notes *notes, struct slice keys, uint64_t count, uint64_t bytes, uint64_t now);

/*
 * Copies the entries of one kind to `out`, not scaled by the sample, and gives their number. Adds the weight of all keys to `total`.
 * From any thread.
 */
size_t notes_copy_hot(
	struct notes *notes, enum hot_by by, uint64_t now, struct topk_key out[TOPK_ENTRIES], uint64_t *total);

/* Seconds since the start or the last reset, weighed as what was counted in each: a weight divided by them is a rate. */
double notes_seconds(struct notes *notes, uint64_t now);

/* --- large sets and lists --- */

/* A set or list was read at this Unix time. */
void notes_add_large(struct notes *notes, struct slice key, uint64_t members, uint64_t bytes, int64_t now);

/* Copies those that were read lately, in no order, and gives their number. From any thread. */
size_t notes_copy_large(struct notes *notes, int64_t now, struct large_collection out[LARGE_ENTRIES]);

/* For topk_merge, with entries of several workers: the one that was seen last counts. */
void notes_join_large(void *into, const void *from);

/* --- slow requests --- */

/*
 * Whether one more is to be added that was answered in the turn of this microsecond. When thousands are answered in one turn, the
 * last ones tell no more than the first ones, and noting all would make the next requests slow.
 */
static inline bool notes_have_room(struct notes *notes, uint64_t turn)
{
	notes->slow_in_turn = notes->slow_turn == turn ? notes->slow_in_turn + 1 : 1;
	notes->slow_turn = turn;
	return notes->slow_in_turn <= SLOW_REQUESTS;
}

/* Adds a request, which is copied. */
void notes_add_slow(struct notes *notes, const struct slow_request *request);

/* Copies those that are left, in no order, and gives their number. Adds the number of all to `count`. From any thread. */
size_t notes_copy_slow(struct notes *notes, struct slow_request out[SLOW_REQUESTS], uint64_t *count);

#endif
