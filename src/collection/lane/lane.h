/*
 * The inside of a lane, for the machines that run in it. A machine works on the lane's batch, which is of one kind, and ends
 * it with lane_finish or by ending each operation and calling lane_next.
 */
#ifndef COLLECTION_LANE_LANE_H
#define COLLECTION_LANE_LANE_H

#include "collection/lane/crowd.h"
#include "collection/lane/lanes.h"
#include "collection/text/oplog.h"

enum {
	LANE_ATTEMPTS = 16, /* races that a batch may lose to other proxies */
	LANE_MERGE_MAX =
		32 * 1024 /* bytes of log in one append: neighbours are merged up to that, a longer one is cut */
};

struct lane;

/* Gets the result of a lane's call. */
typedef void lane_step(struct lane *lane, const struct result *r);
/* Gets the outcome of a part of a machine; `failure` belongs to OUTCOME_FAILED. */
typedef void lane_after(struct lane *lane, enum outcome_status status, const struct result *failure);

struct cache;
struct segment_cache;
struct merge;

struct lanes {
	struct env *env;
	const struct lane_machines *machines;
	struct lane **buckets; /* their number is a power of two */
	size_t bucket_count, count;
	struct cache *cache;                 /* set/: views */
	struct segment_cache *segment_cache; /* list/: segments */
	struct merge *merges;                /* set/: those under way */
	size_t merge_count;
	size_t background; /* calls under way that no lane and no merge waits for */
	struct crowds crowds;
	struct lanes_stats stats;
};

struct lane {
	struct lane *next; /* in its bucket of the table */
	uint64_t hash;
	struct lanes *lanes;
	const struct collection_rule *rule; /* of the key */
	struct waiter waiter;               /* of the one call in flight; waiter.key is the lane's own copy */
	lane_step *step;                    /* gets its result */
	struct waiter look;                 /* of a read of the base's size beside it */
	struct op_queue waiting;
	struct op_queue batch; /* what the machine works on */
	struct op_queue reads; /* to be read behind that */
	struct buf log;        /* what the machine writes */
	size_t log_done;       /* bytes of the log that are written */
	size_t written;        /* bytes of the last append */
	void *work;            /* the machine's own */
	unsigned attempts;
	bool running, looking;
	bool created; /* the batch made the collection */
	bool pushes;  /* what is added are items of a list */
	bool grown;   /* the base of a crowded key is too large */
	struct waiter hold;
	uint64_t hold_until;       /* milliseconds; 0 when the lane does not hold */
	bool compaction_requested; /* one of the lane's own waits or runs */
	char key[];
};

struct env *lane_env(const struct lane *lane);

/* Sends a call about the lane's key; `step` gets the result. */
void lane_call(struct lane *lane, struct call call, lane_step *step);

/* Reads the size of the base, without waiting: a base that has grown too large is compacted next. */
void lane_look_at_size(struct lane *lane);

/* Starts the machine for what waits next. There must be something. */
void lane_run(struct lane *lane);

/* Goes on with what waits when the batch is empty. The lane may be gone then. */
void lane_next(struct lane *lane);

/* Ends the first operation of the batch, or all of them, with this outcome. */
void lane_end_first(struct lane *lane, const struct outcome *outcome);
void lane_end_all(struct lane *lane, const struct outcome *outcome);

/* Ends the batch with the same status, or with the failure in `r`, and calls lane_next. */
void lane_finish(struct lane *lane, enum outcome_status status);
void lane_finish_failed(struct lane *lane, const struct result *r);

/* Counts a lost race: whether the batch may try again. */
bool lane_may_retry(struct lane *lane);
/* The same; when it may not, ends the batch with OUTCOME_BUSY. */
bool lane_retry(struct lane *lane);

/* --- batch.c: what machines do alike with the operations of a batch --- */

/* The first operation of the batch; NULL when it is empty. */
struct op *lane_first(const struct lane *lane);

/* Counts the batch as one append of all its operations, or as so many reads. */
void lane_count_appends(struct lane *lane);
void lane_count_reads(struct lane *lane);

/* Whether to look at the key behind a write of so many bytes: by chance, once for a quarter of a log that is written. */
bool lane_by_chance(struct lane *lane, size_t bytes);

/*
 * Joins the logs of the batch; those that go in front with the last one first. lane_log gives the result, which is not a copy
 * when the batch is one operation.
 */
void lane_merge_log(struct lane *lane);
struct slice lane_log(const struct lane *lane);

/* For a missing collection: ends, as missing, the operations before the first that creates. False when that is all. */
bool lane_end_missing(struct lane *lane);

/* Ends a batch of LIST operations that were carried out: `text` is what they wrote, `base` the reply about the base. */
void lane_answer_lists(struct lane *lane, struct slice text, const struct result *base);

/* The outcome for a base in a form that cannot be read; counts what is corrupt. */
enum outcome_status lane_unreadable(struct lane *lane, enum oplog_form form);

/* Bytes of log above which the base is compacted: those of a set, or of anything else. */
size_t lane_log_size(const struct lane *lane);

/* Whether a base is that of a list: its mark says so, or the rule of the key. */
bool lane_is_list(const struct lane *lane, const struct oplog_base *base);

/* --- hold.c: when a base is compacted, and holding back appends to crowded keys --- */

/* Has the key compacted as soon as the batch is done. The first leaves that to other proxies when the key is crowded. */
void lane_request_compaction(struct lane *lane);
void lane_compact(struct lane *lane);

/* Notes the size of the base. If it is too large, it is compacted, or the lane of a crowded key holds after the batch. */
void lane_grew(struct lane *lane, size_t size);

/* Whether to look at the size of a base behind a write because its key is crowded. */
bool lane_looks_often(struct lane *lane);

/* Holds when that is due; true when it does. */
bool hold_start(struct lane *lane);

#endif
