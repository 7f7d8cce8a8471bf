/*
 * The commands on events. An event is counted in the lane of its counter. evadd then stores the event under a key with the count: no
 * two events get the same count, so the key is unique.
 *
 * evcount, evrange and evlast read the counters of a range of buckets. So evrange and evlast know how many events there may be, and a
 * fan reads these, bucket by bucket, in order or newest first.
 */
#include "collection/event/time_bucket.h"
#include "collection/lane/lanes.h"
#include "command/fan.h"
#include "command/op_task.h"
#include "command/order.h"
#include "command/plain.h"
#include "command/start.h"
#include "protocol/reply.h"
#include "util/num.h"

static const char bad_time[] = "CLIENT_ERROR unixtime out of range";
static const char bad_bucket[] = "CLIENT_ERROR bad bucket";
static const char many_buckets[] = "CLIENT_ERROR too many buckets";

/* Starts a command on a type of events. Gives NULL, or the error line that refuses the request. */
typedef const char *event_starter(
	struct host *host, const struct request *request, void *owner, const struct event_rule *rule);

/* --- counting and storing --- */

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

static struct event_task *new_event(struct host *host, const struct request *request, void *owner,
	const struct event_rule *rule, uint64_t time, op_done *done)
{
	size_t bytes = request->key.n + rule->separator.n + TIME_BUCKET_NAME_MAX + request->data.n;
	struct event_task *event = task_new(host, request, owner, sizeof(*event) + bytes);
	int64_t bucket = time_bucket_of(rule->bucket, (int64_t)time);
	char *at = time_bucket_write_key(&host->bucket, rule, request->key, bucket, event->bytes);
	struct slice key = slice_of(event->bytes, (size_t)(at - event->bytes));

	/* The key of the counter begins with the type. */
	(void)task_keys(&event->task, slice_of(event->bytes, request->key.n), 1);
	event->op = (struct op){ .kind = OP_COUNT, .key = key, .count = 1, .ttl = rule->ttl, .done = done };
	event->flags = request->flags;
	event->exptime = task_ttl(request, rule->ttl);
	event->separator = rule->separator;
	event->data = task_keep(&at, request->data);
	return event;
}

static const char *start_count(
	struct host *host, const struct request *request, void *owner, const struct event_rule *rule)
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
	event = new_event(host, request, owner, rule, at, counted);
	event->op.count = by;
	event->op.ttl = event->exptime;
	lanes_submit(host->lanes, &event->op);
	return NULL;
}

static const char *start_store(
	struct host *host, const struct request *request, void *owner, const struct event_rule *rule)
{
	uint64_t at = request->has_number ? request->number : (uint64_t)host->env.unix_time;

	if (!time_bucket_valid(at))
		return bad_time;
	lanes_submit(host->lanes, &new_event(host, request, owner, rule, at, numbered)->op);
	return NULL;
}

/* --- the counters of a range of buckets, read in parallel: up to ORDER_EVENT_CALLS calls at a time --- */

struct counters {
	struct task *task;
	void (*done)(struct counters *counters); /* all are read, or the task's scratch has an error line */
	enum granularity bucket;
	struct time_bucket_range range;
	size_t count, asked, answered; /* counters: to read, and of these asked for and answered */
	size_t size, key_size;         /* bytes of the memory at `all`, and of each key */
	struct counter *all;           /* in the order of their buckets */
};

struct counter {
	struct waiter waiter;
	struct counters *counters;
	uint64_t value;
};

static void counter_answered(struct waiter *waiter, const struct result *r);

/* memcached pads a number that has become shorter with spaces. */
static bool parse_count(struct slice value, uint64_t *out)
{
	while (value.n && value.p[value.n - 1] == ' ')
		value.n--;
	return num_parse_u64(value, out);
}

/* The keys, all of one length, lie behind the counters. They differ in the name of their bucket at the end. */
static char *counter_key(const struct counters *counters, size_t i)
{
	return (char *)(counters->all + (counters->range.last - counters->range.first + 1)) + i * counters->key_size;
}

