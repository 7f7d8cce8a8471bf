/*
 * One INCR by the sum of the batch; each operation receives the value after its own part.
 *
 *     INCR -> missing -> ADD -> not stored, another proxy was first -> INCR again
 */
#include "collection/lane/lane.h"
#include "collection/machines.h"

static uint64_t total(const struct lane *lane)
{
	struct op *op;
	uint64_t sum = 0;

	STAILQ_FOREACH(op, &lane->batch, link)
		sum += op->count;
	return sum;
}

/* `value` includes the whole batch. It wraps around like memcached's counters. */
static void end_counted(struct lane *lane, uint64_t value)
{
	struct outcome outcome = { .status = OUTCOME_DONE, .number = value - total(lane) };

	while (!STAILQ_EMPTY(&lane->batch)) {
		outcome.number += lane_first(lane)->count;
		lane_end_first(lane, &outcome);
	}
	lane_next(lane);
}

static void count_on_begun(struct lane *lane, const struct result *r)
{
	if (r->status == RESULT_DONE)
		end_counted(lane, total(lane));
	else if (result_failed(r))
		lane_end(lane, OUTCOME_FAILED, r);
	else if (lane_retry(lane))
		count_start(lane);
}

static void begin_counter(struct lane *lane)
{
	buf_consume(&lane->log, buf_size(&lane->log));
	buf_add_u64(&lane->log, total(lane));
	lane_call(lane,
		&(struct call){
			.verb = CALL_ADD,
			.value = buf_slice(&lane->log),
			.role.copied = lane_first(lane)->copied,
			.exptime = lane_first(lane)->ttl,
		},
		count_on_begun);
}

static void count_on_counted(struct lane *lane, const struct result *r)
{
	if (r->status == RESULT_NUMBER)
		end_counted(lane, r->number);
	else if (r->status == RESULT_MISS)
		begin_counter(lane);
	else
		lane_end(lane, OUTCOME_FAILED, r);
}

void count_start(struct lane *lane)
{
	lane_call(lane,
		&(struct call){
			.verb = CALL_INCR,
			.number = total(lane),
			.role.copied = lane_first(lane)->copied,
			.exptime = lane_first(lane)->ttl,
		},
		count_on_counted);
}
