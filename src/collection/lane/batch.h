/* Functions on a lane's batch for the machines of all encodings. */
#ifndef COLLECTION_LANE_BATCH_H
#define COLLECTION_LANE_BATCH_H

#include "collection/account.h"
#include "collection/lane/lane.h"
#include "collection/list_request.h"

struct segmented_list;

/* Statistics: counts the batch as one append of all its operations, or each operation as a read. */
void lane_count_appends(struct lane *lane);
void lane_count_reads(struct lane *lane);

/*
 * Returns whether to check the key after writing `bytes` of log. Random; on average one check
 * for each quarter of the log size that triggers compaction.
 */
bool lane_by_chance(struct lane *lane, size_t bytes);

/*
 * lane_merge_log joins the logs of the batch, in reverse order if they are prepended; none of
 * it may be stored yet. lane_log returns the joined log, borrowed; for a batch of one operation
 * it is the operation's own log.
 */
void lane_merge_log(struct lane *lane);
struct slice lane_log(const struct lane *lane);

/*
 * For a missing collection: ends all operations before the first one with `create`, as missing.
 * Returns false if none is left.
 */
bool lane_end_missing(struct lane *lane);

/*
 * Returns the outcome of a REPLACE whose condition does not hold, else OUTCOME_DONE. `cas` is
 * the CAS token of the collection.
 */
enum outcome_status lane_condition(const struct lane *lane, bool there, uint64_t cas);

/* Ends the reads at the head of the batch whose clients have disconnected, as missing. */
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

/*
 * Ends a batch of LIST operations with their outcomes. `text` is their joined text, `base` the
 * reply about the base.
 */
void lane_answer_lists(struct lane *lane, struct slice text, const struct result *base);

/*
 * Answers a batch of LIST operations that read `list`, one after the other. `slice` carries out
 * a part of a request, and returns false if it must be called again. `text` is the machine's
 * buffer for the unfinished answer, and empty at first. Returns false if the lane must pause;
 * then it must be called again.
 */
typedef bool list_slice(
	struct segmented_list *list, struct list_request *request, struct buf *text);
bool lane_answer_list_reads(struct lane *lane, list_slice *slice, struct segmented_list *list,
	struct buf *text, const struct result *base) __attribute__((warn_unused_result));

/* Returns whether the batch, which consists of LIST operations, does not change the list. */
bool lane_reads_list(const struct lane *lane);

/*
 * lane_is_measured returns whether to measure the lane's set or list for env.measured: false if
 * that was done in the same second. If true, call lane_measured with the number of its members
 * or elements, and its stored bytes.
 */
bool lane_is_measured(struct lane *lane);
void lane_measured(struct lane *lane, uint64_t members, uint64_t bytes);

/*
 * An estimate for a set with runs; `members` and `bytes` count only its base. A removal cancels
 * two entries: itself, and the addition in an older run. Removals of non-members are ignored.
 */
void lane_measured_runs(struct lane *lane, uint64_t members, uint64_t bytes, struct slice refs);

/* Returns the outcome for a base that cannot be read; counts the base if it is corrupt. */
enum outcome_status lane_unreadable(struct lane *lane, enum oplog_form form);

/*
 * Returns whether a base is that of a list, by its mark or, without a mark, by the
 * rule of the key.
 */
bool lane_is_list(const struct lane *lane, const struct oplog_base *base);

#endif