static void make_counter(struct counters *counters, size_t i)
{
	char name[TIME_BUCKET_NAME_MAX], *at = counter_key(counters, i);
	size_t n = time_bucket_name(counters->bucket, counters->range.first + (int64_t)i, name);

	if (i > 0)
		memcpy(at, counter_key(counters, 0), counters->key_size - n);
	memcpy(at + counters->key_size - n, name, n);
	counters->all[i] = (struct counter){ { counter_answered, slice_of(at, counters->key_size) }, counters, 0 };
}

/* Asks for more counters, and makes their keys, a limited number at a time, so that other work gets through. */
static void ask_counters(struct counters *counters)
{
	size_t share = counters->task->host->calls_max,
	       most = share && share < ORDER_EVENT_CALLS ? share : ORDER_EVENT_CALLS;
	struct call call = { .verb = CALL_GET, .want = WANT_VALUE, .server = CALL_ANY_SERVER };

	while (counters->asked < counters->count && counters->asked - counters->answered < most) {
		struct counter *counter = &counters->all[counters->asked];
		make_counter(counters, counters->asked++);
		call.key = counter->waiter.key;
		lanes_call(counters->task->host->lanes, &call, &counter->waiter);
	}
}

static void counter_answered(struct waiter *waiter, const struct result *r)
{
	struct counter *counter = (struct counter *)waiter;
	struct counters *counters = counter->counters;
	struct buf *failure = &counters->task->scratch;

	if (buf_size(failure) == 0) {
		if (r->status == RESULT_HIT && !parse_count(r->value, &counter->value))
			reply_text(failure, "CLIENT_ERROR value is not a counter");
		else if (result_failed(r))
			reply_failure(failure, r);
		/* The client has gone. Its task ends early, since the memory of the task counts for no client any more. */
		else if (counters->task->abandoned)
			reply_text(failure, "SERVER_ERROR client closed");
	}
	counters->answered++;
	if (buf_size(failure))
		counters->count = counters->asked;
	ask_counters(counters);
	if (counters->answered == counters->count)
		counters->done(counters);
}

/*
 * Starts to read for a task, which uses the memory until counters_free. `counters` must not move until then; `type` is borrowed for
 * the call. If the task is abandoned, this ends early, as a failure.
 */
static void counters_read(struct counters *counters, struct task *task, const struct event_rule *rule,
	struct slice type, struct time_bucket_range range, void (*done)(struct counters *counters))
{
	struct time_bucket_memo name = { 0 };
	char key[KEY_MAX], *end = time_bucket_write_key(&name, rule, type, range.first, key);
	size_t n = (size_t)(range.last - range.first) + 1, key_size = (size_t)(end - key);

	*counters = (struct counters){
		.task = task,
		.done = done,
		.range = range,
		.count = n,
		.size = n * (sizeof(struct counter) + key_size),
		.key_size = key_size,
		.bucket = rule->bucket,
	};
	counters->all = pool_get(task->host->env.pool, counters->size);
	task_use(task, counters->size, 0);
	memcpy(counter_key(counters, 0), key, key_size);
	ask_counters(counters);
}

/* The count of a bucket of the range; 0 if it has no counter. */
static uint64_t counters_get(const struct counters *counters, int64_t bucket)
{
	return counters->all[bucket - counters->range.first].value;
}

static void counters_free(struct counters *counters)
{
	task_use(counters->task, 0, counters->size);
	pool_put(counters->task->host->env.pool, counters->all, counters->size);
}

/* --- reading --- */

/*
 * Holes are numbers without an event: it was evicted, or only counted. evlast leaves a bucket after HOLES_IN_A_ROW, and stops
 * after HOLES_IN_ALL. evrange refuses more than EVENTS_MAX numbers.
 */
enum { EVENTS_MAX = 1000000, HOLES_IN_A_ROW = 4096, HOLES_IN_ALL = 100000 };

/*
 * How large the events are is not known until some of them have come. Until then each is expected to have UNKNOWN bytes, and only
 * FIRST of them are asked for. A small ring is enough for few events, and some holes.
 */
enum { FIRST = 16, UNKNOWN = 32 << 10, SMALL = 16 << 10, SMALL_RING = 512 };

struct event_part {
	struct fan_part part;
	struct waiter waiter;
	char key[];
};

