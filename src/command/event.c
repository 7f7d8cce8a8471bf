/*
 * evincr and evadd. An event is counted in the lane of its counter. evadd then stores the event under a key with the count: no
 * two events get the same count, so the key is unique.
 */
#include "command/event.h"

#include "collection/lane/lanes.h"
#include "command/op_task.h"
#include "command/start.h"
#include "protocol/reply.h"
#include "util/num.h"

static const char long_key[] = "CLIENT_ERROR key too long";
static const char bad_time[] = "CLIENT_ERROR unixtime out of range";

/* A counter wraps around at 2^64: no one event may take it there. */
static const uint64_t DELTA_MAX = INT64_MAX;

struct event_task {
	struct task task;
	struct op op;
	struct waiter waiter; /* evadd: of the event's own item */
	uint32_t flags;
	int64_t exptime;
	struct slice separator, data;
	char bytes[];
};

static struct event_task *task_of(struct op *op)
{
	return (struct event_task *)((char *)op - offsetof(struct event_task, op));
}

static void counted(struct op *op, const struct outcome *outcome)
{
	struct event_task *event = task_of(op);

	if (!outcome_ends(outcome, &event->task))
		task_reply_number(&event->task, outcome->number);
}

static void stored(struct waiter *waiter, const struct result *r)
{
	struct event_task *event = (struct event_task *)((char *)waiter - offsetof(struct event_task, waiter));
	struct buf *out;

	if (result_failed(r)) {
		task_reply_failure(&event->task, r);
	} else if (r->status != RESULT_DONE) {
		task_reply_line(&event->task, "NOT_STORED");
	} else if (event->task.command->id == COMMAND_SET) {
		task_reply_line(&event->task, "STORED");
	} else {
		out = task_reply(&event->task);
		BUF_ADD(out, "EVENT ");
		reply_line(out, waiter->key);
		task_done(&event->task);
	}
}

/*
 * Stores the event. If the key has an item, it is from before the counter was evicted, and is replaced.
 */
static void numbered(struct op *op, const struct outcome *outcome)
{
	struct event_task *event = task_of(op);
	struct buf *key = &event->task.scratch;

	if (outcome_ends(outcome, &event->task))
		return;
	buf_add_slice(key, op->key);
	buf_add_slice(key, event->separator);
	buf_add_u64(key, outcome->number);
	event->waiter = (struct waiter){ stored, buf_slice(key) };
	lanes_call(event->task.host->lanes,
		&(struct call){
			.verb = CALL_SET,
			.server = CALL_ANY_SERVER,
			.key = event->waiter.key,
			.value = event->data,
			.flags = event->flags,
			.exptime = event->exptime,
		},
		&event->waiter);
}

/* The largest key of an event: type, separator, bucket, separator, number. */
bool event_is_too_long(const struct host *host, struct slice type)
{
	size_t separator = rules_event(host->env.rules, type)->separator.n;

	return type.n + 2 * separator + TIME_BUCKET_NAME_MAX + NUM_U64_MAX > KEY_MAX;
}

static struct event_task *new_event(struct host *host, const struct request *request, void *owner, uint64_t time)
{
	const struct event_rule *rule = rules_event(host->env.rules, request->key);
	size_t bytes = request->key.n + rule->separator.n + TIME_BUCKET_NAME_MAX + request->data.n;
	struct event_task *event = task_new(host, request, owner, sizeof(*event) + bytes);
	int64_t bucket = time_bucket_of(rule->bucket, (int64_t)time);
	char *at = time_bucket_write_key(&host->bucket, rule, request->key, bucket, event->bytes);
	struct slice key = slice_of(event->bytes, (size_t)(at - event->bytes));

	/* The key of the counter begins with the type. */
	(void)task_keys(&event->task, slice_of(event->bytes, request->key.n), 1);
	event->op = (struct op){ .kind = OP_COUNT, .key = key, .ttl = rule->ttl };
	event->exptime = task_ttl(request, rule->ttl);
	event->separator = rule->separator;
	event->data = task_keep(&at, request->data);
	return event;
}

