/*
 * evcount evrange evlast: read the counters of a range of buckets. evrange and evlast thus have
 * upper bounds for the numbers of events, and a fan reads the events, bucket by bucket, in
 * order or newest first.
 */
#include "collection/lane/lanes.h"
#include "command/event.h"
#include "command/event_counters.h"
#include "command/fan.h"
#include "protocol/reply.h"
#include "util/num.h"

static const char bad_bucket[] = "CLIENT_ERROR bad bucket";
static const char many_buckets[] = "CLIENT_ERROR too many buckets";

/*
 * A hole is a number without an event: the event was evicted, or only counted. evlast skips the
 * rest of a bucket after HOLES_IN_A_ROW, and stops after HOLES_IN_ALL. evrange refuses more
 * than EVENTS_MAX numbers.
 */
enum { EVENTS_MAX = 1000000, HOLES_IN_A_ROW = 4096, HOLES_IN_ALL = 100000 };

/*
 * The size of events is unknown until some of them have arrived. Until then each is expected to
 * have UNKNOWN bytes, and only FIRST of them are requested. A small ring suffices for few
 * events and some holes.
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
	bool newest;         /* evlast: in descending order. */
	int64_t first, last; /* evrange: the requested numbers; negative ones count from the end. */
	size_t limit;
	int64_t bucket;        /* The current bucket. */
	uint64_t number, left; /* In this bucket: the next number, and how many are left. */
	/* Numbers without an event: in total, and the most recent in a row. */
	size_t holes, row;
	struct slice prefix; /* Prefix of the keys of the bucket's events. */
	size_t ring_size;
	struct slice type;
	char bytes[]; /* The type, followed by the prefix. */
};

static void end_events(struct events_task *events)
{
	counters_free(&events->counters);
	task_say_end(&events->task);
}

/* Completes evcount. */
static void event_read_on_counts(struct counters *counters)
{
	struct events_task *events =
		(struct events_task *)((char *)counters - offsetof(struct events_task, counters));
	bool failed = task_has_failed(&events->task);
	struct reply r = reply_word(WORD_COUNT);
	char text[TIME_BUCKET_NAME_MAX + 1 + NUM_U64_MAX];

	r.more = true;
	for (int64_t bucket = counters->range.first; !failed && bucket <= counters->range.last;
		bucket++) {
		size_t n = time_bucket_name(counters->bucket, bucket, text);
		text[n++] = ' ';
		n += num_format_u64(text + n, counters_get(counters, bucket));
		r.bytes = slice_of(text, n);
		task_say(&events->task, &r);
	}
	end_events(events);
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

/* Enters the next bucket. Returns false if there is none. */
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

/* Returns the number of keys to read in all buckets. */
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

	events->prefix =
		slice_of(start, (size_t)(slice_write(at, events->rule->separator) - start));
}

/* Finds the next number to read. Returns false if there is none. */
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

/* Returns the bytes of the next event if it is not known to be small, else 0. */
static uint32_t expected_bytes(const struct fan *fan)
{
	uint64_t mean = fan->hits ? fan->bytes / fan->hits : UNKNOWN;

	return mean < SMALL ? 0 : mean < UINT32_MAX ? (uint32_t)mean : UINT32_MAX;
}

static void event_read_on_event(struct waiter *waiter, const struct result *r)
{
	struct event_part *part =
		(struct event_part *)((char *)waiter - offsetof(struct event_part, waiter));
	struct events_task *events = (struct events_task *)part->part.fan->task;

	if (r->status == RESULT_HIT) {
		const struct reply reply = reply_hit(waiter->key, r);
		fan_say(&part->part, &reply);
		events->row = 0;
	} else if (result_failed(r)) {
		task_note_failure(&events->task, r);
		fan_part_failed(&part->part);
		return;
	} else {
		events->row++;
		events->holes++;
	}
	fan_part_done(&part->part);
}

static bool event_read_ask_part(struct fan *fan, struct fan_part *fan_part)
{
	struct events_task *events = (struct events_task *)fan->task;
	struct event_part *part = (struct event_part *)fan_part;
	size_t n;

	if (!next_number(events))
		return false;
	n = events->prefix.n;
	memcpy(part->key, events->prefix.p, n);
	n += num_format_u64(part->key + n, events->number);
	part->waiter = (struct waiter){ event_read_on_event, slice_of(part->key, n) };
	events->number += events->newest ? UINT64_MAX : 1;
	events->left--;
	lanes_call(events->task.host->lanes, events->task.account,
		&(struct call){
			.verb = CALL_GET,
			.want = WANT_VALUE,
			.server = CALL_ANY_SERVER,
			.key = part->waiter.key,
			.expected = expected_bytes(fan),
			.patient = true,
			.account = events->task.account,
			.only_reads = true,
		},
		&part->waiter);
	return true;
}

