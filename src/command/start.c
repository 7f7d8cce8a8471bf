#include "command/start.h"

#include "collection/text/oplog.h"
#include "command/args.h"
#include "command/keys.h"
#include "command/task.h"

const char refused_item_key[] = "CLIENT_ERROR the key is that of a part of a set or list: it can only be read";

static bool names_item(struct slice keys)
{
	struct slice key;

	while ((key = slice_token(&keys)).n) {
		if (oplog_is_item_key(key))
			return true;
	}
	return false;
}

/*
 * Whether it would write an item that belongs to a set or list. What reads a set or list may compact it, which is a write. The
 * meta commands see to it themselves.
 */
static bool writes_item(const struct request *request)
{
	switch (request->command->grammar) {
	case GRAMMAR_STORAGE:
	case GRAMMAR_ARITHMETIC:
	case GRAMMAR_DELETE:
	case GRAMMAR_TOUCH:
		return oplog_is_item_key(request->key);
	case GRAMMAR_TOUCH_KEYS:
	case GRAMMAR_COLLECTION_KEYS:
		return oplog_is_item_key(request->key) || (request->keys > 1 && names_item(request->rest));
	default:
		return command_takes_args(request->command) && oplog_is_item_key(request->key);
	}
}

/* The error line of a request whose key is not for its command, or NULL. */
static const char *refusal_of(const struct rules *rules, const struct request *request)
{
	if (keys_have_command(rules, request))
		return keys_refusal(&rules->commands, request);
	return writes_item(request) ? refused_item_key : NULL;
}

static void start_with_args(struct host *host, struct request *request, void *owner, command_start *start)
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
	const char *refusal = start ? refusal_of(host->env.rules, request) : NULL;

	if (refusal)
		task_refuse(host, request, owner, refusal);
	else if (start && command_takes_args(request->command))
		start_with_args(host, request, owner, start);
	else if (start)
		start(host, request, owner);
	return start != NULL;
}

bool task_start_inside(struct nest *nest, struct request *request)
{
	request->into = nest;
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
