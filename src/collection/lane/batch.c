#include "collection/lane/batch.h"

#include "util/random.h"

void lane_count_appends(struct lane *lane)
{
	struct lanes_stats *stats = &lane->lanes->stats;
	const struct op *op;

	lane->appended = 0;
	STAILQ_FOREACH(op, &lane->batch, link)
		lane->appended++;
	stats->appends++;
	stats->appended_operations += lane->appended;
	crowd_appends(&lane->lanes->crowds, lane->hash, (unsigned)lane->appended);
}

void lane_count_reads(struct lane *lane)
{
	const struct op *op;

	STAILQ_FOREACH(op, &lane->batch, link)
		lane->lanes->stats.reads++;
}

bool lane_is_measured(struct lane *lane)
{
	uint64_t *last = &lane->lanes->measured[lane->hash % LANES_MEASURED];
	const struct env *env = lane_env(lane);
	uint64_t now = lane->hash + env->now / 1000;

	if (!env->measured || *last == now)
		return false;
	*last = now;
	return true;
}

void lane_measured(struct lane *lane, uint64_t members, uint64_t bytes)
{
	struct env *env = lane_env(lane);

	env->measured(env, lane->waiter.key, members, bytes);
}

void lane_measured_runs(struct lane *lane, uint64_t members, uint64_t bytes, struct slice refs)
{
	struct oplog_run run;
	uint64_t gone = 0;

	while (oplog_next_run(&refs, &run)) {
		members += run.entries;
		gone += 2 * run.removals;
		bytes += run.bytes;
	}
	lane_measured(lane, members > gone ? members - gone : 0, bytes);
}

/*
 * A set may have a longer log when it is not crowded, but with many writers this must
 * be noticed soon.
 */
bool lane_by_chance(struct lane *lane, size_t bytes)
{
	enum { LOOKS = 4 };
	struct env *env = lane_env(lane);
	bool set = !lane->pushes && lane->rule->type == COLLECTION_SET &&
		lane->rule->encoding == ENCODING_OPLOG;
	size_t size = set ? env->options->log_size : env->options->base_size;

	/* The upper half of a random number, scaled to the range, avoids a division. */
	return (random_next(&env->random) >> 32) * (size / LOOKS) >> 32 < bytes;
}

struct slice lane_log(const struct lane *lane)
{
	const struct op *op = lane_first(lane);

	return STAILQ_NEXT(op, link) ? buf_slice(&lane->log) : op->log;
}

/* The element that was pushed last to the head is the first one. */
static void merge_backwards(struct lane *lane)
{
	size_t size = 0;
	struct op *op;
	char *at;

	STAILQ_FOREACH(op, &lane->batch, link)
		size += op->log.n;
	at = buf_reserve(&lane->log, size) + size;
	STAILQ_FOREACH(op, &lane->batch, link) {
		at -= op->log.n;
		memcpy(at, op->log.p, op->log.n);
	}
	buf_commit(&lane->log, size);
}

void lane_merge_log(struct lane *lane)
{
	struct op *op = lane_first(lane);

	lane->log_done = 0;
	buf_consume(&lane->log, buf_size(&lane->log));
	if (!STAILQ_NEXT(op, link))
		return;
	if (op->front) {
		merge_backwards(lane);
		return;
	}
	STAILQ_FOREACH(op, &lane->batch, link)
		buf_add_slice(&lane->log, op->log);
}

bool lane_end_missing(struct lane *lane)
{
	const struct outcome missing = { .status = OUTCOME_MISSING };

	while (lane_first(lane) && !lane_first(lane)->create)
		lane_end_first(lane, &missing);
	return lane_first(lane);
}

enum outcome_status lane_condition(const struct lane *lane, bool there, uint64_t cas)
{
	const struct op *op = lane_first(lane);

	if (op->mode == REPLACE_MISSING && there)
		return OUTCOME_PRESENT;
	if (op->mode >= REPLACE_PRESENT && !there)
		return OUTCOME_MISSING;
	return op->mode == REPLACE_SAME && cas != op->cas ? OUTCOME_CHANGED : OUTCOME_DONE;
}

void lane_end_abandoned(struct lane *lane)
{
	while (lane_is_abandoned(lane))
		lane_end_first(lane, &(struct outcome){ .status = OUTCOME_MISSING });
}

static void answer_list(struct lane *lane, struct slice text, const struct result *base)
{
	const struct list_request *request = lane_first(lane)->list;
	struct outcome outcome = {
		.status = request->status,
		.result = base,
		.log = slice_of(text.p + request->at, request->size),
		.number = request->number,
	};

	lane_end_first(lane, &outcome);
}

void lane_answer_lists(struct lane *lane, struct slice text, const struct result *base)
{
	while (lane_first(lane))
		answer_list(lane, text, base);
}

bool lane_reads_list(const struct lane *lane)
{
	return !list_verb_writes(lane_first(lane)->list->verb);
}

bool lane_answer_list_reads(struct lane *lane, list_slice *slice, struct segmented_list *list,
	struct buf *text, const struct result *base)
{
	enum { STEPS = 16, ELEMENTS = 8, BYTES = 32 /* in one step */ };
	bool over = false;

	for (lane_drop_abandoned(lane); lane_first(lane) && !over; lane_drop_abandoned(lane)) {
		struct list_request *request = lane_first(lane)->list;
		size_t before = request->done;
		bool done = slice(list, request, text);
		over = lane_is_over(
			lane, STEPS + (request->done - before) / ELEMENTS + buf_size(text) / BYTES);
		lane_use(lane, buf_size(text));
		if (done) {
			answer_list(lane, buf_slice(text), base);
			buf_free(text);
		}
	}
	return !lane_first(lane);
}

enum outcome_status lane_unreadable(struct lane *lane, enum oplog_form form)
{
	if (form == OPLOG_NEWER)
		return OUTCOME_NEWER;
	if (form == OPLOG_OUTDATED || form == OPLOG_LOADING)
		return OUTCOME_MISSING;
	lane->lanes->stats.corrupt_values++;
	return OUTCOME_CORRUPT;
}

bool lane_is_list(const struct lane *lane, const struct oplog_base *base)
{
	/* Sorted tables hold a set even if the type in the rule is list. */
	if (base->block.n)
		return base->is_list;
	return lane->rule->type == COLLECTION_LIST;
}