void evincr_start(struct host *host, const struct request *request, void *owner)
{
	struct slice rest = request->rest, delta = slice_token(&rest), time = slice_token(&rest);
	uint64_t by = 1, at = (uint64_t)host->env.unix_time;
	const char *refused = NULL;
	struct event_task *event;

	if (event_is_too_long(host, request->key))
		refused = long_key;
	else if (delta.n && !num_parse_u64(delta, &by))
		refused = "CLIENT_ERROR invalid numeric delta argument";
	else if (by > DELTA_MAX)
		refused = "CLIENT_ERROR delta too large";
	else if ((time.n && !num_parse_u64(time, &at)) || slice_token(&rest).n)
		refused = "CLIENT_ERROR bad command line format";
	else if (!time_bucket_valid(at))
		refused = bad_time;
	if (refused) {
		task_refuse(host, request, owner, refused);
		return;
	}
	event = new_event(host, request, owner, at);
	event->op.count = by;
	event->op.ttl = event->exptime;
	event->op.done = counted;
	lanes_submit(host->lanes, &event->op);
}

void evadd_start(struct host *host, const struct request *request, void *owner)
{
	uint64_t at = request->has_number ? request->number : (uint64_t)host->env.unix_time;
	const char *refused = NULL;
	struct event_task *event;

	if (event_is_too_long(host, request->key))
		refused = long_key;
	else if (!time_bucket_valid(at))
		refused = bad_time;
	if (refused) {
		task_refuse(host, request, owner, refused);
		return;
	}
	event = new_event(host, request, owner, at);
	event->op.count = 1;
	event->op.done = numbered;
	event->flags = request->flags;
	lanes_submit(host->lanes, &event->op);
}

bool event_buckets(
	const struct host *host, const struct event_rule *rule, struct slice word, struct time_bucket_range *out)
{
	return time_bucket_parse(
		rule->bucket, word.n ? word : SLICE("now"), time_bucket_of(rule->bucket, host->env.unix_time), out);
}

/* --- plain verbs --- */

void event_plain_start(struct host *host, const struct request *request, void *owner)
{
	enum command_id id = request->command->id;
	struct request incr = *request;
	char delta[NUM_U64_MAX];

	/* Nothing here has a cas id to compare. */
	if (request->extras.compare || (id != COMMAND_INCR && id != COMMAND_SET)) {
		task_refuse(host, request, owner, "CLIENT_ERROR use incr, set or get for events");
	} else if (id == COMMAND_SET) {
		evadd_start(host, request, owner);
	} else {
		incr.rest = slice_of(delta, num_format_u64(delta, request->number));
		evincr_start(host, &incr, owner);
	}
}

/* --- reading --- */

struct event_reading {
	struct waiter waiter; /* of the counter */
	struct waiter *asker;
	struct pool *pool;
	size_t size;
	char key[];
};

static void was_read(struct waiter *waiter, const struct result *r)
{
	struct event_reading *reading = (struct event_reading *)waiter;
	struct waiter *asker = reading->asker;
	const struct result none = { .status = RESULT_HIT, .value = SLICE("0") };

	pool_put(reading->pool, reading, reading->size);
	asker->done(asker, r->status == RESULT_MISS ? &none : r);
}

void event_plain_read(struct host *host, const struct call *call, struct waiter *waiter)
{
	const struct event_rule *rule = rules_event(host->env.rules, call->key);
	size_t size = sizeof(struct event_reading) + call->key.n + rule->separator.n + TIME_BUCKET_NAME_MAX;
	struct event_reading *reading = pool_get(host->env.pool, size);
	int64_t bucket = time_bucket_of(rule->bucket, host->env.unix_time);
	char *end = time_bucket_write_key(&host->bucket, rule, call->key, bucket, reading->key);
	struct call of_counter = *call;

	of_counter.key = slice_of(reading->key, (size_t)(end - reading->key));
	reading->waiter = (struct waiter){ was_read, of_counter.key };
	reading->asker = waiter;
	reading->pool = host->env.pool;
	reading->size = size;
	lanes_call(host->lanes, &of_counter, &reading->waiter);
}
