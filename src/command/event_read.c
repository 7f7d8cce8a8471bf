/*
 * evcount evrange evlast: read the counters of ranges of buckets, of one or several types. evrange
 * and evlast thus have upper bounds for the numbers of events, and a fan reads the events, bucket
 * by bucket, in order or newest first. A fan reads the events of one type; the next type follows.
 */
#include "collection/lane/lanes.h"
#include "command/event.h"
#include "command/event_counters.h"
#include "command/fan.h"
#include "protocol/commands.h"
#include "protocol/reply.h"
#include "util/num.h"

static const char bad_bucket[] = "CLIENT_ERROR bad bucket";
static const char many_buckets[] = "CLIENT_ERROR too many buckets";
static const char too_many_events[] = "CLIENT_ERROR too many events";

/*
 * A hole is a number without an event: the event was evicted, or only counted. evlast skips the
 * rest of a bucket after HOLES_IN_A_ROW, and stops after HOLES_IN_ALL. evrange refuses more
 * than EVENTS_MAX numbers.
 */
enum { EVENTS_MAX = 1000000, HOLES_IN_A_ROW = 4096, HOLES_IN_ALL = 100000 };

/* Maximum number of types of a request. */
enum { TYPES_MAX = 1000 };

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
	struct waiter waiter;            /* For pauses. */
	const struct counted_type *type; /* The current type, and the end of all types. */
	const struct counted_type *types_end;
	const uint64_t *counts; /* The counters of the current type. */
	bool newest;            /* evlast: in descending order. */
	int64_t first, last; /* evrange: the requested numbers; negative ones count from the end. */
	size_t limit;
	int64_t bucket;        /* The current bucket. */
	uint64_t number, left; /* In this bucket: the next number, and how many are left. */
	/* Numbers without an event: in total, and the most recent in a row. */
	size_t holes, row;
	struct slice prefix; /* Prefix of the keys of the bucket's events. */
	char *prefix_room;
	size_t ring_size;
	struct counted_type types[]; /* Followed by their names, and by the prefix. */
};

static void end_events(struct events_task *events)
{
	counters_free(&events->counters);
	task_say_end(&events->task);
}

/* Moves to the next type. Returns false if there is none. */
static bool next_type(struct events_task *events)
{
	events->counts += counters_of(&events->type->range);
	return ++events->type < events->types_end;
}

static uint64_t count_of(const struct events_task *events, int64_t bucket)
{
	return events->counts[bucket - events->type->range.first];
}

/* Pauses if the slice is over. */
static bool event_read_pauses(struct events_task *events, size_t steps,
	void (*done)(struct waiter *, const struct result *))
{
	events->waiter = (struct waiter){ .done = done };
	return task_pauses(&events->task, steps, &events->waiter);
}

/* The type is named if there are several. */
static void say_count(struct events_task *events)
{
	const struct counted_type *type = events->type;
	char text[KEY_MAX + 1 + TIME_BUCKET_NAME_MAX + 1 + NUM_U64_MAX], *at = text;
	struct reply r = reply_word(WORD_COUNT);

	if (events->types_end - events->types > 1) {
		at = slice_write(at, type->type);
		*at++ = ' ';
	}
	at += time_bucket_name(type->rule->bucket, events->bucket, at);
	*at++ = ' ';
	at += num_format_u64(at, count_of(events, events->bucket));
	r.bytes = slice_of(text, (size_t)(at - text));
	r.more = true;
	task_say(&events->task, &r);
}

static void event_read_say_counts(struct waiter *waiter, const struct result *result)
{
	enum { STEPS = 4 /* of a line */ };
	struct events_task *events =
		(struct events_task *)((char *)waiter - offsetof(struct events_task, waiter));
	bool more = true;

	(void)result;
	while (more && !task_is_full(&events->task)) {
		say_count(events);
		if (events->bucket++ == events->type->range.last) {
			more = next_type(events);
			events->bucket = more ? events->type->range.first : 0;
		}
		if (more && event_read_pauses(events, STEPS, event_read_say_counts))
			return;
	}
	end_events(events);
}

/* Completes evcount. */
static void event_read_on_counts(struct counters *counters)
{
	struct events_task *events =
		(struct events_task *)((char *)counters - offsetof(struct events_task, counters));

	events->counts = counters->values;
	events->bucket = events->type->range.first;
	if (task_has_failed(&events->task))
		end_events(events);
	else
		event_read_say_counts(&events->waiter, NULL);
}

