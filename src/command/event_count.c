/*
 * evincr evadd: count an event in the lane of its counter. evadd then stores the event under a
 * key with the count. No two events get the same count, so the key is unique. The first event of a
 * bucket may be noted in the set of its types, before it is answered or stored.
 */
#include "collection/lane/lanes.h"
#include "command/event.h"
#include "command/event_types.h"
#include "command/op_task.h"
#include "protocol/commands.h"
#include "protocol/reply.h"
#include "util/num.h"

static const char bad_time[] = "CLIENT_ERROR unixtime out of range";

/* A counter wraps around at 2^64; no single event may do that. */
static const uint64_t DELTA_MAX = INT64_MAX;

struct event_task {
	struct task task;
	struct op op;
	struct waiter waiter; /* evadd: the waiter of the event's own item. */
	uint32_t flags;
	int64_t exptime;
	const struct event_rule *rule;
	uint64_t number;
	struct slice data;
	/*
	 * The key of the counter. evadd appends a separator and the count for the key of the
	 * event.
	 */
	char bytes[];
};

static struct event_task *task_of(struct op *op)
{
	return (struct event_task *)((char *)op - offsetof(struct event_task, op));
}

static void event_count_on_noted(struct task *task)
{
	task_say_number(task, ((struct event_task *)task)->number);
}

static void event_count_on_counted(struct op *op, const struct outcome *outcome)
{
	struct event_task *event = task_of(op);

	if (outcome_ends(outcome, &event->task))
		return;
	event->number = outcome->number;
	if (!event->rule->types ||
		!event_types_note(
			&event->task, event->rule, op, event->number, event_count_on_noted))
		task_say_number(&event->task, event->number);
}

static void event_count_on_stored(struct waiter *waiter, const struct result *r)
{
	struct event_task *event =
		(struct event_task *)((char *)waiter - offsetof(struct event_task, waiter));
	struct reply reply;

	if (result_failed(r)) {
		task_say_failure(&event->task, r);
	} else if (r->status != RESULT_DONE) {
		task_say_word(&event->task, WORD_NOT_STORED);
	} else if (event->task.command->id == COMMAND_SET) {
		task_say_word(&event->task, WORD_STORED);
	} else {
		reply = (struct reply){
			.kind = REPLY_WORD, .word = WORD_EVENT, .bytes = waiter->key
		};
		task_say(&event->task, &reply);
	}
}

/*
 * Stores the event. If the key has an item, it was stored before the counter was evicted, and
 * is replaced.
 */
static void event_count_store(struct task *task)
{
	struct event_task *event = (struct event_task *)task;
	char *at = event->bytes + event->op.key.n;

	at = slice_write(at, event->rule->separator);
	at += num_format_u64(at, event->number);
	event->waiter = (struct waiter){ event_count_on_stored,
		slice_of(event->bytes, (size_t)(at - event->bytes)) };
	lanes_call(event->task.host->lanes, event->task.account,
		&(struct call){
			.verb = CALL_SET,
			.server = CALL_ANY_SERVER,
			.key = event->waiter.key,
			.value = event->data,
			.flags = event->flags,
			.role.copied = event->rule->copies > 1,
			.exptime = event->exptime,
		},
		&event->waiter);
}

static void event_count_on_numbered(struct op *op, const struct outcome *outcome)
{
	struct event_task *event = task_of(op);

	if (outcome_ends(outcome, &event->task))
		return;
	event->number = outcome->number;
	if (!event->rule->types ||
		!event_types_note(&event->task, event->rule, op, event->number, event_count_store))
		event_count_store(&event->task);
}

static struct event_task *new_event(struct host *host, const struct request *request, void *owner,
	const struct event_rule *rule, uint64_t time, op_done *done)
{
	size_t behind = rule->separator.n + NUM_U64_MAX;
	size_t bytes = request->key.n + rule->separator.n + TIME_BUCKET_NAME_MAX + behind +
		request->data.n;
	struct event_task *event = task_new(host, request, owner, sizeof(*event) + bytes);
	int64_t bucket = time_bucket_of(rule->bucket, (int64_t)time);
	char *at = time_bucket_write_key(&host->bucket, rule, request->key, bucket, event->bytes);
	struct slice key = slice_of(event->bytes, (size_t)(at - event->bytes));

	/* The key of the counter begins with the type. */
	(void)task_keys(&event->task, slice_of(event->bytes, request->key.n), 1);
	event->op = (struct op){
		.kind = OP_COUNT,
		.key = key,
		.count = 1,
		.ttl = rule->ttl,
		.copied = rule->copies > 1,
		.done = done,
	};
	task_owns(&event->task, &event->op);
	event->flags = request->flags;
	event->exptime = task_ttl(request, rule->ttl);
	event->rule = rule;
	at += behind;
	event->data = task_keep(&at, request->data);
	return event;
}

const char *event_count_start(struct host *host, const struct request *request, void *owner,
	const struct event_rule *rule)
{
	struct slice rest = request->rest, delta = slice_token(&rest), time = slice_token(&rest);
	uint64_t by = 1, at = (uint64_t)host->env.unix_time;
	struct event_task *event;

	if (delta.n && !num_parse_u64(delta, &by))
		return "CLIENT_ERROR invalid numeric delta argument";
	if (by > DELTA_MAX)
		return "CLIENT_ERROR delta too large";
	if ((time.n && !num_parse_u64(time, &at)) || slice_token(&rest).n)
		return command_usage(request->command->id);
	if (!time_bucket_valid(at))
		return bad_time;
	event = new_event(host, request, owner, rule, at, event_count_on_counted);
	event->op.count = by;
	event->op.ttl = event->exptime;
	lanes_submit(host->lanes, &event->op);
	return NULL;
}

const char *event_store_start(struct host *host, const struct request *request, void *owner,
	const struct event_rule *rule)
{
	uint64_t at = request->has_number ? request->number : (uint64_t)host->env.unix_time;

	if (!time_bucket_valid(at))
		return bad_time;
	lanes_submit(host->lanes,
		&new_event(host, request, owner, rule, at, event_count_on_numbered)->op);
	return NULL;
}
