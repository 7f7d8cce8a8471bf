#include "command/start.h"

#include "command/args.h"
#include "command/reserved.h"
#include "command/target.h"
#include "command/task.h"
#include "protocol/commands.h"
#include "protocol/metaform.h"

const char start_odd_key_refusal[] = "CLIENT_ERROR only plain items may have keys with spaces or control characters";

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
	const char *reserved;
	bool odd = false;

	if (!start)
		return false;
	if (request->target == TARGET_UNKNOWN)
		target_resolve(host->env.rules, request, NULL);
	if (request->target == TARGET_COLLECTION || request->target == TARGET_EVENTS)
		odd = !request_key_valid(request->key, KEY_MAX);
	reserved = host->env.rules->reserves ? reserved_refusal(host->env.rules, request) : NULL;
	if (odd)
		task_refuse(host, request, owner, start_odd_key_refusal);
	else if (reserved)
		task_refuse(host, request, owner, reserved);
	else if (request->target > TARGET_PART && metaform_has(request->command))
		metaform_start(host, request, owner);
	else if (request->target == TARGET_COMMAND)
		keyed_start(host, request, owner);
	else if (request->target == TARGET_PART)
		task_refuse(host, request, owner, args_part_refusal);
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