/* Makes `bucket` the current one, and clips the requested numbers to its count. */
static void enter_bucket(struct events_task *events, int64_t bucket)
{
	uint64_t counted = count_of(events, bucket);
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
	const struct time_bucket_range *range = &events->type->range;

	if (events->bucket == (events->newest ? range->first : range->last))
		return false;
	enter_bucket(events, events->newest ? events->bucket - 1 : events->bucket + 1);
	return true;
}

static void first_bucket(struct events_task *events)
{
	const struct time_bucket_range *range = &events->type->range;

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
	const struct counted_type *type = events->type;
	struct time_bucket_memo name = { 0 };
	char *start = events->prefix_room,
	     *at = time_bucket_write_key(&name, type->rule, type->type, events->bucket, start);

	events->prefix = slice_of(start, (size_t)(slice_write(at, type->rule->separator) - start));
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
			.role.copied = events->type->rule->copies > 1,
			.patient = true,
			.account = events->task.account,
			.only_reads = true,
		},
		&part->waiter);
	return true;
}

static void event_read_next_type(struct waiter *waiter, const struct result *r);

static void event_read_skip_type(struct waiter *waiter, const struct result *r)
{
	struct events_task *events =
		(struct events_task *)((char *)waiter - offsetof(struct events_task, waiter));

	if (!task_is_full(&events->task) && next_type(events))
		event_read_next_type(waiter, r);
	else
		end_events(events);
}

static void event_read_on_all(struct fan *fan)
{
	struct events_task *events = (struct events_task *)fan->task;

	task_use(&events->task, 0, events->ring_size);
	pool_put(events->task.host->env.pool, fan->parts, events->ring_size);
	if (task_has_failed(&events->task) || task_is_full(&events->task) || !next_type(events))
		end_events(events);
	else
		event_read_next_type(&events->waiter, NULL);
}

