#include "command/counters.h"

#include "collection/lane/lanes.h"
#include "command/order.h"
#include "protocol/reply.h"
#include "util/num.h"

struct counter {
	struct waiter waiter;
	struct counters *counters;
	uint64_t value;
};

/* memcached pads a number that has become shorter with spaces. */
static bool parse_counter(struct slice value, uint64_t *out)
{
	while (value.n && value.p[value.n - 1] == ' ')
		value.n--;
	return num_parse_u64(value, out);
}

/* Asks for more counters, a limited number at a time, so that other calls get through. */
static void ask(struct counters *counters)
{
	size_t share = counters->host->calls_max, most = share && share < ORDER_EVENT_CALLS ? share : ORDER_EVENT_CALLS;
	struct call call = { .verb = CALL_GET, .want = WANT_VALUE, .server = CALL_ANY_SERVER };

	while (counters->asked < counters->count && counters->asked - counters->answered < most) {
		struct counter *counter = &counters->all[counters->asked++];
		call.key = counter->waiter.key;
		lanes_call(counters->host->lanes, &call, &counter->waiter);
	}
}

static void answered(struct waiter *waiter, const struct result *r)
{
	struct counter *counter = (struct counter *)waiter;
	struct counters *counters = counter->counters;

	if (buf_size(counters->failure) == 0) {
		if (r->status == RESULT_HIT && !parse_counter(r->value, &counter->value))
			reply_text(counters->failure, "CLIENT_ERROR value is not a counter");
		else if (result_failed(r))
			reply_failure(counters->failure, r);
	}
	counters->answered++;
	if (buf_size(counters->failure))
		counters->count = counters->asked;
	ask(counters);
	if (counters->answered == counters->count)
		counters->done(counters);
}

/* The keys, all of one length, lie behind the counters. */
void counters_read(struct counters *counters, struct host *host, const struct event_rule *rule, struct slice type,
	struct time_bucket_range range, struct buf *failure, void (*done)(struct counters *counters))
{
	size_t n = (size_t)(range.last - range.first) + 1;
	struct buf key = BUF_EMPTY;
	char *at;

	time_bucket_key(rule, type, range.first, &key);
	*counters = (struct counters){
		.host = host,
		.done = done,
		.failure = failure,
		.range = range,
		.count = n,
		.size = n * (sizeof(struct counter) + buf_size(&key)),
	};
	counters->all = pool_get(host->env.pool, counters->size);
	at = (char *)(counters->all + n);
	for (size_t i = 0; i < n; i++) {
		size_t size;
		buf_consume(&key, buf_size(&key));
		time_bucket_key(rule, type, range.first + (int64_t)i, &key);
		size = buf_size(&key);
		memcpy(at, buf_slice(&key).p, size);
		counters->all[i] = (struct counter){ { answered, slice_of(at, size) }, counters, 0 };
		at += size;
	}
	buf_free(&key);
	ask(counters);
}

uint64_t counters_get(const struct counters *counters, int64_t bucket)
{
	return counters->all[bucket - counters->range.first].value;
}

void counters_free(struct counters *counters)
{
	pool_put(counters->host->env.pool, counters->all, counters->size);
}
