/*
 * Requests whose keys stand for other requests: commands as keys, and types of events with plain_verbs. What is known of them before
 * they start.
 */
#ifndef COMMAND_KEYS_H
#define COMMAND_KEYS_H

#include "collection/rules.h"
#include "command/order.h"

/* The same as the next function, if the configuration has commands as keys. */
bool keys_find_command(const struct rules *rules, const struct request *request);

/* The key as servers have it. What is in base64 is decoded to `decoded`, which has room for KEY_MAX bytes. */
struct slice keys_plain(const struct request *request, char *decoded);

/* Whether any key of the request is a command. */
static inline bool keys_have_command(const struct rules *rules, const struct request *request)
{
	return rules->commands.prefix.n &&
		((request->needs && request->needs->has_command) || keys_find_command(rules, request));
}

/* The error line for a request that has the key of a command. NULL if it reaches commands. */
const char *keys_refusal(const struct command_keys *keys, const struct request *request);

/* The same as the next function, if any rule for events has plain_verbs. */
bool keys_find_event(const struct rules *rules, struct slice key);

/*
 * Whether the key is a type of events whose rule has plain_verbs. With the separator of the rule in it, a key is that of a counter or
 * of an event, and an ordinary item.
 */
static inline bool keys_event(const struct rules *rules, struct slice key)
{
	return rules->plain_events && keys_find_event(rules, key);
}

/* The command that a storage command, arithmetic, delete or touch of such a type stands for. NULL: it is refused. */
const struct command *keys_event_command(const struct command *command);

/* The class of the request for which one key of a get, or a set, stands; its effect; and the command that the key names, or NULL. */
enum order_class keys_class(
	const struct rules *rules, struct slice key, struct order_effect *effect, const struct command **inside);

/* All keys of a request, as they are in the line. */
static inline struct slice keys_of(const struct request *request)
{
	return slice_of(request->key.p, (size_t)(request->rest.p + request->rest.n - request->key.p));
}

/* How many of these keys are asked for before the size of their answers is known. */
size_t keys_first(const struct command_keys *keys, struct slice all);

/* The same as the next function, if the configuration has such keys. */
bool keys_find_needs(const struct rules *rules, const struct request *request, struct order_needs *out);

/* If any key of the request stands for another request: fills in `out`, for request->needs, and gives true. */
static inline bool keys_needs(const struct rules *rules, const struct request *request, struct order_needs *out)
{
	return (rules->commands.prefix.n || rules->plain_events) && keys_find_needs(rules, request, out);
}

#endif
