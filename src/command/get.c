/*
 * get gets gat gats, and commands as keys. Such a command is a task nested in that of the get,
 * set or incr that names it. A get of many keys is a fan: calls to all servers in parallel,
 * with the reply in the order of the request.
 *
 *     get q|scard|a b  -> command_key_parse -> scard a -> nested task -> command_key_read
 *                                                                     -> VALUE q|scard|a 0 1
 *                      -> item_read of b -> VALUE b
 */
#include "command/conversion.h"
#include "command/fan.h"
#include "command/item.h"
#include "command/lookup.h"
#include "command/start.h"
#include "command/target.h"
#include "protocol/commands.h"
#include "protocol/reply.h"
#include "util/num.h"

/* --- one key --- */

/*
 * The task for one key that is not a command, the most frequent request: it needs no fan. Many
 * of these are in flight, so it stores only a part of the call.
 */
struct single_task {
	struct task task;
	struct waiter waiter;
	bool touches, cas;
	enum target target;
	int64_t exptime;
	char key[];
};

static void get_on_single(struct waiter *waiter, const struct result *r)
{
	struct single_task *single =
		(struct single_task *)((char *)waiter - offsetof(struct single_task, waiter));
	struct task *task = &single->task;
	struct reply reply;

	if (result_failed(r)) {
		task_say_failure(task, r);
		return;
	}
	if (single->touches && item_touches(task, single->target, single->exptime, waiter, r)) {
		single->touches = false;
		return;
	}
	lookup_result(task, waiter->key, r);
	if (r->status != RESULT_HIT) {
		task_say_word(task, WORD_END);
		return;
	}
	reply = reply_hit(waiter->key, r);
	reply.shows_cas = single->cas;
	task_say(task, &reply);
}

static void start_single(
	struct host *host, const struct request *request, void *owner, struct call *call)
{
	struct single_task *single =
		task_new(host, request, owner, sizeof(*single) + request->key.n);
	char *at = single->key;

	call->key = task_keep_key(&single->task, request, &at);
	call->expected = single->task.expected;
	single->touches = call->verb == CALL_GAT && !request->extras.odd_key;
	single->cas = request->command->id == COMMAND_GETS || request->command->id == COMMAND_GATS;
	single->exptime = call->exptime;
	single->target = request->target;
	single->waiter = (struct waiter){ get_on_single, call->key };
	item_read(&single->task, single->target, call, &single->waiter);
}

/* --- nested tasks --- */

/* Replies only the error line. */
static void fail_nested(struct nest *nest, const char *line)
{
	const struct reply r = reply_error(slice_of(line, strlen(line)));

	nest->done(nest, &r);
}

static void start_nested(struct nest *nest, struct request *inside)
{
	struct task *outer = nest->outer;
	struct host *host = outer->host;

	if (host->denies && host->denies(host, inside->command->id)) {
		fail_nested(nest, command_denied(inside->command->id));
	} else if (!task_start_inside(nest, inside)) {
		if (host->start_inside)
			host->start_inside(inside, outer->owner);
		else
			fail_nested(nest, "CLIENT_ERROR no such command");
	}
}

/* --- one command as the key --- */

struct named {
	struct task task;
	struct nest nest;
	const struct command *inside;
	char key[];
};

static void get_resume_named(struct task *task)
{
	if (task_is_abandoned(task))
		task_abandon_inside(&((struct named *)task)->nest);
}

/*
 * Joins the elements of a nested reply, if it has several, or quotes them if the key demands
 * it. None that it has removed is lost. `inside` is NULL if there is no such command.
 */
static void join_elements(const struct task *outer, struct slice key, const struct command *inside,
	const struct reply *reply, conversion_done *done, void *arg)
{
	const struct command_keys *keys = &outer->host->env.rules->commands;
	const struct elements how = {
		.joins = !command_key_quotes(keys, key, inside),
		.keeps = inside &&
			(inside->order == ORDER_WRITE || inside->order == ORDER_WRITE_LATER),
		.delimiter = keys->delimiter,
	};

	if (reply->kind == REPLY_VALUE && reply->content == CONTENT_ELEMENTS)
		conversion_start(outer, reply, how, done, arg);
	else
		done(arg, reply);
}

/*
 * Converts the nested task's reply to the reply to a get of the key: a VALUE, END or an ERROR.
 * `line` is memory for it. A nested get counts its own hits and misses.
 */
static struct reply nested_value(const struct task *outer, const struct command *inside,
	struct slice key, const struct reply *reply, struct buf *line)
{
	struct reply r = command_key_read(reply, line);

	if (r.kind != REPLY_ERROR && !lookup_counts(inside))
		lookup_count(outer, key, r.kind == REPLY_VALUE ? LOOKUP_HIT : LOOKUP_MISS);
	r.key = key;
	r.shows_cas = outer->command->id == COMMAND_GETS;
	return r;
}

static void get_on_named_bytes(void *arg, const struct reply *reply)
{
	struct named *named = arg;
	struct buf line = BUF_EMPTY;
	const struct reply r =
		nested_value(&named->task, named->inside, named->task.keys.list, reply, &line);

	task_say(&named->task, &r);
	buf_free(&line);
}