static void event_read_on_all(struct fan *fan)
{
	struct events_task *events = (struct events_task *)fan->task;

	task_use(&events->task, 0, events->ring_size);
	pool_put(events->task.host->env.pool, fan->parts, events->ring_size);
	end_events(events);
}

static void event_read_on_counters(struct counters *counters)
{
	struct events_task *events =
		(struct events_task *)((char *)counters - offsetof(struct events_task, counters));
	struct host *host = events->task.host;
	size_t align = _Alignof(struct event_part), stride, ring;
	uint64_t total;

	if (task_has_failed(&events->task)) {
		end_events(events);
		return;
	}
	total = total_of(events);
	if (!events->newest && total > EVENTS_MAX) {
		task_note(&events->task, "CLIENT_ERROR too many events");
		end_events(events);
		return;
	}
	first_bucket(events);
	set_prefix(events);
	stride = sizeof(struct event_part) + events->prefix.n + NUM_U64_MAX;
	stride = (stride + align - 1) / align * align;
	ring = events->limit < SMALL_RING ? SMALL_RING : FAN_RING;
	ring = (size_t)num_least(ring, total);
	events->ring_size = ring * stride;
	task_use(&events->task, events->ring_size, 0);
	events->fan = (struct fan){
		.task = &events->task,
		.ask = event_read_ask_part,
		.finish = event_read_on_all,
		.parts = pool_get(host->env.pool, events->ring_size),
		.stride = stride,
		.ring = ring,
		.total = (size_t)num_least(SIZE_MAX, total),
		.first = FIRST,
		.limit = events->limit,
	};
	fan_start(&events->fan);
}

/*
 * Creates a task that reads all events in order, and starts to read the counters of the range.
 * The caller changes its fields right after, as no counter has been read yet.
 */
static struct events_task *new_events(struct host *host, const struct request *request, void *owner,
	const struct event_rule *rule, struct time_bucket_range range,
	void (*done)(struct counters *counters))
{
	size_t prefix = request->key.n + 2 * rule->separator.n + TIME_BUCKET_NAME_MAX;
	struct events_task *events =
		task_new(host, request, owner, sizeof(*events) + request->key.n + prefix);
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

/*
 * Parses the name of a bucket or range, like time_bucket_parse. An empty word means `now`.
 * Returns false if it is invalid.
 */
static bool parse_buckets(const struct host *host, const struct event_rule *rule, struct slice word,
	struct time_bucket_range *out)
{
	return time_bucket_parse(rule->bucket, word.n ? word : SLICE("now"),
		time_bucket_of(rule->bucket, host->env.unix_time), out);
}

const char *event_counts_start(struct host *host, const struct request *request, void *owner,
	const struct event_rule *rule)
{
	struct slice rest = request->rest, from = slice_token(&rest), to = slice_token(&rest);
	struct time_bucket_range range, end;

	if (slice_token(&rest).n || !parse_buckets(host, rule, from, &range) ||
		!parse_buckets(host, rule, to.n ? to : from, &end) || end.last < range.first)
		return bad_bucket;
	if (end.last - range.first >= TIME_BUCKET_RANGE_MAX)
		return many_buckets;
	range.last = end.last;
	(void)new_events(host, request, owner, rule, range, event_read_on_counts);
	return NULL;
}

const char *event_range_start(struct host *host, const struct request *request, void *owner,
	const struct event_rule *rule)
{
	struct slice rest = request->rest, bucket = slice_token(&rest), from = slice_token(&rest),
		     to = slice_token(&rest);
	struct time_bucket_range range;
	int64_t first = 1, last = -1;
	struct events_task *events;

	if (bucket.n == 0 || (from.n && !num_parse_i64(from, &first)) ||
		(to.n && !num_parse_i64(to, &last)) || slice_token(&rest).n)
		return command_usage(request->command->id);
	/* Each bucket has its own numbers, so numbers need a single bucket. */
	if (!parse_buckets(host, rule, bucket, &range) || (from.n && range.first != range.last))
		return bad_bucket;
	if (range.last - range.first >= TIME_BUCKET_RANGE_MAX)
		return many_buckets;
	events = new_events(host, request, owner, rule, range, event_read_on_counters);
	events->first = first;
	events->last = last;
	return NULL;
}

const char *event_last_start(struct host *host, const struct request *request, void *owner,
	const struct event_rule *rule)
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
	if (n == 0) {
		task_say_word(task_new(host, request, owner, sizeof(struct task)), WORD_END);
		return NULL;
	}
	/* Starts `lookback` before the last bucket of the range. */
	range.first = range.last > rule->lookback ? range.last - rule->lookback : 0;
	events = new_events(host, request, owner, rule, range, event_read_on_counters);
	events->newest = true;
	events->limit = (size_t)n;
	return NULL;
}
