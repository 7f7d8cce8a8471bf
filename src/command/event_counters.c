#include "command/event_counters.h"

#include "collection/lane/lanes.h"
#include "protocol/reply.h"
#include "util/num.h"

struct counter {
	struct waiter waiter;
	struct counters *counters;
	uint64_t value;
};

static void event_counters_on_read(struct waiter *waiter, const struct result *r);

/* memcached pads a number that has become shorter with spaces. */
static bool parse_counter(struct slice value, uint64_t *out)
{
	while (value.n && value.p[value.n - 1] == ' ')
		value.n--;
	return num_parse_u64(value, out);
}

/*
 * Returns a key. The keys follow the counters. All have the same length, and differ only in the
 * bucket's name at the end.
 */
static char *counter_key(const struct counters *counters, size_t i)
{
	return (char *)(counters->all + (counters->range.last - counters->range.first + 1)) +
		i * counters->key_size;
}

static void make_counter(struct counters *counters, size_t i)
{
	char name[TIME_BUCKET_NAME_MAX], *at = counter_key(counters, i);
	size_t n = time_bucket_name(counters->bucket, counters->range.first + (int64_t)i, name);

	if (i > 0)
		memcpy(at, counter_key(counters, 0), counters->key_size - n);
	memcpy(at + counters->key_size - n, name, n);
	counters->all[i] =
		(struct counter){ { event_counters_on_read, slice_of(at, counters->key_size) },
			counters, 0 };
}

static bool may_ask(const struct counters *counters)
{
	enum { MOST = 1024 };
	size_t share = counters->task->host->calls_max,
	       flying = counters->asked - counters->answered;

	return counters->asked < counters->count && flying < MOST && (!share || flying < share);
}

/*
 * Requests more counters, and makes their keys, a limited number at a time to let other work
 * run.
 */
static void ask_counters(struct counters *counters)
{
	struct call call = {
		.verb = CALL_GET,
		.want = WANT_VALUE,
		.server = CALL_ANY_SERVER,
		.patient = true,
		.account = counters->task->account,
		.only_reads = true,
	};

	while (may_ask(counters)) {
		struct counter *counter = &counters->all[counters->asked];
		make_counter(counters, counters->asked++);
		call.key = counter->waiter.key;
		lanes_call(counters->task->host->lanes, counters->task->account, &call,
			&counter->waiter);
	}
}

static void event_counters_on_read(struct waiter *waiter, const struct result *r)
{
	struct counter *counter = (struct counter *)waiter;
	struct counters *counters = counter->counters;
	struct task *task = counters->task;

	if (r->status == RESULT_HIT && !parse_counter(r->value, &counter->value))
		task_note(task, "CLIENT_ERROR value is not a counter");
	else if (result_failed(r))
		task_note_failure(task, r);
	/*
	 * The client has disconnected. End early, as the memory of the task no longer counts
	 * for any client.
	 */
	else if (task_is_abandoned(task))
		task_note(task, "SERVER_ERROR client closed");
	counters->answered++;
	if (task_has_failed(task))
		counters->count = counters->asked;
	ask_counters(counters);
	if (counters->answered == counters->count)
		counters->done(counters);
}

void counters_read(struct counters *counters, struct task *task, const struct event_rule *rule,
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

uint64_t counters_get(const struct counters *counters, int64_t bucket)
{
	return counters->all[bucket - counters->range.first].value;
}

void counters_free(struct counters *counters)
{
	task_use(counters->task, 0, counters->size);
	pool_put(counters->task->host->env.pool, counters->all, counters->size);
}