struct events_task {
	struct task task;
	struct counters counters;
	struct fan fan;
	const struct event_rule *rule;
	bool newest;         /* evlast: in descending order */
	int64_t first, last; /* evrange: the numbers requested; negative ones count from the end */
	size_t limit;
	int64_t bucket;        /* the current one */
	uint64_t number, left; /* in this bucket: the next number, and how many are left */
	size_t holes, row;     /* numbers without an event: in all, and the last in a row */
	struct slice prefix;   /* of the keys of the bucket's events */
	size_t ring_size;
	struct slice type;
	char bytes[]; /* the type, the prefix */
};

static void end(struct events_task *events)
{
	counters_free(&events->counters);
	task_reply_end(&events->task);
}

/* The end of evcount. */
static void counts_read(struct counters *counters)
{
	struct events_task *events = (struct events_task *)((char *)counters - offsetof(struct events_task, counters));
	bool failed = buf_size(&events->task.scratch);
	struct buf *out = task_reply(&events->task);
	char name[TIME_BUCKET_NAME_MAX];

	for (int64_t bucket = counters->range.first; !failed && bucket <= counters->range.last; bucket++) {
		size_t n = time_bucket_name(counters->bucket, bucket, name);
		BUF_ADD(out, "COUNT ");
		buf_add(out, name, n);
		BUF_ADD(out, " ");
		reply_number(out, counters_get(counters, bucket));
	}
	end(events);
}

/* Makes `bucket` the current one, and clips the requested numbers to its count. */
static void enter_bucket(struct events_task *events, int64_t bucket)
{
	uint64_t counted = counters_get(&events->counters, bucket);
	int64_t count = counted < INT64_MAX ? (int64_t)counted : INT64_MAX - 1;
	int64_t first = events->first < 0 ? count + 1 + events->first : events->first;
	int64_t last = events->last < 0 ? count + 1 + events->last : events->last;

	if (first < 1)
		first = 1;
	if (last > count)
		last = count;
	events->bucket = bucket;
	events->left = first <= last ? (uint64_t)(last - first) + 1 : 0;
	events->number = (uint64_t)(events->newest ? last : first);
	events->row = 0;
}

/* Enters the next bucket; false if there is none. */
static bool next_bucket(struct events_task *events)
{
	const struct time_bucket_range *range = &events->counters.range;

	if (events->bucket == (events->newest ? range->first : range->last))
		return false;
	enter_bucket(events, events->newest ? events->bucket - 1 : events->bucket + 1);
	return true;
}

static void first_bucket(struct events_task *events)
{
	const struct time_bucket_range *range = &events->counters.range;

	enter_bucket(events, events->newest ? range->last : range->first);
}

/* The number of keys to read, in all buckets. */
static uint64_t total_of(struct events_task *events)
{
	uint64_t total = 0;

	first_bucket(events);
	do {
		total += events->left;
		if (total < events->left)
			return UINT64_MAX;
	} while (next_bucket(events));
	return total;
}

static void set_prefix(struct events_task *events)
{
	struct time_bucket_memo name = { 0 };
	char *start = events->bytes + events->type.n;
	char *at = time_bucket_write_key(&name, events->rule, events->type, events->bucket, start);

	events->prefix = slice_of(start, (size_t)(slice_write(at, events->rule->separator) - start));
}

/* Finds the next number to read; false if there is none. */
static bool next_number(struct events_task *events)
{
	bool moved = false;

	if (events->newest && events->holes >= HOLES_IN_ALL)
		return false;
	while (events->left == 0 || (events->newest && events->row >= HOLES_IN_A_ROW)) {
		if (!next_bucket(events))
			return false;
		moved = true;
	}
	if (moved)
		set_prefix(events);
	return true;
}

/* Bytes of the next event, if it is not known to be small; else 0. */
static uint32_t expected(const struct fan *fan)
{
	uint64_t mean = fan->hits ? fan->bytes / fan->hits : UNKNOWN;

	return mean < SMALL ? 0 : mean < UINT32_MAX ? (uint32_t)mean : UINT32_MAX;
}

static void answered(struct waiter *waiter, const struct result *r)
{
	struct event_part *part = (struct event_part *)((char *)waiter - offsetof(struct event_part, waiter));
	struct events_task *events = (struct events_task *)part->part.fan->task;

	if (r->status == RESULT_HIT) {
		reply_value(fan_reply(&part->part, r->value.n), waiter->key, r, false);
		events->row = 0;
	} else if (result_failed(r)) {
		if (buf_size(&events->task.scratch) == 0)
			reply_failure(&events->task.scratch, r);
		fan_part_failed(&part->part);
		return;
	} else {
		events->row++;
		events->holes++;
	}
	fan_part_done(&part->part);
}

