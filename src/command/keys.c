#include "command/keys.h"

#include "collection/event/time_bucket.h"
#include "protocol/metaflags.h"

/* --- types of events --- */

bool keys_find_event(const struct rules *rules, struct slice key)
{
	const struct event_rule *rule = rules_event(rules, key);

	return rule->plain_verbs && key.n + rule->separator.n + TIME_BUCKET_NAME_MAX <= KEY_MAX &&
		!memmem(key.p, key.n, rule->separator.p, rule->separator.n);
}

const struct command *keys_event_command(const struct command *command)
{
	switch (command->id) {
	case COMMAND_INCR:
		return command_get(COMMAND_EVINCR);
	case COMMAND_SET:
		return command_get(COMMAND_EVADD);
	default:
		return NULL;
	}
}

/* --- commands --- */

static bool any_is_command(const struct command_keys *keys, const struct request *request)
{
	struct slice rest = request->rest, key = request->key;

	for (; key.n; key = slice_token(&rest)) {
		if (command_key_is(keys, key))
			return true;
	}
	return false;
}

struct slice keys_plain(const struct request *request, char *decoded)
{
	if (!request->meta.base64)
		return request->key;
	return slice_of(decoded, metaflags_decode_key(request->key, decoded));
}

bool keys_find_command(const struct rules *rules, const struct request *request)
{
	char decoded[KEY_MAX];

	switch (request->command->grammar) {
	case GRAMMAR_KEYS:
	case GRAMMAR_TOUCH_KEYS:
	case GRAMMAR_COLLECTION_KEYS:
		return any_is_command(&rules->commands, request);
	case GRAMMAR_META:
	case GRAMMAR_META_DATA:
		return command_key_is(&rules->commands, keys_plain(request, decoded));
	case GRAMMAR_FLUSH:
	case GRAMMAR_ARGS:
	case GRAMMAR_BARE:
		return false;
	default:
		return command_key_is(&rules->commands, request->key);
	}
}

const char *keys_refusal(const struct command_keys *keys, const struct request *request)
{
	enum command_id id = request->command->id;
	struct slice rest = request->rest, key = request->key;

	if (request->command->grammar == GRAMMAR_KEYS || id == COMMAND_SET || id == COMMAND_CAS)
		return NULL;
	while (key.n && !command_key_is(keys, key))
		key = slice_token(&rest);
	/* A key in base64 is not decoded to say more. */
	return key.n ? command_key_refusal(keys, key) : "CLIENT_ERROR use get or set for a command";
}

/* --- the order of requests --- */

enum order_class keys_class(
	const struct rules *rules, struct slice key, struct order_effect *effect, const struct command **inside)
{
	const struct command *command = command_get(COMMAND_GET), *event;
	size_t keys = 1;

	*inside = NULL;
	if (command_key_is(&rules->commands, key)) {
		command = *inside = command_key_find(&rules->commands, key, &keys);
		/* A set, as a key, may store an event. */
		event = *inside && rules->plain_events ? keys_event_command(*inside) : NULL;
		if (event)
			command = event;
	}
	*effect = command ? order_effect_of(command, keys) : (struct order_effect){ .calls = 1 };
	return command ? command->order : ORDER_READ;
}

static bool has_large_reply(const struct command_keys *keys, struct slice key)
{
	const struct command *command;
	size_t words;

	if (!command_key_is(keys, key))
		return false;
	command = command_key_find(keys, key, &words);
	return command && command->reply == REPLY_DATA;
}

size_t keys_first(const struct command_keys *keys, struct slice all)
{
	struct slice key;

	while ((key = slice_token(&all)).n) {
		if (has_large_reply(keys, key))
			return ORDER_SETS_FIRST;
	}
	return ORDER_KEYS_FIRST;
}

/*
 * If a part may start late, behind others, later requests must not change what it reads. If any part writes, that may start late, too.
 */
static void find_needs_of_many(const struct rules *rules, const struct request *request, struct order_needs *out)
{
	struct slice all = keys_of(request), key;
	bool late = request->keys > keys_first(&rules->commands, all), writes = false;
	size_t calls = 0;

	while ((key = slice_token(&all)).n) {
		struct order_effect effect;
		const struct command *inside;
		enum order_class class = keys_class(rules, key, &effect, &inside);
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
	const struct command *inside = keys_event_command(request->command);

	if (!inside || !keys_event(rules, request->key) || rules_collection(rules, request->key)->plain_verbs)
		return false;
	out->classes = (uint16_t)(1u << inside->order);
	out->effect = order_effect_of(inside, 1);
	return true;
}

bool keys_find_needs(const struct rules *rules, const struct request *request, struct order_needs *out)
{
	enum grammar grammar = request->command->grammar;

	*out = (struct order_needs){ 0 };
	if (!keys_have_command(rules, request))
		return finds_event(rules, request, out);
	out->has_command = true;
	if (grammar == GRAMMAR_KEYS && request->keys > 1)
		find_needs_of_many(rules, request, out);
	else if (grammar == GRAMMAR_KEYS || grammar == GRAMMAR_STORAGE)
		out->classes = (uint16_t)(1u << keys_class(rules, request->key, &out->effect, &out->inside));
	else
		return false;
	return true;
}