static void get_on_named_value(struct nest *nest, const struct reply *reply)
{
	struct named *named = (struct named *)nest->outer;

	join_elements(nest->outer, named->task.keys.list, named->inside, reply, get_on_named_bytes,
		named);
}

static void get_on_named_stored(struct nest *nest, const struct reply *reply)
{
	const struct command *inside = ((struct named *)nest->outer)->inside;
	const struct reply r = command_key_stored(nest->outer->command, inside, reply);

	if (r.kind == REPLY_NUMBER || r.word == WORD_STORED)
		lookup_count(nest->outer, nest->outer->keys.list, LOOKUP_HIT);
	else if (r.word == WORD_NOT_FOUND)
		lookup_count(nest->outer, nest->outer->keys.list, LOOKUP_MISS);
	else if (r.word == WORD_EXISTS)
		lookup_count(nest->outer, nest->outer->keys.list, LOOKUP_CHANGED);
	task_say(nest->outer, &r);
}

static void start_named(struct host *host, const struct request *request, void *owner)
{
	const struct command_keys *keys = &host->env.rules->commands;
	size_t words;
	const struct command *command = request->needs
		? request->needs->inside
		: command_key_find(keys, request->key, &words);
	size_t room_size = command_key_room(keys, request, request->key, command);
	char small[8 * KEY_MAX],
		*room = room_size <= sizeof(small) ? small : pool_get(host->env.pool, room_size),
		*at;
	bool gets = request->command->grammar == GRAMMAR_KEYS;
	struct request inside;
	struct named *named;

	if (command_key_parse(keys, request, request->key, command, room, &inside)) {
		named = task_new(host, request, owner, sizeof(*named) + request->key.n);
		at = named->key;
		(void)task_keys(&named->task, task_keep(&at, request->key), 1);
		named->inside = command;
		named->nest = (struct nest){
			.outer = &named->task,
			.done = gets ? get_on_named_value : get_on_named_stored,
			.collects = gets && !command_key_has_one_value(command, inside.keys),
		};
		named->task.resume = get_resume_named;
		start_nested(&named->nest, &inside);
	} else {
		task_refuse(host, request, owner, inside.error);
	}
	if (room != small)
		pool_put(host->env.pool, room, room_size);
}

/* --- many keys --- */

struct part {
	struct fan_part part;
	struct waiter waiter; /* Its key is that of the part, even if the key is a command. */
	enum target target;
	bool touches; /* GAT: the other items of a set or list were not touched yet. */
	struct order_effect effect; /* Set if the fan has `waits`, since some keys are commands. */
	/* From here on used only for commands. Without commands the parts end here. */
	struct nest nest;
	const struct command *inside;
};

struct many {
	struct task task;
	struct fan fan;
	struct order order;  /* Of the parts in flight. */
	struct call call;    /* For all plain keys. */
	struct slice rest;   /* The keys that are not read yet. */
	struct part parts[]; /* A ring, followed by the keys. */
};

static inline void part_done(struct part *part)
{
	struct many *many = (struct many *)part->part.fan->task;

	if (many->fan.waits)
		order_end(&many->order, part->effect);
	fan_part_done(&part->part);
}

static void get_on_item(struct waiter *waiter, const struct result *r)
{
	struct part *part = (struct part *)((char *)waiter - offsetof(struct part, waiter));
	struct many *many = (struct many *)part->part.fan->task;
	struct reply reply;

	if (part->touches &&
		item_touches(&many->task, part->target, many->call.exptime, waiter, r)) {
		part->touches = false;
		return;
	}
	lookup_result(&many->task, waiter->key, r);
	if (r->status == RESULT_HIT) {
		reply = reply_hit(waiter->key, r);
		reply.shows_cas = many->call.want & WANT_CAS;
		fan_say(&part->part, &reply);
	} else if (result_failed(r)) {
		task_note_failure(&many->task, r);
	}
	part_done(part);
}

/* A failure is sent at the end, where END would be, like that of a plain key. */
static void get_on_part_bytes(void *arg, const struct reply *reply)
{
	struct part *part = arg;
	struct task *task = part->part.fan->task;
	struct buf line = BUF_EMPTY;
	const struct reply r = nested_value(task, part->inside, part->waiter.key, reply, &line);

	if (r.kind == REPLY_VALUE)
		fan_say(&part->part, &r);
	else if (r.kind == REPLY_ERROR && !task_has_failed(task))
		buf_add_slice(&task->scratch, r.bytes);
	buf_free(&line);
	part_done(part);
}

static void get_on_part_value(struct nest *nest, const struct reply *reply)
{
	struct part *part = (struct part *)((char *)nest - offsetof(struct part, nest));

	join_elements(nest->outer, part->waiter.key, part->inside, reply, get_on_part_bytes, part);
}

