/*
 * evlimit: counts an event in the current bucket, and reads the counters of the earlier buckets
 * at the same time. No two events of a bucket get the same number, so concurrent callers
 * together never exceed the limit.
 */
#include "collection/lane/lanes.h"
#include "command/event.h"
#include "command/event_counters.h"
#include "command/event_types.h"
#include "command/op_task.h"
#include "protocol/reply.h"
#include "util/num.h"

struct limit_task {
	struct task task;
	struct op op;
	struct counters before; /* The earlier buckets. */
	const struct event_rule *rule;
	uint64_t limit, number; /* `number`: of this event in its bucket. */
	/* Pending results: the count, and the earlier buckets if there are any. */
	int waits;
	bool has_before;
	char bytes[];
};

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static void known(struct limit_task *limit)
{
	const struct time_bucket_range *before = &limit->before.only.range;
	uint64_t total = limit->number;

	if (--limit->waits > 0)
		return;
	if (limit->has_before) {
		for (int64_t bucket = before->first; bucket <= before->last; bucket++)
			total = add_saturated(total, counters_get(&limit->before, bucket));
		counters_free(&limit->before);
	}
	if (!task_fails(&limit->task))
		task_say_number(&limit->task, total <= limit->limit ? total : 0);
}

static void event_limit_on_noted(struct task *task)
{
	known((struct limit_task *)task);
}

static void event_limit_on_counted(struct op *op, const struct outcome *outcome)
{
	struct limit_task *limit =
		(struct limit_task *)((char *)op - offsetof(struct limit_task, op));

	if (outcome->status == OUTCOME_DONE)
		limit->number = outcome->number;
	else
		task_note_outcome(&limit->task, outcome);
	if (outcome->status != OUTCOME_DONE || !limit->rule->types ||
		!event_types_note(
			&limit->task, limit->rule, op, limit->number, event_limit_on_noted))
		known(limit);
}

static void event_limit_on_before(struct counters *before)
{
	known((struct limit_task *)((char *)before - offsetof(struct limit_task, before)));
}

static void start_limit(struct host *host, const struct request *request, void *owner,
	const struct event_rule *rule, uint64_t most, struct time_bucket_range range)
{
	size_t bytes = request->key.n + rule->separator.n + TIME_BUCKET_NAME_MAX;
	struct limit_task *limit = task_new(host, request, owner, sizeof(*limit) + bytes);
	char *end =
		time_bucket_write_key(&host->bucket, rule, request->key, range.last, limit->bytes);
	/* The key of the counter begins with the type. */
	struct slice type = task_keys(&limit->task, slice_of(limit->bytes, request->key.n), 1);

	limit->op = (struct op){
		.kind = OP_COUNT,
		.key = slice_of(limit->bytes, (size_t)(end - limit->bytes)),
		.count = 1,
		.copied = rule->copies > 1,
		.ttl = task_ttl(request, rule->ttl),
		.done = event_limit_on_counted,
	};
	task_owns(&limit->task, &limit->op);
	limit->rule = rule;
	limit->limit = most;
	limit->number = 0;
	limit->has_before = range.first < range.last;
	limit->waits = limit->has_before ? 2 : 1;
	range.last--;
	lanes_submit(host->lanes, &limit->op);
	if (range.first <= range.last)
		counters_read(
			&limit->before, &limit->task, rule, type, range, event_limit_on_before);
}

const char *event_limit_start(struct host *host, const struct request *request, void *owner,
	const struct event_rule *rule)
{
	struct slice rest = request->rest, most = slice_token(&rest), word = slice_token(&rest);
	struct time_bucket_range range;
	uint64_t limit, seconds;
	int64_t time;

	if (word.n == 0 || slice_token(&rest).n)
		return command_usage(request->command->id);
	if (!num_parse_u64(most, &limit))
		return "CLIENT_ERROR invalid limit";
	if (!num_parse_u64(word, &seconds) || seconds == 0)
		return "CLIENT_ERROR invalid seconds";
	time = time_bucket_last(
		rule->bucket, host->env.unix_time, seconds, ORDER_LIMIT_CALLS, &range);
	if (time == 0)
		return "CLIENT_ERROR too many buckets";
	/* If a counter expired within that time, too many events would be allowed. */
	if (rule->ttl && rule->ttl < time)
		return "CLIENT_ERROR counters of this type expire too early";
	start_limit(host, request, owner, rule, limit, range);
	return NULL;
}
