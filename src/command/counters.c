#include "command/counters.h"

#include "collection/lane/lanes.h"
#include "protocol/reply.h"
#include "util/num.h"

struct counter {
	struct waiter waiter;
	struct counters *counters;
	uint64_t value;
};

/* memcached leaves spaces behind a number that has become shorter. */
static bool parse_counter(struct slice value, uint64_t *out)
{
	while (value.n && value.p[value.n - 1] == ' ')
		value.n--;
	return num_parse_u64(value, out);
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
	if (--counters->pending == 0)
		counters->done(counters);
}

/* The keys of all buckets are equally long and lie one behind the other, behind the counters. */
void counters_read(struct counters *counters, struct host *host, const struct event_rule *rule, struct slice type,
	struct time_bucket_range range, struct buf *failure, void (*done)(struct counters *counters))
{
	size_t n = (size_t)(range.last - range.first) + 1;
	struct call call = { .verb = CALL_GET, .want = WANT_VALUE, .server = CALL_ANY_SERVER };
	struct buf key = BUF_EMPTY;
	char *at;

	time_bucket_key(rule, type, range.first, &key);
	*counters = (struct counters){
		.host = host,
		.done = done,
		.failure = failure,
		.range = range,
		.pending = n,
		.size = n * (sizeof(struct counter) + buf_size(&key)),
	};
	counters->all = pool_get(host->env.pool, counters->size);
	at = (char *)(counters->all + n);
	for (size_t i = 0; i < n; i++) {
		buf_consume(&key, buf_size(&key));
		time_bucket_key(rule, type, range.first + (int64_t)i, &key);
		call.key = slice_of(at, buf_size(&key));
		memcpy(at, buf_slice(&key).p, call.key.n);
		at += call.key.n;
		counters->all[i] = (struct counter){ { answered, call.key }, counters, 0 };
		lanes_call(host->lanes, &call, &counters->all[i].waiter);
	}
	buf_free(&key);
}

uint64_t counters_get(const struct counters *counters, int64_t bucket)
{
	return counters->all[bucket - counters->range.first].value;
}

void counters_free(struct counters *counters)
{
	pool_put(counters->host->env.pool, counters->all, counters->size);
}
