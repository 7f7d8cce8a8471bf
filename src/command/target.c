#include "command/target.h"

#include "collection/event/time_bucket.h"
#include "command/args.h"
#include "protocol/commands.h"
#include "protocol/metaflags.h"
#include "protocol/metaform.h"

/* --- one key --- */

/*
 * Returns whether the key is a type of events. A key with the separator, as of a counter or an
 * event, is an ordinary item.
 */
static bool is_event_type(const struct rules *rules, struct slice key)
{
	const struct event_rule *rule = rules_event(rules, key);

	return rule->plain_verbs && key.n + rule->separator.n + TIME_BUCKET_NAME_MAX <= KEY_MAX &&
		!memmem(key.p, key.n, rule->separator.p, rule->separator.n);
}

/*
 * Returns the target of a key that is neither a command nor a part, for a command that reads
 * keys of at most `longest` bytes as collections.
 */
static enum target by_rule(const struct rules *rules, struct slice key, size_t longest)
{
	if (key.n <= longest && rules_collection(rules, key)->plain_verbs)
		return TARGET_COLLECTION;
	return rules->plain_events && is_event_type(rules, key) ? TARGET_EVENTS : TARGET_ITEM;
}

enum target target_of_read(const struct rules *rules, struct slice key)
{
	if (command_key_is(&rules->commands, key))
		return TARGET_COMMAND;
	return by_rule(rules, key, COLLECTION_KEY_MAX);
}

enum target target_of_write(const struct rules *rules, struct slice key)
{
	if (command_key_is(&rules->commands, key))
		return TARGET_COMMAND;
	/* A write to a collection whose key is too long is refused. */
	return part_key_is_reserved(key) ? TARGET_PART : by_rule(rules, key, KEY_MAX);
}

struct slice target_key(const struct request *request, char *decoded)
{
	if (!metaflags_has(&request->meta, 'b'))
		return request->key;
	return slice_of(decoded, metaflags_decode_key(request->key, decoded));
}

/* --- all keys of a request --- */

/* Returns COMMAND if any key is a command, else PART if any is of a part or a second copy. */
static enum target of_all_keys(const struct rules *rules, const struct request *request)
{
	struct slice rest = request->rest, key = request->key;
	enum target found = TARGET_ITEM;

	for (; key.n; key = slice_token(&rest)) {
		if (command_key_is(&rules->commands, key))
			return TARGET_COMMAND;
		if (part_key_is_reserved(key))
			found = TARGET_PART;
	}
	return found;
}

static enum target target_of_meta(const struct rules *rules, const struct request *request)
{
	char decoded[KEY_MAX];
	struct slice key = target_key(request, decoded);
	command_id id = request->command->id;
	bool changes = id != COMMAND_ME;

	if (id == COMMAND_MG)
		changes = metaflags_has(&request->meta, 'N') || metaflags_has(&request->meta, 'T');
	if (command_key_is(&rules->commands, key))
		return TARGET_COMMAND;
	if (changes && part_key_is_reserved(key))
		return TARGET_PART;
	if (id == COMMAND_ME || metaflags_name_item(&request->meta, request->rest))
		return TARGET_ITEM;
	return by_rule(rules, key, id == COMMAND_MG ? COLLECTION_KEY_MAX : KEY_MAX);
}

/* A read of several keys has a target for each, unless one is a command. */
static enum target of_items(const struct rules *rules, const struct request *request)
{
	bool reads = request->command->grammar == GRAMMAR_KEYS;
	enum target all;

	if (command_traits(request->command)->keys == KEYS_ONE)
		return target_of_write(rules, request->key);
	if (reads && request->keys == 1)
		return target_of_read(rules, request->key);
	all = of_all_keys(rules, request);
	if (reads)
		return all == TARGET_COMMAND ? TARGET_COMMAND : TARGET_ITEM;
	return all == TARGET_ITEM && request->keys == 1 ? target_of_read(rules, request->key) : all;
}

static enum target of_request(const struct rules *rules, const struct request *request)
{
	const struct grammar_traits *traits = command_traits(request->command);

	switch (traits->subject) {
	case SUBJECT_ITEM:
		return of_items(rules, request);
	case SUBJECT_META:
		return target_of_meta(rules, request);
	case SUBJECT_SET:
	case SUBJECT_LIST:
		if (traits->keys == KEYS_MANY)
			return of_all_keys(rules, request);
		if (command_key_is(&rules->commands, request->key))
			return TARGET_COMMAND;
		return part_key_is_reserved(request->key) ? TARGET_PART : TARGET_ITEM;
	case SUBJECT_EVENTS:
		return command_key_is(&rules->commands, request->key) ? TARGET_COMMAND
								      : TARGET_ITEM;
	default:
		return TARGET_ITEM;
	}
}

