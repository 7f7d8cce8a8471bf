#include "command/keyed.h"

#include "command/collection_item.h"
#include "command/event_item.h"
#include "command/fan.h"
#include "command/get.h"
#include "command/start.h"
#include "protocol/metaflags.h"
#include "protocol/reply.h"

/* --- which requests --- */

static bool any_is_command(const struct command_keys *keys, const struct request *request)
{
	struct slice rest = request->rest, key = request->key;

	for (; key.n; key = slice_token(&rest)) {
		if (command_key_is(keys, key))
			return true;
	}
	return false;
}

static bool meta_is_command(const struct command_keys *keys, const struct request *request)
{
	struct metaflags flags;
	char decoded[KEY_MAX];

	if (metaflags_parse(request->command->id, request->rest, &flags) || !flags.base64)
		return command_key_is(keys, request->key);
	return command_key_is(keys, slice_of(decoded, metaflags_decode_key(request->key, decoded)));
}

bool keyed_finds_command(const struct rules *rules, const struct request *request)
{
	switch (request->command->grammar) {
	case GRAMMAR_KEYS:
	case GRAMMAR_TOUCH_KEYS:
	case GRAMMAR_COLLECTION_KEYS:
		return any_is_command(&rules->commands, request);
	case GRAMMAR_META:
	case GRAMMAR_META_DATA:
		return meta_is_command(&rules->commands, request);
	case GRAMMAR_FLUSH:
	case GRAMMAR_ARGS:
	case GRAMMAR_BARE:
		return false;
	default:
		return command_key_is(&rules->commands, request->key);
	}
}

/* --- a task inside --- */

/* Gives the error line as the whole reply. */
static void fail(struct nest *nest, const char *line)
{
	struct buf reply = BUF_EMPTY;

	reply_text(&reply, line);
	nest->done(nest, buf_slice(&reply));
	buf_free(&reply);
}

static void start_inside(struct nest *nest, struct request *inside)
{
	struct task *outer = nest->outer;
	struct host *host = outer->host;

	if (host->denies && host->denies(host, inside->command->id)) {
		fail(nest, command_denied(inside->command->id));
	} else if (!task_start_inside(nest, inside)) {
		inside->into = nest;
		if (host->start_inside)
			host->start_inside(inside, outer->owner);
		else
			fail(nest, "CLIENT_ERROR no such command");
	}
}

/* --- one key --- */

struct single {
	struct task task;
	struct nest nest;
	const struct command *inside;
	size_t keys; /* that the request inside names */
	char key[];
};

static struct single *single_of(struct nest *nest)
{
	return (struct single *)((char *)nest - offsetof(struct single, nest));
}

static void resume_single(struct task *task)
{
	if (task->abandoned)
		task_abandon_inside(&((struct single *)task)->nest);
}

static struct slice key_of(struct single *single)
{
	return slice_of(single->key, single->task.size - sizeof(*single));
}

static void reply_value_of(
	struct buf *out, const struct task *outer, struct slice key, struct slice value, const uint64_t *cas)
{
	reply_value_head(out, key, 0, value.n, outer->command->id == COMMAND_GETS ? cas : NULL);
	reply_line(out, value);
}

static void single_got(struct nest *nest, struct slice reply)
{
	struct single *single = single_of(nest);
	struct buf *out = task_reply(&single->task);
	struct slice value;

	switch (command_key_value(single->inside, single->keys, reply, &value)) {
	case COMMAND_KEY_VALUE:
		reply_value_of(out, &single->task, key_of(single), value, &nest->cas);
		BUF_ADD(out, "END\r\n");
		break;
	case COMMAND_KEY_MISS:
		BUF_ADD(out, "END\r\n");
		break;
	case COMMAND_KEY_FAILED:
		reply_line(out, value);
	}
	task_done(&single->task);
}

static void single_stored(struct nest *nest, struct slice reply)
{
	struct single *single = single_of(nest);

	reply_line(task_reply(&single->task), command_key_stored(single->task.command, reply));
	task_done(&single->task);
}

static void start_single(struct host *host, const struct request *request, void *owner)
{
	struct buf words = BUF_EMPTY;
	struct request inside;
	struct single *single;
	char *at;

	if (!command_key_parse(&host->env.rules->commands, request, request->key, &words, &inside)) {
		buf_free(&words);
		task_refuse(host, request, owner, inside.error);
		return;
	}
	single = task_new(host, request, owner, sizeof(*single) + request->key.n);
	at = single->key;
	(void)task_keep(&at, request->key);
	single->inside = inside.command;
	single->keys = inside.keys;
	single->nest = (struct nest){
		.outer = &single->task,
		.done = request->command->grammar == GRAMMAR_KEYS ? single_got : single_stored,
	};
	single->task.resume = resume_single;
	start_inside(&single->nest, &inside);
	buf_free(&words);
}

/* --- many keys --- */

