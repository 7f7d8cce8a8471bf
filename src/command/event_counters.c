#include "command/event_counters.h"

#include <stddef.h>

#include "collection/lane/lanes.h"
#include "protocol/reply.h"
#include "util/num.h"

/* Maximum number of calls in flight; and how many may be when the slice is over. */
enum { FLYING = 1024, FLYING_LEAST = 16 };

/* A call in flight, followed by its key. */
struct counter {
	struct waiter waiter;
	struct counters *counters;
	struct counter *next; /* In the list of free ones. */
	size_t number;        /* Of its counter, among all. */
};

static void event_counters_on_read(struct waiter *waiter, const struct result *r);

/* memcached pads a number that has become shorter with spaces. */
static bool parse_counter(struct slice value, uint64_t *out)
{
	while (value.n && value.p[value.n - 1] == ' ')
		value.n--;
	return num_parse_u64(value, out);
}

/* Returns memory for the next call. The calls follow the values. */
static struct counter *take_call(struct counters *counters)
{
	struct counter *counter = counters->free;

	if (counter)
		counters->free = counter->next;
	else
		counter = (struct counter *)(void *)((char *)(counters->values + counters->count) +
			counters->made++ * counters->stride);
	return counter;
}

/* Makes the next call, and moves to the next counter. */
static struct counter *next_counter(struct counters *counters)
{
	const struct counted_type *t = &counters->types[counters->type];
	struct counter *counter = take_call(counters);
	struct time_bucket_memo name = { 0 };
	char *key = (char *)(counter + 1),
	     *end = time_bucket_write_key(&name, t->rule, t->type, counters->bucket, key);

	*counter = (struct counter){
		.waiter = { event_counters_on_read, slice_of(key, (size_t)(end - key)) },
		.counters = counters,
		.number = counters->asked++,
	};
	if (counters->bucket++ == t->range.last && counters->asked < counters->count)
		counters->bucket = counters->types[++counters->type].range.first;
	return counter;
}

static bool may_read_counter(struct counters *counters)
{
	enum { STEPS = 32 /* of one call, as in env_is_over */ };
	struct host *host = counters->task->host;
	size_t share = host->calls_max, flying = counters->asked - counters->answered;

	if (counters->asked == counters->count || flying >= FLYING || (share && flying >= share))
		return false;
	if (flying < FLYING_LEAST || !env_is_over(&host->env, STEPS))
		return true;
	if (!counters->delayed) {
		counters->delayed = true;
		host->env.later(&host->env, &counters->delay, 1);
	}
	return false;
}

/*
 * Requests more counters, and makes their keys, a limited number at a time to let other work
 * run. Few if the slice is over: many clients may begin such requests in one turn. More are tried
 * a millisecond later. They do not wait for a slice of the client, as many others may be first.
 */
static void ask_counters(struct counters *counters)
{
	struct call call = {
		.verb = CALL_GET,
		.want = WANT_VALUE,
		.server = CALL_ANY_SERVER,
		.patient = true,
		.account = counters->task->account,
		/* A limit counts the events of all proxies as they are now. */
		.only_reads = counters->task->command->order == ORDER_EVENT_LIMIT ? READS_LATEST
										  : READS_ONLY,
	};

	while (may_read_counter(counters)) {
		bool copied = counters->types[counters->type].rule->copies > 1;
		struct counter *counter = next_counter(counters);
		call.key = counter->waiter.key;
		call.role.copied = copied;
		lanes_call(counters->task->host->lanes, counters->task->account, &call,
			&counter->waiter);
	}
}

/* Makes more calls after an answer or a delay, unless the task has failed. */
static void go_on(struct counters *counters)
{
	bool failed = task_has_failed(counters->task);

	if (!failed)
		ask_counters(counters);
	if (counters->answered == (failed ? counters->asked : counters->count) &&
		!counters->delayed)
		counters->done(counters);
}

static void event_counters_on_delay(struct waiter *waiter, const struct result *r)
{
	struct counters *counters =
		(struct counters *)((char *)waiter - offsetof(struct counters, delay));

	(void)r;
	counters->delayed = false;
	go_on(counters);
}

static void event_counters_on_read(struct waiter *waiter, const struct result *r)
{
	struct counter *counter = (struct counter *)waiter;
	struct counters *counters = counter->counters;
	struct task *task = counters->task;

	if (r->status == RESULT_HIT && !parse_counter(r->value, &counters->values[counter->number]))
		task_note(task, "CLIENT_ERROR value is not a counter");
	else if (result_failed(r))
		task_note_failure(task, r);
	/*
	 * The client has disconnected. End early, as the memory of the task no longer counts
	 * for any client.
	 */
	else if (task_is_abandoned(task))
		task_note(task, "SERVER_ERROR client closed");
	counter->next = counters->free;
	counters->free = counter;
	counters->answered++;
	go_on(counters);
}

static void start_counters(struct counters *counters, size_t types)
{
	size_t key = 0, align = _Alignof(struct counter);

	counters->delay.done = event_counters_on_delay;
	counters->count = 0;
	for (size_t i = 0; i < types; i++) {
		const struct counted_type *t = &counters->types[i];
		size_t n = t->type.n + t->rule->separator.n + TIME_BUCKET_NAME_MAX;
		counters->count += counters_of(&t->range);
		key = n > key ? n : key;
	}
	counters->bucket = counters->types->range.first;
	counters->stride = (sizeof(struct counter) + key + align - 1) / align * align;
	counters->size = counters->count * sizeof(counters->values[0]) +
		num_least_size(counters->count, FLYING) * counters->stride;
	counters->values = pool_get(counters->task->host->env.pool, counters->size);
	memset(counters->values, 0, counters->count * sizeof(counters->values[0]));
	task_use(counters->task, counters->size, 0);
	ask_counters(counters);
}

void counters_read(struct counters *counters, struct task *task, const struct event_rule *rule,
	struct slice type, struct time_bucket_range range, void (*done)(struct counters *counters))
{
	*counters = (struct counters){
		.task = task,
		.done = done,
		.only = { type, rule, range },
	};
	counters->types = &counters->only;
	start_counters(counters, 1);
}

void counters_read_types(struct counters *counters, struct task *task,
	const struct counted_type *types, size_t count, void (*done)(struct counters *counters))
{
	*counters = (struct counters){ .task = task, .done = done, .types = types };
	start_counters(counters, count);
}

uint64_t counters_get(const struct counters *counters, int64_t bucket)
{
	return counters->values[bucket - counters->only.range.first];
}

void counters_free(struct counters *counters)
{
	task_use(counters->task, 0, counters->size);
	pool_put(counters->task->host->env.pool, counters->values, counters->size);
}