const char *target_refusal(const struct rules *rules, const struct request *request)
{
	command_id id = request->command->id;
	struct slice rest = request->rest, key = request->key;

	if (request->command->grammar == GRAMMAR_KEYS || id == COMMAND_SET || id == COMMAND_CAS ||
		id == COMMAND_INCR)
		return NULL;
	while (key.n && !command_key_is(&rules->commands, key))
		key = slice_token(&rest);
	/* A key in base64 is not decoded for a more precise error. */
	return key.n ? command_key_refusal(&rules->commands, key)
		     : "CLIENT_ERROR use get or set for a command";
}

const char *target_part_refusal(const struct request *request)
{
	char decoded[KEY_MAX];
	struct slice rest = request->rest, key = target_key(request, decoded);

	while (key.n && !part_key_is_reserved(key))
		key = slice_token(&rest);
	return args_part_refusal(key);
}

/* --- the order of requests --- */

/*
 * Returns the command for which one of memcached's own commands on a type of events stands.
 * NULL: it is refused.
 */
static const struct command *event_command(const struct command *command)
{
	if (command->id == COMMAND_INCR || command->id == COMMAND_MA)
		return command_get(COMMAND_EVINCR);
	return command->id == COMMAND_SET || command->id == COMMAND_MS ? command_get(COMMAND_EVADD)
								       : NULL;
}

enum order_class target_class(const struct rules *rules, struct slice key,
	struct order_effect *effect, const struct command **inside)
{
	const struct command *command = command_get(COMMAND_GET), *event;
	size_t keys = 1;

	*inside = NULL;
	if (command_key_is(&rules->commands, key)) {
		command = *inside = command_key_find(&rules->commands, key, &keys);
		/* A set of a command key may store an event. */
		event = *inside && rules->plain_events ? event_command(*inside) : NULL;
		if (event)
			command = event;
	}
	*effect = command ? order_effect_of(command, keys) : (struct order_effect){ .calls = 1 };
	return command ? command->order : ORDER_READ;
}

size_t target_first(const struct rules *rules, struct slice all)
{
	const struct command *command;
	struct slice key;
	size_t words;

	while ((key = slice_token(&all)).n) {
		if (!command_key_is(&rules->commands, key))
			continue;
		command = command_key_find(&rules->commands, key, &words);
		if (command && command->reply == COMMAND_REPLY_DATA)
			return ORDER_SETS_FIRST;
	}
	return ORDER_KEYS_FIRST;
}

/*
 * If a part may start late, because of earlier ones, later requests must not change its
 * subject. If any part writes, it may start late, too.
 */
static void find_needs_of_many(
	const struct rules *rules, const struct request *request, struct order_needs *out)
{
	struct slice all = target_keys(request), key;
	bool late = request->keys > target_first(rules, all), writes = false;
	size_t calls = 0;

	while ((key = slice_token(&all)).n) {
		struct order_effect effect;
		const struct command *inside;
		enum order_class class = target_class(rules, key, &effect, &inside);
		out->classes |= (uint16_t)(1u << class);
		writes |= order_class_changes(class);
		late |= effect.kinds || class == ORDER_FLUSH || class == ORDER_EVENT_TOP;
		calls += effect.calls;
	}
	late |= calls > ORDER_KEYS_FIRST;
	out->effect = (struct order_effect){
		.stages_reads = late,
		.writes_later = late && writes,
		.calls = (uint16_t)(calls < ORDER_CALLS_MAX ? calls : ORDER_CALLS_MAX),
	};
}

/* Returns false if the changes and calls of the request do not depend on its keys. */
static bool find_needs(
	const struct rules *rules, const struct request *request, struct order_needs *out)
{
	enum grammar grammar = request->command->grammar;
	const struct command *event = event_command(request->command);
	char decoded[KEY_MAX];

	*out = (struct order_needs){ 0 };
	if (request->target == TARGET_EVENTS && event) {
		out->classes = (uint16_t)(1u << event->order);
		out->effect = order_effect_of(event, 1);
	} else if (request->target != TARGET_COMMAND) {
		return false;
	} else if (grammar == GRAMMAR_KEYS && request->keys > 1) {
		find_needs_of_many(rules, request, out);
	} else if (grammar == GRAMMAR_KEYS || grammar == GRAMMAR_STORAGE ||
		grammar == GRAMMAR_ARITHMETIC || metaform_has(request->command)) {
		struct slice key = target_key(request, decoded);
		out->classes =
			(uint16_t)(1u << target_class(rules, key, &out->effect, &out->inside));
	} else {
		return false;
	}
	return true;
}

void target_find(const struct rules *rules, struct request *request, struct order_needs *needs)
{
	request->target = of_request(rules, request);
	if (needs && request->target >= TARGET_EVENTS && find_needs(rules, request, needs))
		request->needs = needs;
}
