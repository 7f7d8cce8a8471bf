/*
 * The target of a request: its key may stand for an item of memcached, or by a rule of the configuration for something else. The target
 * is found once for each key; that of a request is in request->target.
 */
#ifndef COMMAND_TARGET_H
#define COMMAND_TARGET_H

#include "collection/rules.h"
#include "collection/text/part_key.h"
#include "command/order.h"
#include "protocol/request.h"

/*
 * For one of memcached's commands that reads a key, or writes it: a storage command, arithmetic, delete or touch. A read never gives
 * TARGET_PART. A write does, whatever the rules say.
 */
enum target target_of_read(const struct rules *rules, struct slice key);
enum target target_of_write(const struct rules *rules, struct slice key);

/* The same as target_resolve, for any request. */
void target_find(const struct rules *rules, struct request *request, struct order_needs *needs);

/* Whether the request has one key, and may write it. A read of a set or list does, if it compacts what it reads. */
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
 * Sets request->target. COMMAND and PART: any of its keys is one; otherwise each key of a get of several has a target of its own. If keys
 * stand for other requests, fills in `needs`, to which request->needs points then; unless `needs` is NULL.
 */
static inline void target_resolve(const struct rules *rules, struct request *request, struct order_needs *needs)
{
	bool has_rules = rules->commands.prefix.n || rules->collection_count || rules->plain_events;

	if (!has_rules && request->command->grammar == GRAMMAR_KEYS)
		request->target = TARGET_ITEM;
	else if (!has_rules && target_is_guarded(request))
		request->target = part_key_base(request->key).n ? TARGET_PART : TARGET_ITEM;
	else
		target_find(rules, request, needs);
}

/* The key as servers have it. A key in base64 is decoded to `decoded`, which has room for KEY_MAX bytes. */
struct slice target_key(const struct request *request, char *decoded);

/* The error line of a request whose target is COMMAND. NULL if it reaches commands. */
const char *target_refusal(const struct rules *rules, const struct request *request);

/* All keys of a request, as they are in the line. */
static inline struct slice target_keys(const struct request *request)
{
	return slice_of(request->key.p, (size_t)(request->rest.p + request->rest.n - request->key.p));
}

/* The class of the request for which one key of a get, or a set, stands; its effect; and the command that the key names, or NULL. */
enum order_class target_class(
	const struct rules *rules, struct slice key, struct order_effect *effect, const struct command **inside);

/* How many of these keys are asked for before the size of their answers is known. */
size_t target_first(const struct rules *rules, struct slice all);

#endif