static void ask_inside(struct many *many, struct part *part)
{
	const struct command_keys *keys = &many->task.host->env.rules->commands;
	const struct request get = { .command = command_get(COMMAND_GET) };
	struct slice key = part->waiter.key;
	char room[KEY_MAX + 2];
	struct request inside;
	size_t words;
	bool good = command_key_parse(
		keys, &get, key, command_key_find(keys, key, &words), room, &inside);

	part->nest = (struct nest){
		.outer = &many->task,
		.done = get_on_part_value,
		.collects = good && !command_key_has_one_value(inside.command, inside.keys),
	};
	part->inside = inside.command;
	part->effect = order_effect(&inside);
	order_begin(&many->order, part->effect);
	if (good)
		start_nested(&part->nest, &inside);
	else
		fail_nested(&part->nest, inside.error);
}

/* Starts the part if its key is a command. Returns false if it is not. */
static bool part_begins(struct many *many, struct part *part)
{
	part->nest.task = NULL;
	if (part->target == TARGET_COMMAND) {
		ask_inside(many, part);
		return true;
	}
	part->effect = (struct order_effect){ .calls = 1 };
	order_begin(&many->order, part->effect);
	return false;
}

static bool get_ask_part(struct fan *fan, struct fan_part *fan_part)
{
	struct many *many = (struct many *)fan->task;
	struct part *part = (struct part *)fan_part;
	struct host *host = many->task.host;

	many->call.key = slice_token(&many->rest);
	part->waiter = (struct waiter){ get_on_item, many->call.key };
	part->target = target_of_read(host->env.rules, many->call.key);
	part->touches = many->call.verb == CALL_GAT;
	/*
	 * Sets, lists and events have no keys with control bytes, so the key can only be an
	 * item.
	 */
	if (part->target > TARGET_PART && part->target != TARGET_COMMAND &&
		!request_key_valid(many->call.key, KEY_MAX))
		part->target = TARGET_ITEM;
	if (fan->waits && part_begins(many, part))
		return true;
	item_read(&many->task, part->target, &many->call, &part->waiter);
	return true;
}

/*
 * Returns whether the next key must wait: keeps the order in which a connection carries out
 * these commands, and leaves other clients their share of a server.
 */
static bool get_part_waits(const struct fan *fan)
{
	const struct many *many = (const struct many *)fan->task;
	const struct host *host = many->task.host;
	struct slice rest = many->rest;
	struct order_effect effect;
	const struct command *inside;
	enum order_class class;

	if (host->calls_max && many->order.calls >= host->calls_max)
		return true;
	class = target_class(host->env.rules, slice_token(&rest), &effect, &inside);
	return order_class_must_wait(&many->order, class);
}

static void get_abandon_parts(struct fan *fan)
{
	for (size_t i = fan->written, end = fan->asked; i < end; i++) {
		struct part *part = (struct part *)fan_part_at(fan, i);
		if (!part->part.done)
			task_abandon_inside(&part->nest);
	}
}

static void start_many(
	struct host *host, const struct request *request, void *owner, const struct call *call)
{
	bool commands = request->target == TARGET_COMMAND;
	size_t ring = request->keys < FAN_RING ? request->keys : FAN_RING;
	size_t stride = commands ? sizeof(struct part) : offsetof(struct part, nest);
	size_t size = sizeof(struct many) + ring * stride;
	struct slice keys = target_keys(request);
	struct many *many = task_new(host, request, owner, size + keys.n);
	char *at = (char *)many + size;

	many->rest = task_keys(&many->task, task_keep(&at, keys), request->keys);
	many->order = (struct order){ 0 };
	many->call = *call;
	many->call.expected = many->task.expected;
	many->fan = (struct fan){
		.task = &many->task,
		.ask = get_ask_part,
		.waits = commands ? get_part_waits : NULL,
		.abandon = commands ? get_abandon_parts : NULL,
		.parts = (char *)many->parts,
		.stride = stride,
		.ring = ring,
		.total = request->keys,
		.first = commands ? target_first(host->env.rules, keys) : ORDER_KEYS_FIRST,
		.limit = SIZE_MAX,
	};
	fan_start(&many->fan);
}

void get_start(struct host *host, const struct request *request, void *owner)
{
	bool cas = request->command->id == COMMAND_GETS || request->command->id == COMMAND_GATS;
	bool wants_cas = cas || request->extras.wants_cas;
	bool wants_ttl =
		request->target != TARGET_COMMAND && request->reply && request->reply->form;
	bool touches = request->command->grammar == GRAMMAR_TOUCH_KEYS;
	struct call call = {
		.verb = touches ? CALL_GAT : CALL_GET,
		.want = WANT_VALUE | (wants_cas ? WANT_CAS : 0u) | (wants_ttl ? WANT_TTL : 0u) |
			(request->extras.odd_key ? WANT_ENCODED : 0u),
		.server = CALL_ANY_SERVER,
		.only_reads = !wants_cas && !touches,
		.exptime = request->exptime,
	};

	if (request->keys == 1)
		start_single(host, request, owner, &call);
	else
		start_many(host, request, owner, &call);
}

void keyed_start(struct host *host, const struct request *request, void *owner)
{
	const char *refusal = target_refusal(host->env.rules, request);

	if (refusal)
		task_refuse(host, request, owner, refusal);
	else if (request->keys > 1)
		get_start(host, request, owner);
	else
		start_named(host, request, owner);
}
