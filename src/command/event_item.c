#include "command/event_item.h"

#include "collection/event/time_bucket.h"
#include "collection/lane/lanes.h"
#include "command/start.h"
#include "util/num.h"

void event_item_start(struct host *host, const struct request *request, void *owner)
{
	struct request event = *request;
	char delta[NUM_U64_MAX];

	switch (request->command->id) {
	case COMMAND_INCR:
		event.rest = slice_of(delta, num_format_u64(delta, request->number));
		evincr_start(host, &event, owner);
		break;
	case COMMAND_SET:
		evadd_start(host, &event, owner);
		break;
	default:
		task_refuse(host, request, owner, "CLIENT_ERROR use incr, set or get for events");
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

void event_item_read(struct host *host, const struct call *call, struct waiter *waiter)
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
