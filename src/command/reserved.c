#include "command/reserved.h"

#include "command/target.h"
#include "protocol/commands.h"
#include "protocol/metaflags.h"

static const char not_plain[] = "CLIENT_ERROR the key is reserved for sets and lists";
static const char not_collection[] = "CLIENT_ERROR no rule reserves the key for sets and lists";

/* --- sets and lists --- */

static bool is_of_collections(const struct command *command)
{
	enum grammar_subject subject = command_traits(command)->subject;

	return subject == SUBJECT_SET || subject == SUBJECT_LIST;
}

/* Returns how many keys of the request it may write, starting with the first. */
static size_t count_written(const struct request *request)
{
	const struct command *command = request->command;

	if (command->order != ORDER_WRITE && command->order != ORDER_WRITE_LATER)
		return command->id == COMMAND_SCOMPACT;
	switch (command->grammar) {
	case GRAMMAR_WAIT_KEYS:
	case GRAMMAR_POP_KEYS:
		return request->keys;
	case GRAMMAR_WAIT_MOVE:
	case GRAMMAR_SET_MOVE:
	case GRAMMAR_LIST_MOVE:
	case GRAMMAR_LIST_TARGET:
		return 2;
	default:
		/* The other keys of sunionstore, sinterstore and sdiffstore are only read. */
		return 1;
	}
}

static const char *refuse_collections(const struct rules *rules, const struct request *request)
{
	size_t count = count_written(request);
	struct slice rest = request->rest, key = request->key;

	for (; count && key.n; count--, key = slice_token(&rest)) {
		if (!rules_collection(rules, key)->only)
			return not_collection;
	}
	return NULL;
}

/* --- plain items --- */

static bool writes_item(const struct request *request)
{
	const struct command *command = request->command;

	switch (command->grammar) {
	case GRAMMAR_STORAGE:
	case GRAMMAR_ARITHMETIC:
	case GRAMMAR_META_DATA:
		return true;
	case GRAMMAR_META:
		/* With N it creates a missing item. */
		return command->id == COMMAND_MA || (command->id == COMMAND_MG && metaflags_has(&request->meta, 'N'));
	default:
		return command->order == ORDER_EVENT_COUNT || command->order == ORDER_EVENT_LIMIT ||
			command->order == ORDER_EVENT_STORE;
	}
}

const char *reserved_refusal(const struct rules *rules, const struct request *request)
{
	char decoded[KEY_MAX];

	if (!rules->reserves || request->target == TARGET_COMMAND)
		return NULL;
	if (is_of_collections(request->command))
		return refuse_collections(rules, request);
	/* With plain_verbs, plain commands act on the members. */
	if (request->target == TARGET_COLLECTION || !writes_item(request))
		return NULL;
	return rules_reserve(rules, target_key(request, decoded)) ? not_plain : NULL;
}
