/* The inside of a lane, for the machines that run in it: append, fetch, replace, count, commit, compact, sweep. */
#ifndef COLLECTION_LANE_H
#define COLLECTION_LANE_H

#include "collection/crowd.h"
#include "collection/lanes.h"
#include "collection/set/cache.h"
#include "collection/shelf.h"
#include "collection/text/oplog.h"

enum {
	LANE_RELATIVE_MAX = 60 * 60 * 24 * 30, /* seconds; memcached takes a longer time to live for a date */
	LANE_ATTEMPTS = 16,                    /* rounds that a batch may lose to other proxies */
	LANE_MERGE_MAX =
		32 * 1024 /* bytes of log that neighbouring appends are merged up to, and a long one is cut to */
};

struct lane;

/* What a call's result is for; what is told how a commit or a compaction went, with the failure of OUTCOME_FAILED. */
typedef void lane_step(struct lane *lane, const struct result *r);
typedef void lane_after(struct lane *lane, enum outcome_status status, const struct result *failure);

struct lanes {
	struct host *host;
	struct lane **buckets; /* their number is a power of two */
	size_t bucket_count, count;
	struct cache *cache;
	struct shelf shelf;
	struct merge *merges; /* those under way */
	size_t merge_count;
	size_t background; /* calls under way that no lane and no merge waits for */
	struct crowds crowds;
	struct lanes_stats stats;
};

/* What only some machines need: looks and commits. */
struct lane_rest {
	struct result looked; /* what a look brought, without its slices */
	struct lane_commit {
		struct slice prefix, replacement;
		bool anywhere;
		lane_after *after;
		int64_t ttl;     /* that the base had in the read, and then kept */
		int64_t exptime; /* that was sent for it */
		lane_step *mended;
		unsigned attempts;
		struct buf value;
	} commit;
};

struct lane {
	struct lane *next; /* in its bucket of the table */
	uint64_t hash;
	struct lanes *lanes;
	struct waiter waiter;   /* of the one call in flight; waiter.key is the lane's own copy */
	lane_step *step;        /* what its result is for */
	struct waiter look;     /* of a second call, right before or behind another */
	struct buf looked_refs; /* the references in the value that it brought */
	struct op_queue waiting;
	struct op_queue batch; /* what the machine is working on */
	struct op_queue reads; /* what is read behind that */
	struct buf log;        /* what the machine is writing */
	size_t log_done;       /* bytes of the log that are written */
	size_t written;        /* bytes of the last append */
	void *work;            /* the machine's own */
	unsigned attempts;
	bool running, looking;
	bool created; /* the batch made the collection */
	bool pushes;  /* what is added are items of a list */
	bool grown;   /* the base of a crowded key is too large */
	struct waiter hold;
	uint64_t hold_until; /* milliseconds; 0 when the lane does not hold */
	bool tending;        /* a compaction of the lane's own waits or runs */

	struct lane_rest *rest; /* what most lanes never need */
	char key[];
};

/* Each starts its machine on the lane's batch, which is of one kind, and ends it with lane_finish. */
void append_start(struct lane *lane);
void fetch_start(struct lane *lane);
void replace_start(struct lane *lane);
void count_start(struct lane *lane);
void commit_start(struct lane *lane);
void compact_start(struct lane *lane);
void sweep_start(struct lane *lane);
void list_start(struct lane *lane);

/* Any of them, where the key's rule has another encoding than oplog. */
struct encoding;
void coded_start(struct lane *lane, const struct encoding *encoding, enum op_kind kind);

struct host *lane_host(const struct lane *lane);

/* Made when it is first asked for. */
struct lane_rest *lane_rest(struct lane *lane);

/* Sends a call about the lane's key and has `step` called with the result. */
void lane_call(struct lane *lane, struct call call, lane_step *step);

/*
 * Asks about the base, behind the calls that were sent and before those that follow, without waiting. What comes is in
 * lane_rest(lane)->looked before the result of any later call; a base that has grown too large is compacted next. False when another
 * look is under way.
 */
bool lane_look(struct lane *lane, unsigned want);

/*
 * Has `replacement` take the place of `prefix` at the head of the base, by CAS, whatever was appended meanwhile; time to live
 * and flags stay. Both slices must stay where they are until `after` is told how it went: OUTCOME_BUSY when the base does not
 * begin with the prefix any more, or others won every race. `read` is a reply with value, cas and ttl to begin with, or NULL.
 */
void commit_run(
	struct lane *lane, struct slice prefix, struct slice replacement, const struct result *read, lane_after *after);

/*
 * The same for `part` wherever in the base it stands, whatever was put in front of it or behind: for a replacement that says
 * just what the part does, in any surroundings.
 */
void commit_run_anywhere(struct lane *lane, struct slice part, struct slice replacement, lane_after *after);

/*
 * Stores `value` in place of the base that `read` is a reply about, by CAS, with its flags and `exptime`, which is its time to
 * live; right before that the time to live is looked at.
 */
void commit_cas(struct lane *lane, struct slice value, const struct result *read, int64_t exptime, lane_step *step);