/* Reads the events of the current type, of which there are at most `total`. */
static void read_events(struct events_task *events, uint64_t total)
{
	struct host *host = events->task.host;
	size_t align = _Alignof(struct event_part), stride, ring;

	events->holes = 0;
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

/* Finds the next type with events, beginning with the current one, and reads these. */
static void event_read_next_type(struct waiter *waiter, const struct result *r)
{
	struct events_task *events =
		(struct events_task *)((char *)waiter - offsetof(struct events_task, waiter));
	uint64_t total;

	(void)r;
	do {
		total = total_of(events);
		if (!events->newest && total > EVENTS_MAX) {
			task_note(&events->task, too_many_events);
			break;
		}
		if (total) {
			read_events(events, total);
			return;
		}
		if (event_read_pauses(
			    events, counters_of(&events->type->range), event_read_skip_type))
			return;
	} while (!task_is_full(&events->task) && next_type(events));
	end_events(events);
}

static void event_read_on_counters(struct counters *counters)
{
	struct events_task *events =
		(struct events_task *)((char *)counters - offsetof(struct events_task, counters));

	events->counts = counters->values;
	if (task_has_failed(&events->task))
		end_events(events);
	else
		event_read_next_type(&events->waiter, NULL);
}

/* --- the start --- */

/*
 * The types and the buckets of a request. The buckets are named by words, or with `back` begin
 * `lookback` before the last one. The first type is the key of the request.
 */
struct plan {
	struct slice from, to, more; /* `more`: the other types. */
	bool back;
	size_t count, bytes; /* Number of types, and bytes of their names with a space each. */
	size_t prefix;       /* The most bytes of a prefix. */
};

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

/* Finds the buckets of a type. Returns NULL, or the error line. */
static const char *plan_range(const struct host *host, const struct plan *plan,
	const struct event_rule *rule, struct time_bucket_range *out)
{
	struct time_bucket_range end;

	if (!parse_buckets(host, rule, plan->from, out) ||
		!parse_buckets(host, rule, plan->to.n ? plan->to : plan->from, &end) ||
		end.last < out->first)
		return bad_bucket;
	out->last = end.last;
	if (plan->back)
		out->first = out->last > rule->lookback ? out->last - rule->lookback : 0;
	return out->last - out->first < TIME_BUCKET_RANGE_MAX ? NULL : many_buckets;
}

/* Takes all types, and checks them. Returns NULL, or the error line. */
static const char *plan_types(
	const struct host *host, const struct request *request, struct plan *plan)
{
	const struct rules *rules = host->env.rules;
	struct slice rest = plan->more, type = request->key;
	size_t buckets = 0;

	for (; type.n; type = slice_token(&rest)) {
		const struct event_rule *rule = rules_event(rules, type);
		size_t prefix = type.n + 2 * rule->separator.n + TIME_BUCKET_NAME_MAX;
		struct time_bucket_range range;
		const char *error = event_refuse_type(rules, type, rule);
		if (!error)
			error = plan_range(host, plan, rule, &range);
		if (error)
			return error;
		buckets += counters_of(&range);
		if (buckets > TIME_BUCKET_RANGE_MAX)
			return many_buckets;
		if (++plan->count > TYPES_MAX)
			return "CLIENT_ERROR too many types";
		plan->bytes += type.n + 1;
		plan->prefix = prefix > plan->prefix ? prefix : plan->prefix;
	}
	return NULL;
}

/*
 * Creates a task that reads all events in order, and starts to read the counters of a plan. The
 * caller changes its fields right after, as no counter has been read yet.
 */
static struct events_task *new_events(struct host *host, const struct request *request, void *owner,
	const struct plan *plan, void (*done)(struct counters *counters))
{
	size_t size = sizeof(struct events_task) + plan->count * sizeof(struct counted_type);
	struct events_task *events =
		task_new(host, request, owner, size + plan->bytes + plan->prefix);
	char *names = (char *)events + size, *at = names;
	struct slice rest = plan->more, type = request->key;

	for (size_t i = 0; i < plan->count; i++, type = slice_token(&rest)) {
		struct counted_type *t = &events->types[i];
		t->type = task_keep(&at, type);
		*at++ = ' ';
		t->rule = rules_event(host->env.rules, type);
		(void)plan_range(host, plan, t->rule, &t->range);
	}
	(void)task_keys(&events->task, slice_of(names, plan->bytes - 1), plan->count);
	events->prefix_room = at;
	events->type = events->types;
	events->types_end = events->types + plan->count;
	events->newest = false;
	events->first = 1;
	events->last = -1;
	events->limit = SIZE_MAX;
	counters_read_types(&events->counters, &events->task, events->types, plan->count, done);
	return events;
}

const char *event_counts_start(struct host *host, const struct request *request, void *owner,
	const struct event_rule *rule)
{
	struct slice rest = request->rest, from = slice_token(&rest), to = slice_token(&rest);
	struct plan plan = { .from = from, .to = to, .more = rest };
	const char *error;

	(void)rule;
	error = plan_types(host, request, &plan);
	if (!error)
		(void)new_events(host, request, owner, &plan, event_read_on_counts);
	return error;
}

const char *event_range_start(struct host *host, const struct request *request, void *owner,
	const struct event_rule *rule)
{
	struct slice rest = request->rest, bucket = slice_token(&rest), from = slice_token(&rest),
		     to = slice_token(&rest);
	struct plan plan = { .from = bucket };
	struct time_bucket_range range;
	int64_t first = 1, last = -1;
	struct events_task *events;
	const char *error;

	if (bucket.n == 0 || (from.n && !num_parse_i64(from, &first)) ||
		(to.n && !num_parse_i64(to, &last)) || slice_token(&rest).n)
		return command_usage(request->command->id);
	/* Each bucket has its own numbers, so numbers need a single bucket. */
	if (!parse_buckets(host, rule, bucket, &range) || (from.n && range.first != range.last))
		return bad_bucket;
	error = plan_types(host, request, &plan);
	if (error)
		return error;
	events = new_events(host, request, owner, &plan, event_read_on_counters);
	events->first = first;
	events->last = last;
	return NULL;
}

const char *event_last_start(struct host *host, const struct request *request, void *owner,
	const struct event_rule *rule)
{
	struct slice rest = request->rest, count = slice_token(&rest), bucket = slice_token(&rest);
	struct plan plan = { .from = bucket, .more = rest, .back = true };
	struct events_task *events;
	const char *error;
	uint64_t n = 0;

	(void)rule;
	if (count.n == 0)
		return command_usage(request->command->id);
	if (!num_parse_u64(count, &n))
		return "CLIENT_ERROR invalid count";
	error = n > EVENTS_MAX ? too_many_events : plan_types(host, request, &plan);
	if (error)
		return error;
	if (n > EVENTS_MAX / plan.count)
		return too_many_events;
	if (n == 0) {
		task_say_word(task_new(host, request, owner, sizeof(struct task)), WORD_END);
		return NULL;
	}
	events = new_events(host, request, owner, &plan, event_read_on_counters);
	events->newest = true;
	events->limit = (size_t)n;
	return NULL;
}
