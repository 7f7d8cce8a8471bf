/*
 * memcached's commands with a reply of one line. Each command with a key is one call; delete
 * and touch may be an operation. flush_all is a call to each server.
 */
#include "command/item.h"

#include "collection/both/both.h"
#include "collection/lane/lanes.h"
#include "collection/large.h"
#include "command/lookup.h"
#include "command/op_task.h"
#include "command/plain.h"
#include "command/start.h"
#include "command/target.h"
#include "protocol/commands.h"
#include "protocol/reply.h"

struct item_task {
	struct task task;
	struct waiter waiter;
	/* Operation of delete and touch, which include the other items of a collection. */
	struct op op;
	enum call_verb verb;
	char key[];
};

static const enum call_verb verbs[] = {
	[COMMAND_ADD] = CALL_ADD,
	[COMMAND_APPEND] = CALL_APPEND,
	[COMMAND_CAS] = CALL_CAS,
	[COMMAND_DECR] = CALL_DECR,
	[COMMAND_DELETE] = CALL_DELETE,
	[COMMAND_INCR] = CALL_INCR,
	[COMMAND_PREPEND] = CALL_PREPEND,
	[COMMAND_REPLACE] = CALL_REPLACE,
	[COMMAND_SET] = CALL_SET,
	[COMMAND_TOUCH] = CALL_TOUCH,
};

static void item_on_answer(struct waiter *waiter, const struct result *r)
{
	static const enum reply_word refusals[] = {
		[RESULT_MISS] = WORD_NOT_FOUND,
		[RESULT_NOT_STORED] = WORD_NOT_STORED,
		[RESULT_EXISTS] = WORD_EXISTS,
		[RESULT_NUMBER] = WORD_NONE,
	};
	struct item_task *item =
		(struct item_task *)((char *)waiter - offsetof(struct item_task, waiter));

	struct reply reply;

	lookup_result(&item->task, waiter->key, r);
	if (result_failed(r)) {
		task_say_failure(&item->task, r);
		return;
	}
	if (r->status == RESULT_DONE && r->cas == 0) {
		task_say_done(&item->task);
		return;
	}
	reply = (struct reply){
		.kind = r->status == RESULT_NUMBER ? REPLY_NUMBER : REPLY_WORD,
		.word = r->status == RESULT_DONE ? task_done_word(&item->task)
						 : refusals[r->status],
		.number = r->number,
		.cas = r->cas,
		.ttl = TTL_UNKNOWN,
	};
	task_say(&item->task, &reply);
}

/*
 * A set in the encoding flip has no item under its own key. The key may then be that of one of
 * its items, which match the rule, too.
 */
static bool is_flip(const struct item_task *item)
{
	return rules_collection(item->task.host->env.rules, item->waiter.key)->encoding ==
		ENCODING_FLIP;
}

static void call_touch_or_delete(struct item_task *item)
{
	lanes_call(item->task.host->lanes, item->task.account,
		&(struct call){
			.verb = item->verb,
			.server = CALL_ANY_SERVER,
			.key = item->waiter.key,
			.exptime = item->op.ttl,
		},
		&item->waiter);
}

static void item_on_touched_or_deleted(struct op *op, const struct outcome *outcome)
{
	struct item_task *item = (struct item_task *)((char *)op - offsetof(struct item_task, op));

	if (outcome->status == OUTCOME_MISSING && is_flip(item)) {
		call_touch_or_delete(item);
		return;
	}
	lookup_outcome(&item->task, outcome->status);
	if (outcome->status == OUTCOME_DONE)
		task_say_done(&item->task);
	else
		(void)outcome_ends(outcome, &item->task);
}

/*
 * Returns whether the key may be that of a collection whose other items the verb must include.
 * A delete that is unlikely to leave segments is a single call; segments that are left only use
 * memory until they are evicted.
 */
static bool has_other_items(
	const struct host *host, enum call_verb verb, const struct request *request)
{
	struct slice key = request->key;

	/* The keys of other items would be too long. */
	if (key.n > COLLECTION_KEY_MAX || request->extras.odd_key || request->extras.compare)
		return false;
	if (verb == CALL_DELETE)
		return large_seen(host->env.large, key) ||
			rules_collection(host->env.rules, key)->prefix.n > 0;
	return verb == CALL_TOUCH;
}

static unsigned wanted_by(const struct request *request)
{
	return (request->extras.wants_cas || request->extras.compare ? WANT_CAS : 0u) |
		(request->extras.odd_key ? WANT_ENCODED : 0u);
}