struct part {
	struct fan_part part;
	struct waiter waiter; /* its key is that of the part, also if this is a command */
	struct nest nest;
	const struct command *inside;
	size_t keys;
	struct order_effect effect;
};

struct many {
	struct task task;
	struct fan fan;
	struct order order; /* of the parts under way */
	struct call call;   /* for all plain keys */
	struct slice rest;  /* the keys not yet read */
	struct part parts[];
};

static struct part *part_of(struct nest *nest)
{
	return (struct part *)((char *)nest - offsetof(struct part, nest));
}

static void finish(struct fan *fan)
{
	struct buf *failure = &fan->task->scratch;

	buf_add_slice(task_reply(fan->task), buf_size(failure) ? buf_slice(failure) : SLICE("END\r\n"));
	task_done(fan->task);
}

static void part_done(struct part *part)
{
	struct many *many = (struct many *)part->part.fan->task;

	order_end(&many->order, part->effect);
	fan_part_done(&part->part);
}

static void answered(struct waiter *waiter, const struct result *r)
{
	struct part *part = (struct part *)((char *)waiter - offsetof(struct part, waiter));
	struct many *many = (struct many *)part->part.fan->task;

	if (result_failed(r) && buf_size(&many->task.scratch) == 0)
		reply_failure(&many->task.scratch, r);
	if (r->status == RESULT_HIT)
		reply_value(fan_reply(&part->part, r->value.n), waiter->key, r, many->call.want & WANT_CAS);
	part_done(part);
}

/* A failure is sent instead of END, as that of a plain key. */
static void part_got(struct nest *nest, struct slice reply)
{
	struct part *part = part_of(nest);
	struct buf *failure = &nest->outer->scratch;
	struct slice value;

	switch (command_key_value(part->inside, part->keys, reply, &value)) {
	case COMMAND_KEY_VALUE:
		reply_value_of(
			fan_reply(&part->part, value.n), nest->outer, part->waiter.key, value, &nest->cas);
		break;
	case COMMAND_KEY_MISS:
		break;
	case COMMAND_KEY_FAILED:
		if (buf_size(failure) == 0)
			reply_line(failure, value);
	}
	part_done(part);
}

static void ask_inside(struct many *many, struct part *part)
{
	const struct rules *rules = many->task.host->env.rules;
	const struct request get = { .command = command_get(COMMAND_GET) };
	struct buf words = BUF_EMPTY;
	struct request inside;
	bool good = command_key_parse(&rules->commands, &get, part->waiter.key, &words, &inside);

	part->nest = (struct nest){ .outer = &many->task, .done = part_got };
	part->inside = inside.command;
	part->keys = inside.keys;
	part->effect = order_effect(&inside);
	order_begin(&many->order, part->effect);
	if (good)
		start_inside(&part->nest, &inside);
	else
		fail(&part->nest, inside.error);
	buf_free(&words);
}

static bool ask(struct fan *fan, struct fan_part *fan_part)
{
	struct many *many = (struct many *)fan->task;
	struct part *part = (struct part *)fan_part;
	struct host *host = many->task.host;

	part->waiter = (struct waiter){ answered, slice_token(&many->rest) };
	part->nest.task = NULL;
	if (command_key_is(&host->env.rules->commands, part->waiter.key)) {
		ask_inside(many, part);
		return true;
	}
	many->call.key = part->waiter.key;
	part->effect = (struct order_effect){ .calls = 1 };
	order_begin(&many->order, part->effect);
	get_call(host, &many->call, many->task.owner, &part->waiter);
	return true;
}

/* The class of a key's request, and its effect. A set, as a key, may store an event. */
static enum order_class class_of(const struct rules *rules, struct slice key, struct order_effect *effect)
{
	struct request inside = { .command = command_get(COMMAND_GET), .keys = 1 };
	const struct command *event;

	if (command_key_is(&rules->commands, key)) {
		inside.command = command_key_find(&rules->commands, key, &inside.keys);
		event = inside.command && rules->plain_events ? event_item_command(inside.command) : NULL;
		if (event)
			inside.command = event;
	}
	*effect = order_effect(&inside);
	return inside.command ? inside.command->order : ORDER_READ;
}

/* Keeps to the order in which a connection carries out these commands, and leaves other clients their share of a server. */
static bool waits(const struct fan *fan)
{
	const struct many *many = (const struct many *)fan->task;
	const struct host *host = many->task.host;
	struct slice rest = many->rest;
	struct order_effect effect;

	if (host->calls_max && many->order.calls >= host->calls_max)
		return true;
	return order_class_must_wait(&many->order, class_of(host->env.rules, slice_token(&rest), &effect));
}

static void abandon(struct fan *fan)
{
	for (size_t i = fan->written, end = fan->asked; i < end; i++) {
		struct part *part = (struct part *)fan_part_at(fan, i);
		if (!part->part.done)
			task_abandon_inside(&part->nest);
	}
}

