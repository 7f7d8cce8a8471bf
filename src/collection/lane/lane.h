/*
 * A lane, as machines see it. A machine carries out the lane's batch, whose operations are of one
 * kind. It finishes with lane_end, or calls lane_end_first for each operation and then lane_next.
 */
#ifndef COLLECTION_LANE_LANE_H
#define COLLECTION_LANE_LANE_H

#include "collection/lane/crowd.h"
#include "collection/lane/lanes.h"
#include "collection/lane/queue.h"
#include "collection/text/oplog.h"

enum { LANES_MEASURED = 1024 };

enum {
	LANE_ATTEMPTS = 16,        /* races that a batch may lose to other writers */
	LANE_ROUNDS = 32,          /* rounds of these attempts, if it depends on other proxies */
	LANE_MERGE_MAX = 32 * 1024 /* bytes of log in one append; a longer log is sent in chunks */
};

/* Receives the result of lane_call. */
typedef void lane_step(struct lane *lane, const struct result *r);
/* Receives the outcome of a sub-operation; `failure` is set with OUTCOME_FAILED, and borrowed. */
typedef void lane_after(
	struct lane *lane, enum outcome_status status, const struct result *failure);

struct cache;
struct segment_cache;
struct aheads;

struct lanes {
	struct env *env;
	const struct lane_machines *machines;
	struct lane **buckets; /* bucket_count is a power of two */
	size_t bucket_count, count;
	struct queues queues;                /* the queued operations of all lanes */
	struct cache *cache;                 /* set/: views */
	struct segment_cache *segment_cache; /* list/: segments */
	struct aheads *aheads;               /* rewrite/: bases that were read after a write */
	LIST_HEAD(, merge) merges;           /* set/: the merges in progress */
	size_t merge_count;
	size_t background; /* calls in flight that belong to no lane and no merge */
	struct crowds crowds;
	struct lanes_stats stats;
	uint64_t measured[LANES_MEASURED];  /* key hashes with seconds; see lane_is_measured */
	uint64_t compacted[LANES_MEASURED]; /* the same of sets with copies; see lane_grew */
};

struct lane {
	struct lane *next; /* in the same bucket */
	uint64_t hash;
	struct lanes *lanes;
	const struct collection_rule *rule; /* of the key */
	struct waiter waiter;               /* of the call in flight; its key is the lane's copy */
	lane_step *step;                    /* receives the result of that call */
	struct waiter look;                 /* of a concurrent read of the base's size */
	struct waiter behind;   /* waiter of a read of the base, in flight after a write */
	lane_step *behind_read; /* receives the result of that read; NULL: it is discarded */
	struct queue queue;
	struct op_queue batch; /* operations that the machine carries out */
	struct op_queue reads; /* READ operations to carry out after the batch */
	struct buf log;        /* the joined logs of the batch */
	size_t log_done;       /* bytes of lane_log() that are stored */
	size_t written;        /* log bytes of the last append */
	size_t full;           /* size of the base for which there was no room to append; else 0 */
	void *work;            /* state of the machine */
	unsigned attempts;
	size_t used; /* bytes that are charged to the first operation's client; see lane_use */
	size_t kept; /* the part of them that the machine needs; see lane_keep */
	bool running, looking, reads_behind, reads_along;
	bool created; /* the batch created the collection */
	bool pushes;  /* the last append pushed elements of a list */
	bool grown;   /* the key is crowded and its base is too large: hold after the batch */
	struct waiter hold;
	uint64_t hold_until; /* milliseconds of env.now; 0 if the lane does not hold */
	struct waiter collect;
	size_t missing;            /* while it collects: operations still to arrive; else 0 */
	size_t appended;           /* right after an append: its number of operations; else 0 */
	bool collect_runs;         /* the timer of `collect` is running */
	bool compaction_requested; /* the lane has queued a COMPACT */
	char key[];
};

struct env *lane_env(const struct lane *lane);

/* Sends a call on the lane's key; sets `key` and `server` in it. `step` receives the result. */
void lane_call(struct lane *lane, struct call *call, lane_step *step);

/*
 * lane_is_over is env_is_over. If it returns true, lane_pause schedules `step`, with an empty
 * result, in the next slice of the client of the batch's first operation.
 */
bool lane_is_over(const struct lane *lane, size_t steps);
void lane_pause(struct lane *lane, lane_step *step);

/* Counts the steps, pauses if necessary, and returns whether it paused. */
bool lane_pauses(struct lane *lane, size_t steps, lane_step *step);

/*
 * lane_use sets the bytes of an unfinished answer. The client of the first operation is charged
 * for them until the operation ends. lane_keep sets the bytes that the machine holds: they are
 * charged to the same client and, when its operation has ended, to that of the next one. The
 * machine sets them to 0 before the batch ends.
 */
void lane_use(struct lane *lane, size_t bytes);
void lane_keep(struct lane *lane, size_t bytes);

/*
 * Charges the bytes of a rewritten part or base to the clients whose writes the lane carries
 * out, but not for background compaction. lanes_charge finds the lane by its key.
 */
void lane_charge(struct lane *lane, size_t bytes);
void lanes_charge(struct lanes *lanes, struct slice key, size_t bytes);

/* Reads the size of the base in the background, and passes it to lane_grew. */
void lane_look_at_size(struct lane *lane);

/*
 * Reads the base in the background after the calls sent so far, one such read at a time. `step`
 * gets the result, never within this call, unless lane_forget_behind is called first.
 */
void lane_read_behind(struct lane *lane, lane_step *step);
void lane_forget_behind(struct lane *lane);

/* Redirects the result of that read to `step`. False if none is in flight, or it was cancelled. */
bool lane_await_behind(struct lane *lane, lane_step *step) __attribute__((warn_unused_result));

/* If READs follow the batch: reads the base after its last call. Sets reads_along for them. */
void lane_read_along(struct lane *lane);

/* Called when the batch is empty: starts the next one. Frees the lane if nothing is queued. */
void lane_next(struct lane *lane);

/* Returns the first operation of the batch; NULL if the batch is empty. */
struct op *lane_first(const struct lane *lane);

/* Calls `done` of the first operation of the batch (lane_end_first), or of all of them. */
void lane_end_first(struct lane *lane, const struct outcome *outcome);
void lane_end_all(struct lane *lane, const struct outcome *outcome);

/* Ends all operations of the batch, and calls lane_next. `result` is outcome.result, or NULL. */
void lane_end(struct lane *lane, enum outcome_status status, const struct result *result);

/* Counts a lost race. Returns whether the batch may retry. */
bool lane_may_retry(struct lane *lane);
/* The same as lane_may_retry, but ends a batch that may not retry with OUTCOME_BUSY. */
bool lane_retry(struct lane *lane);

/* Returns the bytes of log that trigger compaction of the lane's key. */
size_t lane_log_size(const struct lane *lane);

/* Queues a COMPACT to run after the batch; for a crowded key the lanes that hold decide on that. */
void lane_request_compaction(struct lane *lane);

/* Handles a new size of the base. If too large, queues a COMPACT or, for a crowded key, holds. */
void lane_grew(struct lane *lane, size_t size);

/* Returns whether to read the size of the base after a write because the key is crowded. Random. */
bool lane_looks_often(struct lane *lane);

#endif
