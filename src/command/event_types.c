#include "command/event_types.h"

#include "collection/lane/lanes.h"
#include "protocol/call.h"

/* memcached takes a larger time to live for a date. */
enum { TTL_MAX = 30 * 24 * 60 * 60 };

struct types_note {
	struct op op;
	struct task *task;
	void (*done)(struct task *task);
	size_t size;
	char bytes[]; /* The key of the set, and the token of the type. */
};

char *event_types_write_key(const struct event_rule *rule, struct slice name, char *at)
{
	at = slice_write(at, rule->prefix);
	at = slice_write(at, rule->separator);
	at = slice_write(at, name);
	at = slice_write(at, rule->separator);
	return slice_write(at, SLICE("types"));
}

static unsigned hex_digits(uint64_t n)
{
	return n ? (unsigned)(63 - __builtin_clzll(n)) / 4 + 1 : 0;
}

/* A counter that wraps around has been noted long before. */
static bool is_due(uint64_t number, uint64_t count)
{
	return number >= count && hex_digits(number) != hex_digits(number - count);
}

/*
 * The set must not expire before the counters, of which the last may be created at the end of
 * the bucket.
 */
static int64_t types_ttl(const struct event_rule *rule)
{
	struct time_bucket_range range;
	int64_t ttl = rule->ttl + time_bucket_last(rule->bucket, 0, 1, 1, &range);

	if (rule->ttl == 0)
		return 0;
	return ttl < TTL_MAX ? ttl : TTL_MAX;
}

static void event_types_on_noted(struct op *op, const struct outcome *outcome)
{
	struct types_note *note =
		(struct types_note *)((char *)op - offsetof(struct types_note, op));
	void (*done)(struct task *) = note->done;
	struct task *task = note->task;

	(void)outcome;
	task_use(task, 0, note->size);
	pool_put(task->host->env.pool, note, note->size);
	done(task);
}

bool event_types_note(struct task *task, const struct event_rule *rule, const struct op *counted,
	uint64_t number, void (*done)(struct task *task))
{
	struct slice type = task->keys.list,
		     name = slice_skip(counted->key, type.n + rule->separator.n);
	size_t size = sizeof(struct types_note) + event_types_key_size(rule) + type.n + 2;
	struct types_note *note;
	char *at;

	if (!is_due(number, counted->count) || event_types_key_size(rule) > COLLECTION_KEY_MAX)
		return false;
	note = pool_get(task->host->env.pool, size);
	task_use(task, size, 0);
	at = event_types_write_key(rule, name, note->bytes);
	note->op = (struct op){
		.kind = OP_APPEND,
		.key = slice_of(note->bytes, (size_t)(at - note->bytes)),
		.log = slice_of(at, type.n + 2),
		.create = true,
		.ttl = types_ttl(rule),
		.done = event_types_on_noted,
	};
	*at++ = '+';
	*slice_write(at, type) = ' ';
	task_owns(task, &note->op);
	note->task = task;
	note->done = done;
	note->size = size;
	lanes_submit(task->host->lanes, &note->op);
	return true;
}
