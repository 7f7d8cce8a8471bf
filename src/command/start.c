#include "command/start.h"

#include "command/args.h"
#include "command/target.h"
#include "command/task.h"
#include "protocol/commands.h"
#include "protocol/metaflags.h"
#include "protocol/metaform.h"

const char start_odd_key_refusal[] =
	"CLIENT_ERROR only plain items may have keys with spaces or control characters";

/* --- reserved keys --- */

/*
 * Rules with `only` keep sets and lists apart from plain items, so that an append to a set
 * cannot damage a plain value.
 */
static const char not_plain[] = "CLIENT_ERROR the key is reserved for sets and lists";
static const char not_collection[] = "CLIENT_ERROR no rule reserves the key for sets and lists";

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
	case GRAMMAR_WAIT_POP_KEYS:
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
		return command->id == COMMAND_MA ||
			(command->id == COMMAND_MG && metaflags_has(&request->meta, 'N'));
	default:
		return command->order == ORDER_EVENT_COUNT || command->order == ORDER_EVENT_LIMIT ||
			command->order == ORDER_EVENT_STORE;
	}
}

/*
 * Returns the error line of a request that writes a plain item under a reserved key, or a set
 * or list under any other key; NULL for all other requests. The target of the request must be
 * known. Reads, touches, deletions and flushes are never refused.
 */
static const char *reserved_refusal(const struct rules *rules, const struct request *request)
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

/* --- keys of sets with two copies --- */

/* Returns the error line of a request with a key that is too long for its rule, or NULL. */
static const char *long_refusal(const struct rules *rules, const struct request *request)
{
	bool many = command_traits(request->command)->keys == KEYS_MANY;
	size_t count = many ? request->keys : 1;
	struct slice rest = request->rest, key = request->key;

	if (!is_of_collections(request->command))
		return NULL;
	for (; count && key.n; count--, key = slice_token(&rest)) {
		if (key.n > rules_key_max(rules_collection(rules, key)->copies))
			return args_long_key;
	}
	return NULL;
}

/*
 * Returns whether a meta command is about a set with two copies. If it was passed on, it would
 * change only the first one. Not inlined: its buffer would enlarge the frame of each request.
 */
static __attribute__((noinline)) bool is_copied(
	const struct rules *rules, const struct request *request)
{
	char decoded[KEY_MAX];

	return request->target == TARGET_ITEM && metaform_has(request->command) &&
		rules_collection(rules, target_key(request, decoded))->copies > 1;
}

/* --- starting --- */

static void start_with_args(
	struct host *host, struct request *request, void *owner, command_start *start)
{
	struct args args;
	const char *error = args_parse(host->env.rules, request, &args);

	request->args = &args;
	if (error)
		task_refuse(host, request, owner, error);
	else
		start(host, request, owner);
}

bool task_start(struct host *host, struct request *request, void *owner)
{
	static command_start *const starts[COMMAND_COUNT] = {
#define COMMAND(id, name, grammar, start, ...) [COMMAND_##id] = start,
#define PROXY_COMMAND(...)
#include "protocol/commands.def"
#undef PROXY_COMMAND
#undef COMMAND
	};
	command_start *start = starts[request->command->id];
	const char *refusal;
	bool odd = false;

	if (!start)
		return false;
	if (request->target == TARGET_UNKNOWN)
		target_resolve(host->env.rules, request, NULL);
	if (request->target == TARGET_COLLECTION || request->target == TARGET_EVENTS)
		odd = !request_key_valid(request->key, KEY_MAX);
	refusal = host->env.rules->reserves ? reserved_refusal(host->env.rules, request) : NULL;
	if (!refusal && host->env.rules->copies)
		refusal = long_refusal(host->env.rules, request);
	if (odd)
		task_refuse(host, request, owner, start_odd_key_refusal);
	else if (refusal)
		task_refuse(host, request, owner, refusal);
	else if ((request->target > TARGET_PART && metaform_has(request->command)) ||
		(host->env.rules->copies && is_copied(host->env.rules, request)))
		metaform_start(host, request, owner);
	else if (request->target == TARGET_COMMAND)
		keyed_start(host, request, owner);
	else if (request->target == TARGET_PART)
		task_refuse(host, request, owner, target_part_refusal(request));
	else if (command_takes_args(request->command))
		start_with_args(host, request, owner, start);
	else
		start(host, request, owner);
	return true;
}

bool task_start_inside(struct nest *nest, struct request *request)
{
	nest->way = (struct request_reply){ .into = nest };
	request->reply = &nest->way;
	request->noreply = false;
	return task_start(nest->outer->host, request, nest->outer->owner);
}

void task_start_refused(struct host *host, const struct request *request, void *owner)
{
	if (request_discards(request))
		item_discard_start(host, request, owner);
	else
		task_refuse(host, request, owner, request->error);
}
