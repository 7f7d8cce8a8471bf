/* The operations of a lane's batch, for the machines of all encodings. */
#ifndef COLLECTION_LANE_BATCH_H
#define COLLECTION_LANE_BATCH_H

#include "collection/account.h"
#include "collection/lane/lane.h"

struct segmented_list;

/* Statistics: counts the batch as one append of all its operations, or each operation as a read. */
void lane_count_appends(struct lane *lane);
void lane_count_reads(struct lane *lane);

/*
 * Whether to check the key after writing `bytes` of log. Random, so that a check is expected once for each quarter of
 * the log size that triggers compaction.
 */
bool lane_by_chance(struct lane *lane, size_t bytes);

/*
 * lane_merge_log joins the logs of the batch, in reverse order if they go to the front; none of it is stored yet. lane_log gives the joined
 * log, borrowed; for a batch of one operation it is the operation's own.
 */
void lane_merge_log(struct lane *lane);
struct slice lane_log(const struct lane *lane);

/* For a missing collection: ends all operations before the first with `create`, as missing. False if none is left. */
bool lane_end_missing(struct lane *lane);

/* The outcome if the condition of a REPLACE does not hold, else OUTCOME_DONE. `cas` is the token of the collection. */
enum outcome_status lane_condition(const struct lane *lane, bool there, uint64_t cas);

/* Ends the first operations of a batch of reads as missing, as long as their clients have gone: nobody wants what they would read. */
void lane_end_abandoned(struct lane *lane);

static inline bool lane_is_abandoned(const struct lane *lane)
{
	const struct op *op = STAILQ_FIRST(&lane->batch);

	return op && op->account && op->account->gone;
}

static inline void lane_drop_abandoned(struct lane *lane)
{
	if (lane_is_abandoned(lane))
		lane_end_abandoned(lane);
}

/* Ends a batch of LIST operations with their outcomes. `text` is their joined text, `base` the reply about the base. */
void lane_answer_lists(struct lane *lane, struct slice text, const struct result *base);

/*
 * Answers a batch of LIST operations that read `list`, each before the next one. `slice` carries out a part of a request; it gives false
 * if it must be called again. `text` is the machine's, empty at first, for what an answer has so far. False if the lane must pause, and
 * then call this again.
 */
typedef bool list_slice(struct segmented_list *list, struct list_request *request, struct buf *text);
bool lane_answer_list_reads(struct lane *lane, list_slice *slice, struct segmented_list *list, struct buf *text,
	const struct result *base) __attribute__((warn_unused_result));

/* Whether the operations of the batch, which are LIST operations, are such as do not change the list. */
bool lane_reads_list(const struct lane *lane);

/*
 * Whether to measure the lane's set or list for env.measured: not if that was done in the same second. If so, call
 * lane_measured with its members or elements, and its stored bytes.
 */
bool lane_is_measured(struct lane *lane);
void lane_measured(struct lane *lane, uint64_t members, uint64_t bytes);

/*
 * The same for a set with runs, estimated: `members` and `bytes` are those of its base. A removal cancels two entries: itself, and
 * the addition in an older run. Removals of non-members are ignored.
 */
void lane_measured_runs(struct lane *lane, uint64_t members, uint64_t bytes, struct slice refs);

/* The outcome for a base that cannot be read; counts it if it is corrupt. */
enum outcome_status lane_unreadable(struct lane *lane, enum oplog_form form);

/* Whether a base is that of a list, by its mark or else by the rule of the key. */
bool lane_is_list(const struct lane *lane, const struct oplog_base *base);

#endif
