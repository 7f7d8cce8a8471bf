/*
 * Targets of requests: a key names an item of memcached, or by a rule of the configuration
 * something else. The target is found once for each key; that of a request is in
 * request->target.
 */
#ifndef COMMAND_TARGET_H
#define COMMAND_TARGET_H

#include "collection/rules.h"
#include "collection/text/part_key.h"
#include "command/order.h"
#include "protocol/request.h"

/*
 * Return the target of a key of memcached's own commands: for reads; and for writes, which are
 * storage commands, arithmetic, delete and touch. Only writes can have TARGET_PART, which does
 * not depend on the rules.
 */
enum target target_of_read(const struct rules *rules, struct slice key);
enum target target_of_write(const struct rules *rules, struct slice key);

/* Does the same as target_resolve, for any request. */
void target_find(const struct rules *rules, struct request *request, struct order_needs *needs);

/*
 * Returns whether the request has one key and may write it. A read of a set or list is
 * included, since it may start a compaction.
 */
static inline bool target_is_guarded(const struct request *request)
{
	const struct grammar_traits *traits = command_traits(request->command);

	switch (traits->subject) {
	case SUBJECT_ITEM:
		return traits->keys == KEYS_ONE;
	case SUBJECT_SET:
	case SUBJECT_LIST:
		return traits->keys == KEYS_ONE || request->keys == 1;
	default:
		return false;
	}
}

/*
 * Sets request->target. COMMAND and PART mean that any of its keys is one; each key of a get of
 * several keys otherwise has its own target. If keys are commands and `needs` is not NULL, fills
 * in `needs` and points request->needs to it.
 */
static inline void target_resolve(
	const struct rules *rules, struct request *request, struct order_needs *needs)
{
	bool has_rules = rules->commands.prefix.n || rules->collection_count || rules->plain_events;

	if (!has_rules && request->command->grammar == GRAMMAR_KEYS)
		request->target = TARGET_ITEM;
	else if (!has_rules && target_is_guarded(request))
		request->target = part_key_is_reserved(request->key) ? TARGET_PART : TARGET_ITEM;
	else
		target_find(rules, request, needs);
}

/*
 * Returns the key as it is stored on servers. A key in base64 is decoded into `decoded`, which
 * has room for KEY_MAX bytes.
 */
struct slice target_key(const struct request *request, char *decoded);

/*
 * Returns the error line of a request whose target is COMMAND, or NULL if the request can reach
 * commands.
 */
const char *target_refusal(const struct rules *rules, const struct request *request);

/* Returns the error line of a request whose target is PART. */
const char *target_part_refusal(const struct request *request);

/* Returns all keys of a request, as they are in the line. */
static inline struct slice target_keys(const struct request *request)
{
	return slice_of(
		request->key.p, (size_t)(request->rest.p + request->rest.n - request->key.p));
}

/*
 * Returns the class of the request for which a key of a get, or the key of a set, stands.
 * Stores its effect, and the command that the key names or NULL.
 */
enum order_class target_class(const struct rules *rules, struct slice key,
	struct order_effect *effect, const struct command **inside);

/* Returns how many of these keys are requested before the size of their values is known. */
size_t target_first(const struct rules *rules, struct slice all);

#endif
