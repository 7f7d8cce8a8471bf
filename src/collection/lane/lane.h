/*
 * A lane, as machines see it. A machine carries out the lane's batch, whose operations are of one kind. It ends with
 * lane_end, or calls lane_end_first for each operation and then lane_next.
 */
#ifndef COLLECTION_LANE_LANE_H
#define COLLECTION_LANE_LANE_H

#include "collection/lane/crowd.h"
#include "collection/lane/lanes.h"
#include "collection/text/oplog.h"

enum { LANES_MEASURED = 1024 };

enum {
	LANE_ATTEMPTS = 16,        /* races that a batch may lose to other writers */
	LANE_ROUNDS = 32,          /* times that an operation which waits for other proxies makes such attempts again */
	LANE_MERGE_MAX = 32 * 1024 /* maximum bytes of log in one append; a longer log is sent in chunks */
};

/* Receives the result of lane_call. */
typedef void lane_step(struct lane *lane, const struct result *r);
/* Receives the outcome of a part of a machine; `failure` is set with OUTCOME_FAILED, borrowed. */
typedef void lane_after(struct lane *lane, enum outcome_status status, const struct result *failure);

struct cache;
struct segment_cache;
struct aheads;

struct lanes {
	struct env *env;
	const struct lane_machines *machines;
	struct lane **buckets; /* bucket_count is a power of two */
	size_t bucket_count, count;
	struct cache *cache;                 /* set/: views */
	struct segment_cache *segment_cache; /* list/: segments */
	struct aheads *aheads;               /* rewrite/: bases that were read behind a write */
	LIST_HEAD(, merge) merges;           /* set/: the merges in progress */
	size_t merge_count;
	size_t background; /* calls in flight that no lane and no merge waits for */
	struct crowds crowds;
	struct lanes_stats stats;
	uint64_t measured[LANES_MEASURED]; /* the last key of each hash and its second, mixed; see lane_is_measured */
};

struct lane {
	struct lane *next; /* in the same bucket */
	uint64_t hash;
	struct lanes *lanes;
	const struct collection_rule *rule; /* of the key */
	struct waiter waiter;               /* of the call in flight; waiter.key is the lane's copy of its key */
	lane_step *step;                    /* receives the result of that call */
	struct waiter look;                 /* of a read of the base's size, in flight beside that call */
	struct waiter behind;               /* of a read of the base, in flight behind a write */
	lane_step *behind_read;             /* receives the result of that read; NULL: nobody */
	struct op_queue waiting;
	struct op_queue batch; /* operations that the machine carries out */
	struct op_queue reads; /* READ operations to carry out behind the batch */
	struct buf log;        /* the joined logs of the batch */
	size_t log_done;       /* bytes of lane_log() that are stored */
	size_t written;        /* bytes of the last append's log */
	void *work;            /* state of the machine */
	unsigned attempts;
	size_t used; /* as lane_use says */
	bool running, looking, reads_behind, reads_along;
	bool created; /* the batch created the collection */
	bool pushes;  /* the last append pushed elements of a list */
	bool grown;   /* the key is crowded and its base too large: hold after the batch */
	struct waiter hold;
	uint64_t hold_until; /* milliseconds of env.now; 0 if the lane does not hold */
	struct waiter collect;
	size_t missing;            /* while the lane collects: operations that must still come; else 0 */
	size_t appended;           /* right after an append: operations that it carried out; else 0 */
	bool collect_runs;         /* the timer of `collect` */
	bool compaction_requested; /* the lane has queued a COMPACT */
	char key[];
};

struct env *lane_env(const struct lane *lane);

/* Sends a call on the lane's key, `key` and `server` being filled in. `step` receives the result. */
void lane_call(struct lane *lane, struct call call, lane_step *step);

/*
 * Whether the work of the lane must pause after so many steps, as env_is_over. If so, lane_pause has `step` called, with an empty result,
 * in the next slice of the client whose operation is the first of the batch.
 */
bool lane_is_over(const struct lane *lane, size_t steps);
void lane_pause(struct lane *lane, lane_step *step);

/* Counts the steps, and pauses if it must: then gives true. */
bool lane_pauses(struct lane *lane, size_t steps, lane_step *step);

/* An unfinished answer to the first operation takes so many bytes, which its client holds until the operation ends. */
void lane_use(struct lane *lane, size_t bytes);

/*
 * A part of the set or list, or its base, is rewritten. The clients whose writes the lane carries out share the bytes. Nobody is
 * charged for a compaction in the background. lanes_charge finds the lane by the key.
 */
void lane_charge(struct lane *lane, size_t bytes);
void lanes_charge(struct lanes *lanes, struct slice key, size_t bytes);

/* Reads the size of the base in the background, and calls lane_grew with it. */
void lane_look_at_size(struct lane *lane);

/*
 * Reads the base behind the calls that were sent, in the background: one such read at a time. `step` receives the result, never within
 * this function, unless lane_forget_behind is called before.
 */
void lane_read_behind(struct lane *lane, lane_step *step);
void lane_forget_behind(struct lane *lane);

/* Has `step` receive the result of that read instead. False if none is in flight, or it was forgotten. */
bool lane_await_behind(struct lane *lane, lane_step *step) __attribute__((warn_unused_result));

/* If READ operations stand behind the batch: reads their base behind its last call, and sets reads_along until the next batch. */
void lane_read_along(struct lane *lane);

/* Called when the batch is empty: starts the next one. Frees the lane if nothing waits. */
void lane_next(struct lane *lane);

/* The first operation of the batch; NULL if that is empty. */
struct op *lane_first(const struct lane *lane);

/* Calls `done` of the first operation of the batch, or of all of them, with the outcome. */
void lane_end_first(struct lane *lane, const struct outcome *outcome);
void lane_end_all(struct lane *lane, const struct outcome *outcome);

/* Ends all operations of the batch, and calls lane_next. `result` is the one of the outcome, or NULL. */
void lane_end(struct lane *lane, enum outcome_status status, const struct result *result);

/* Counts a lost race; true if the batch may try again. */
bool lane_may_retry(struct lane *lane);
/* The same; if the batch may not try again, ends it with OUTCOME_BUSY. */
bool lane_retry(struct lane *lane);

/* Bytes of log that trigger compaction of the lane's key. */
size_t lane_log_size(const struct lane *lane);

/* Queues a COMPACT to run after the batch, unless the key is crowded: then the lanes that hold decide who compacts. */
void lane_request_compaction(struct lane *lane);

/* Takes the size of the base. If it is too large, queues a COMPACT or, for a crowded key, holds after the batch. */
void lane_grew(struct lane *lane, size_t size);

/* Whether to read the size of the base after a write because the key is crowded. Random. */
bool lane_looks_often(struct lane *lane);

#endif