static bool ask(struct fan *fan, struct fan_part *fan_part)
{
	struct events_task *events = (struct events_task *)fan->task;
	struct event_part *part = (struct event_part *)fan_part;
	size_t n;

	if (!next_number(events))
		return false;
	n = events->prefix.n;
	memcpy(part->key, events->prefix.p, n);
	n += num_format_u64(part->key + n, events->number);
	part->waiter = (struct waiter){ answered, slice_of(part->key, n) };
	events->number += events->newest ? UINT64_MAX : 1;
	events->left--;
	lanes_call(events->task.host->lanes,
		&(struct call){
			.verb = CALL_GET,
			.want = WANT_VALUE,
			.server = CALL_ANY_SERVER,
			.key = part->waiter.key,
			.expected = expected(fan),
			.patient = true,
		},
		&part->waiter);
	return true;
}

static void events_read(struct fan *fan)
{
	struct events_task *events = (struct events_task *)fan->task;

	task_use(&events->task, 0, events->ring_size);
	pool_put(events->task.host->env.pool, fan->parts, events->ring_size);
	end(events);
}

static size_t least(size_t a, uint64_t b)
{
	return b < a ? (size_t)b : a;
}

static void counters_known(struct counters *counters)
{
	struct events_task *events = (struct events_task *)((char *)counters - offsetof(struct events_task, counters));
	struct host *host = events->task.host;
	size_t align = _Alignof(struct event_part), stride, ring;
	uint64_t total;

	if (buf_size(&events->task.scratch)) {
		end(events);
		return;
	}
	total = total_of(events);
	if (!events->newest && total > EVENTS_MAX) {
		reply_text(&events->task.scratch, "CLIENT_ERROR too many events");
		end(events);
		return;
	}
	first_bucket(events);
	set_prefix(events);
	stride = sizeof(struct event_part) + events->prefix.n + NUM_U64_MAX;
	stride = (stride + align - 1) / align * align;
	ring = events->limit < SMALL_RING ? SMALL_RING : FAN_RING;
	ring = least(ring, total);
	events->ring_size = ring * stride;
	task_use(&events->task, events->ring_size, 0);
	events->fan = (struct fan){
		.task = &events->task,
		.ask = ask,
		.finish = events_read,
		.parts = pool_get(host->env.pool, events->ring_size),
		.stride = stride,
		.ring = ring,
		.total = least(SIZE_MAX, total),
		.first = FIRST,
		.limit = events->limit,
	};
	fan_start(&events->fan);
}

/*
 * Makes a task, and reads the counters of the range. The task asks for all events, in order. The caller changes that right after, since
 * no counter is known yet.
 */
static struct events_task *new_events(struct host *host, const struct request *request, void *owner,
	const struct event_rule *rule, struct time_bucket_range range, void (*done)(struct counters *counters))
{
	size_t prefix = request->key.n + 2 * rule->separator.n + TIME_BUCKET_NAME_MAX;
	struct events_task *events = task_new(host, request, owner, sizeof(*events) + request->key.n + prefix);
	char *at = events->bytes;

	events->rule = rule;
	events->newest = false;
	events->first = 1;
	events->last = -1;
	events->limit = SIZE_MAX;
	events->holes = 0;
	events->type = task_keys(&events->task, task_keep(&at, request->key), 1);
	counters_read(&events->counters, &events->task, rule, events->type, range, done);
	return events;
}

/* Parses the name of a bucket or range, as time_bucket_parse. An empty word means `now`. False if it is invalid. */
static bool parse_buckets(
	const struct host *host, const struct event_rule *rule, struct slice word, struct time_bucket_range *out)
{
	return time_bucket_parse(
		rule->bucket, word.n ? word : SLICE("now"), time_bucket_of(rule->bucket, host->env.unix_time), out);
}

static const char *start_counts(
	struct host *host, const struct request *request, void *owner, const struct event_rule *rule)
{
	struct slice rest = request->rest, from = slice_token(&rest), to = slice_token(&rest);
	struct time_bucket_range range, end;