/* --- the order of requests --- */

static bool has_large_reply(const struct command_keys *keys, struct slice key)
{
	const struct command *command;
	size_t words;

	if (!command_key_is(keys, key))
		return false;
	command = command_key_find(keys, key, &words);
	return command && command->reply == REPLY_DATA;
}

/* How many keys are asked for before the size of their answers is known. */
static size_t first_keys(const struct command_keys *keys, struct slice all)
{
	struct slice key;

	while ((key = slice_token(&all)).n) {
		if (has_large_reply(keys, key))
			return ORDER_SETS_FIRST;
	}
	return ORDER_KEYS_FIRST;
}

/* All keys, as they are in the line. */
static struct slice all_keys(const struct request *request)
{
	return slice_of(request->key.p, (size_t)(request->rest.p + request->rest.n - request->key.p));
}

/*
 * If a part may start late, behind others, later requests must not change what it reads. If any part writes, that may start late, too.
 */
static void find_needs_of_many(const struct rules *rules, const struct request *request, struct order_needs *out)
{
	struct slice all = all_keys(request), key;
	bool late = request->keys > first_keys(&rules->commands, all), writes = false;
	size_t calls = 0;

	while ((key = slice_token(&all)).n) {
		struct order_effect effect;
		enum order_class class = class_of(rules, key, &effect);
		out->classes |= (uint16_t)(1u << class);
		writes |= order_class_changes(class);
		late |= effect.stages_reads || effect.hides_writes || class == ORDER_FLUSH;
		calls += effect.calls;
	}
	late |= calls > ORDER_KEYS_FIRST;
	out->effect = (struct order_effect){
		.stages_reads = late,
		.writes_later = late && writes,
		.calls = (uint16_t)(calls < ORDER_CALLS_MAX ? calls : ORDER_CALLS_MAX),
	};
}

static bool finds_event(const struct rules *rules, const struct request *request, struct order_needs *out)
{
	struct request inside = { .command = event_item_command(request->command), .keys = 1 };

	if (!inside.command || !event_item_covers(rules, request->key) ||
		rules_collection(rules, request->key)->plain_verbs)
		return false;
	out->classes = (uint16_t)(1u << inside.command->order);
	out->effect = order_effect(&inside);
	return true;
}

bool keyed_finds_needs(const struct rules *rules, const struct request *request, struct order_needs *out)
{
	enum grammar grammar = request->command->grammar;

	*out = (struct order_needs){ 0 };
	if (!keyed_is_command(rules, request))
		return finds_event(rules, request, out);
	if (grammar == GRAMMAR_KEYS && request->keys > 1)
		find_needs_of_many(rules, request, out);
	else if (grammar == GRAMMAR_KEYS || grammar == GRAMMAR_STORAGE)
		out->classes = (uint16_t)(1u << class_of(rules, request->key, &out->effect));
	else
		return false;
	return true;
}

static void start_many(struct host *host, const struct request *request, void *owner)
{
	bool cas = request->command->id == COMMAND_GETS;
	size_t ring = request->keys < FAN_RING ? request->keys : FAN_RING;
	size_t size = sizeof(struct many) + ring * sizeof(struct part);
	struct slice keys = all_keys(request);
	struct many *many = task_new(host, request, owner, size + keys.n);
	char *at = (char *)many + size;

	many->rest = task_keep(&at, keys);
	many->order = (struct order){ 0 };
	many->call = (struct call){
		.verb = CALL_GET,
		.want = WANT_VALUE | (cas ? WANT_CAS : 0u),
		.server = CALL_ANY_SERVER,
		.expected = many->task.expected,
	};
	many->fan = (struct fan){
		.task = &many->task,
		.ask = ask,
		.waits = waits,
		.abandon = abandon,
		.finish = finish,
		.parts = (char *)many->parts,
		.stride = sizeof(struct part),
		.ring = ring,
		.total = request->keys,
		.first = first_keys(&host->env.rules->commands, keys),
		.limit = SIZE_MAX,
	};
	fan_start(&many->fan);
}

void keyed_start(struct host *host, const struct request *request, void *owner)
{
	const struct command_keys *keys = &host->env.rules->commands;
	enum command_id id = request->command->id;
	struct slice rest = request->rest, key = request->key;

	if (request->command->grammar == GRAMMAR_KEYS) {
		(request->keys > 1 ? start_many : start_single)(host, request, owner);
		return;
	}
	if (id == COMMAND_SET || id == COMMAND_CAS) {
		start_single(host, request, owner);
		return;
	}
	/* The first key that is a command, or that of a meta command in base64. */
	while (key.n && !command_key_is(keys, key))
		key = slice_token(&rest);
	task_refuse(host, request, owner, key.n ? command_key_refusal(keys, key) : "CLIENT_ERROR use get or set for a command");
}