/*
 * When that is stored: sees to it that the time to live is the one that was found right before. `step` is called then, or at once
 * with `r`.
 */
void commit_mend_ttl(struct lane *lane, lane_step *step, const struct result *r);

/* Folds the log of the base, and spills it when it is long; told as above. */
void compact_run(struct lane *lane, lane_after *after);

/* The same for a list; `r` is the read of its base. */
void list_compact(struct lane *lane, const struct result *r, lane_after *after);

/* The outcome where a base is in a form that cannot be read; counts what is corrupt. */
enum outcome_status lane_unreadable(struct lane *lane, enum oplog_form form);

/* Bytes of log that the base may have before it is compacted: those of a set, or of anything else. */
size_t lane_log_size(const struct lane *lane);

/* Whether the base of the lane's key is that of a list. */
bool lane_is_list(const struct lane *lane, const struct oplog_base *base);

/*
 * Merges runs that the block of a base refers to where that is worth it, in the background; see set/merge.c. What is written
 * gets `exptime`.
 */
void merge_consider(struct lanes *lanes, struct slice key, struct slice block, int64_t exptime);

/* Merges all of them; `op` is done when that is, or when a merge that was under way is. */
void merge_force(struct lanes *lanes, struct slice key, struct slice block, int64_t exptime, struct op *op);

/* The first operation of the batch; NULL when it is empty. */
struct op *lane_first(const struct lane *lane);

/* Counts the batch as one append of all its operations, or as so many reads. */
void lane_count_appends(struct lane *lane);
void lane_count_reads(struct lane *lane);

/* Whether to see what became of the key behind a write of so many bytes: by chance, once for a quarter of a log that is written. */
bool lane_by_chance(struct lane *lane, size_t bytes);

/*
 * Puts the logs of the batch together, those that go in front with the last one first; lane_log gives what they come to, which
 * where one operation is all of the batch is its own, not copied.
 */
void lane_merge_log(struct lane *lane);
struct slice lane_log(const struct lane *lane);

/* Where there is nothing yet, what comes before the first operation that creates finds nothing. False when that is all. */
bool lane_end_missing(struct lane *lane);

/* Ends a batch of LIST operations that were carried out: `text` is what they wrote, `base` the reply about the base. */
void lane_answer_lists(struct lane *lane, struct slice text, const struct result *base);

/* The base of a collection when it was last found to have lost a segment. */
struct lane_broken {
	bool known;
	uint64_t cas, connection;
};

void lane_note_broken(struct lane_broken *broken, const struct result *base);
/* The same base as then. */
bool lane_is_broken(const struct lane_broken *broken, const struct result *base);

/* Removes the base that was read, by CAS with an end in the past, so that what was written since keeps it. */
void lane_expire_base(struct lane *lane, const struct result *base, lane_step *step);

/* Has the key compacted as soon as the batch is done. The first leaves that to others where the key is crowded. */
void lane_tend(struct lane *lane);
void lane_compact(struct lane *lane);

/* Says how large the base is: where that is too large it is compacted, or in a crowd the lane holds when the batch is done. */
void lane_grew(struct lane *lane, size_t size);

/* Whether to look at the size of a base behind a write because its key is crowded. */
bool lane_looks_often(struct lane *lane);

/* hold.c: holds where that is due; true when it does. */
bool hold_start(struct lane *lane);

/* Carries out what waits next. There must be something. */
void lane_run(struct lane *lane);

/* Ends the first operation of the batch, or all of them, with this outcome. */
void lane_end_first(struct lane *lane, const struct outcome *outcome);
void lane_end_all(struct lane *lane, const struct outcome *outcome);

/* Ends the batch with the same status, or with the failure in `r`, and goes on with what waits. The lane may be gone then. */
void lane_finish(struct lane *lane, enum outcome_status status);
void lane_finish_failed(struct lane *lane, const struct result *r);

/* Goes on with what waits when the batch is empty. The lane may be gone then. */
void lane_next(struct lane *lane);

/* Counts one lost round; false when there have been too many, and then the batch was ended with OUTCOME_BUSY. */
bool lane_retry(struct lane *lane);

/*
 * What to give memcached as time to live so that an item lives `ttl` seconds from now on; false when that cannot be kept: it is
 * not known, or the item is about to end.
 */
bool lane_exptime(const struct host *host, int64_t ttl, int64_t *exptime);

/*
 * After a CAS that gave an item `exptime` so that it lives as long as the `ttl` of the read said: whether a touch is due, and
 * with which time. One is when `looked`, asked right before the CAS, shows that somebody touched the item meanwhile; and, for
 * a date, when `after` shows that it came out a little different: memcached's clock and ours need not tick together. (What
 * differs by more was given to it since.) A date is to be looked at after the CAS, any other time need not be.
 */
bool lane_touch_is_due(const struct host *host, int64_t ttl, const struct result *looked, int64_t *exptime);
bool lane_date_is_off(int64_t ttl, const struct result *after, int64_t *exptime);

static inline bool lane_is_date(int64_t exptime)
{
	return exptime > LANE_RELATIVE_MAX;
}

#endif