	if (slice_token(&rest).n || !parse_buckets(host, rule, from, &range) ||
		!parse_buckets(host, rule, to.n ? to : from, &end) || end.last < range.first)
		return bad_bucket;
	if (end.last - range.first >= TIME_BUCKET_RANGE_MAX)
		return many_buckets;
	range.last = end.last;
	(void)new_events(host, request, owner, rule, range, counts_read);
	return NULL;
}

static const char *start_range(
	struct host *host, const struct request *request, void *owner, const struct event_rule *rule)
{
	struct slice rest = request->rest, bucket = slice_token(&rest), from = slice_token(&rest),
		     to = slice_token(&rest);
	struct time_bucket_range range;
	int64_t first = 1, last = -1;
	struct events_task *events;

	if (bucket.n == 0 || (from.n && !num_parse_i64(from, &first)) || (to.n && !num_parse_i64(to, &last)) ||
		slice_token(&rest).n)
		return command_usage(request->command->id);
	/* Each bucket has its own numbers, so numbers need a single bucket. */
	if (!parse_buckets(host, rule, bucket, &range) || (from.n && range.first != range.last))
		return bad_bucket;
	if (range.last - range.first >= TIME_BUCKET_RANGE_MAX)
		return many_buckets;
	events = new_events(host, request, owner, rule, range, counters_known);
	events->first = first;
	events->last = last;
	return NULL;
}

static const char *start_last(
	struct host *host, const struct request *request, void *owner, const struct event_rule *rule)
{
	struct slice rest = request->rest, count = slice_token(&rest), bucket = slice_token(&rest);
	struct time_bucket_range range;
	struct events_task *events;
	uint64_t n = 0;

	if (count.n == 0 || slice_token(&rest).n)
		return command_usage(request->command->id);
	if (!num_parse_u64(count, &n))
		return "CLIENT_ERROR invalid count";
	if (n > EVENTS_MAX)
		return "CLIENT_ERROR too many events";
	if (!parse_buckets(host, rule, bucket, &range))
		return bad_bucket;
	if (n == 0)
		return "END";
	/* Looks back from the last bucket of a range. */
	range.first = range.last > rule->lookback ? range.last - rule->lookback : 0;
	events = new_events(host, request, owner, rule, range, counters_known);
	events->newest = true;
	events->limit = (size_t)n;
	return NULL;
}

/* --- all commands --- */

/* Whether the largest key of an event would exceed KEY_MAX: type, separator, bucket, separator, number. */
static bool is_too_long(struct slice type, const struct event_rule *rule)
{
	return type.n + 2 * rule->separator.n + TIME_BUCKET_NAME_MAX + NUM_U64_MAX > KEY_MAX;
}

void event_start(struct host *host, const struct request *request, void *owner)
{
	static event_starter *const starts[] = {
		[COMMAND_EVADD] = start_store,
		[COMMAND_EVCOUNT] = start_counts,
		[COMMAND_EVINCR] = start_count,
		[COMMAND_EVLAST] = start_last,
		[COMMAND_EVRANGE] = start_range,
		[COMMAND_INCR] = start_count,
		[COMMAND_SET] = start_store,
	};
	const struct event_rule *rule = rules_event(host->env.rules, request->key);
	const char *refused = "CLIENT_ERROR key too long";

	if (!is_too_long(request->key, rule))
		refused = starts[request->command->id](host, request, owner, rule);
	if (refused)
		task_refuse(host, request, owner, refused);
}

/* --- plain verbs --- */

void event_plain_start(struct host *host, const struct request *request, void *owner)
{
	enum command_id id = request->command->id;
	struct request event = *request;
	char delta[NUM_U64_MAX];

	/* Nothing here has a cas id to compare. */
	if (request->extras.compare || (id != COMMAND_INCR && id != COMMAND_SET)) {
		task_refuse(host, request, owner, "CLIENT_ERROR use incr, set or get for events");
		return;
	}
	if (id == COMMAND_INCR)
		event.rest = slice_of(delta, num_format_u64(delta, request->number));
	event_start(host, &event, owner);
}

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
	const struct result none = { .status = RESULT_HIT, .value = SLICE("0"), .ttl = TTL_UNKNOWN };

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