void item_start(struct host *host, const struct request *request, void *owner)
{
	struct item_task *item;
	char *at;

	if (request->target == TARGET_COLLECTION) {
		plain_start(host, request, owner);
		return;
	}
	if (request->target == TARGET_EVENTS) {
		event_plain_start(host, request, owner);
		return;
	}
	item = task_new(host, request, owner, sizeof(*item) + request->key.n);
	at = item->key;
	item->verb = verbs[request->command->id];
	item->waiter = (struct waiter){ item_on_answer, task_keep_key(&item->task, request, &at) };
	if (has_other_items(host, item->verb, request)) {
		item->op = (struct op){
			.kind = item->verb == CALL_TOUCH ? OP_TOUCH : OP_DELETE,
			.key = item->waiter.key,
			.ttl = request->exptime,
			.whole = true,
			.done = item_on_touched_or_deleted,
		};
		task_owns(&item->task, &item->op);
		lanes_submit(host->lanes, &item->op);
		return;
	}
	lanes_call(host->lanes, item->task.account,
		&(struct call){
			.verb = item->verb,
			.want = wanted_by(request),
			.server = CALL_ANY_SERVER,
			.key = item->waiter.key,
			.value = request->data,
			.flags = request->flags,
			.exptime = request->exptime,
			.number = request->number,
			.initial = request->extras.initial,
			.compare = request->extras.compare,
			.discards = item->verb == CALL_SET || request->extras.discards,
			.vivifies = request->extras.has_initial,
		},
		&item->waiter);
}

void item_discard_start(struct host *host, const struct request *request, void *owner)
{
	char decoded[KEY_MAX];
	struct slice key = target_key(request, decoded);
	struct item_task *item;
	char *at;

	if (target_of_write(host->env.rules, key) != TARGET_ITEM ||
		rules_reserve(host->env.rules, key)) {
		task_refuse(host, request, owner, request->error);
		return;
	}
	item = task_new(host, request, owner, sizeof(*item) + key.n);
	at = item->key;
	item->verb = CALL_DISCARD;
	item->waiter =
		(struct waiter){ item_on_answer, task_keys(&item->task, task_keep(&at, key), 1) };
	lanes_call(host->lanes, item->task.account,
		&(struct call){
			.verb = CALL_DISCARD, .server = CALL_ANY_SERVER, .key = item->waiter.key },
		&item->waiter);
}

/* --- reads, for tasks that write the reply --- */

void item_read(
	const struct task *task, enum target target, const struct call *call, struct waiter *waiter)
{
	switch (target) {
	case TARGET_COLLECTION:
		plain_read(task, call, waiter);
		break;
	case TARGET_EVENTS:
		event_plain_read(task, call, waiter);
		break;
	default:
		lanes_call(task->host->lanes, task->account, call, waiter);
	}
}

bool item_touches(const struct task *task, enum target target, int64_t exptime,
	struct waiter *waiter, const struct result *r)
{
	if (r->status != RESULT_HIT || waiter->key.n > COLLECTION_KEY_MAX ||
		target == TARGET_COLLECTION)
		return false;
	return touch_followers(task->host->lanes, task->account, exptime, waiter, r);
}

/* --- flush_all --- */

struct flush_part {
	struct waiter waiter;
	struct flush_task *flush;
};

struct flush_task {
	struct task task;
	int pending;
	struct flush_part parts[];
};

static void item_on_flushed(struct waiter *waiter, const struct result *r)
{
	struct flush_task *flush = ((struct flush_part *)waiter)->flush;

	if (result_failed(r))
		task_note_failure(&flush->task, r);
	if (--flush->pending == 0 && !task_fails(&flush->task))
		task_say_done(&flush->task);
}

void flush_start(struct host *host, const struct request *request, void *owner)
{
	size_t size =
		sizeof(struct flush_task) + (size_t)host->env.servers * sizeof(struct flush_part);
	struct flush_task *flush = task_new(host, request, owner, size);
	struct call call = { .verb = CALL_FLUSH_ALL, .exptime = request->exptime };

	flush->pending = host->env.servers;
	for (call.server = 0; call.server < host->env.servers; call.server++) {
		struct flush_part *part = &flush->parts[call.server];
		*part = (struct flush_part){ { item_on_flushed, { "", 0 } }, flush };
		lanes_call(host->lanes, flush->task.account, &call, &part->waiter);
	}
}
