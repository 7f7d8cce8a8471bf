/*
 * Starts the commands on events, and memcached's own commands on a type of events with
 * `plain_verbs`.
 */
#include "command/event.h"

#include "collection/lane/lanes.h"
#include "command/plain.h"
#include "command/start.h"
#include "protocol/commands.h"
#include "util/num.h"

/*
 * Returns whether the largest key of an event would exceed KEY_MAX: type, separator, bucket,
 * separator, number.
 */
static bool is_too_long(struct slice type, const struct event_rule *rule)
{
	return type.n + 2 * rule->separator.n + TIME_BUCKET_NAME_MAX + NUM_U64_MAX +
		rules_second_size(rule->copies) >
		KEY_MAX;
}

const char *event_refuse_type(
	const struct rules *rules, struct slice type, const struct event_rule *rule)
{
	if (is_too_long(type, rule))
		return "CLIENT_ERROR key too long";
	return command_key_is(&rules->commands, type) ? command_key_refusal(&rules->commands, type)
						      : NULL;
}

void event_start(struct host *host, const struct request *request, void *owner)
{
	static event_starter *const starts[] = {
		[COMMAND_EVADD] = event_store_start,
		[COMMAND_EVCOUNT] = event_counts_start,
		[COMMAND_EVINCR] = event_count_start,
		[COMMAND_EVLAST] = event_last_start,
		[COMMAND_EVLIMIT] = event_limit_start,
		[COMMAND_EVRANGE] = event_range_start,
		[COMMAND_EVTOP] = event_top_start,
		[COMMAND_INCR] = event_count_start,
		[COMMAND_SET] = event_store_start,
	};
	const struct event_rule *rule = rules_event(host->env.rules, request->key);
	const char *refused = event_refuse_type(host->env.rules, request->key, rule);

	if (!refused)
		refused = starts[request->command->id](host, request, owner, rule);
	if (refused)
		task_refuse(host, request, owner, refused);
}

/* --- plain verbs --- */

void event_plain_start(struct host *host, const struct request *request, void *owner)
{
	command_id id = request->command->id;
	struct request event = *request;
	char delta[NUM_U64_MAX];

	/* There is no CAS id to compare. */
	if (request->extras.compare || (id != COMMAND_INCR && id != COMMAND_SET)) {
		task_refuse(host, request, owner, "CLIENT_ERROR use incr, set or get for events");
		return;
	}
	if (id == COMMAND_INCR)
		event.rest = slice_of(delta, num_format_u64(delta, request->number));
	event_start(host, &event, owner);
}

struct event_reading {
	struct waiter waiter; /* The waiter of the counter. */
	struct waiter *asker;
	struct pool *pool;
	size_t size;
	char key[];
};

static void event_on_read(struct waiter *waiter, const struct result *r)
{
	struct event_reading *reading = (struct event_reading *)waiter;
	struct waiter *asker = reading->asker;
	const struct result none = {
		.status = RESULT_HIT, .value = SLICE("0"), .ttl = TTL_UNKNOWN
	};

	pool_put(reading->pool, reading, reading->size);
	asker->done(asker, r->status == RESULT_MISS ? &none : r);
}

void event_plain_read(const struct task *task, const struct call *call, struct waiter *waiter)
{
	struct host *host = task->host;
	const struct event_rule *rule = rules_event(host->env.rules, call->key);
	size_t size = sizeof(struct event_reading) + call->key.n + rule->separator.n +
		TIME_BUCKET_NAME_MAX;
	struct event_reading *reading = pool_get(host->env.pool, size);
	int64_t bucket = time_bucket_of(rule->bucket, host->env.unix_time);
	char *end = time_bucket_write_key(&host->bucket, rule, call->key, bucket, reading->key);
	struct call of_counter = *call;

	of_counter.key = slice_of(reading->key, (size_t)(end - reading->key));
	of_counter.role.copied = rule->copies > 1;
	reading->waiter = (struct waiter){ event_on_read, of_counter.key };
	reading->asker = waiter;
	reading->pool = host->env.pool;
	reading->size = size;
	lanes_call(host->lanes, task->account, &of_counter, &reading->waiter);
}
