/* The commands on lists. A push is an APPEND, all others are LIST operations, in the lane of the key. */
#include "command/args.h"
#include "command/op_task.h"
#include "command/start.h"

/* --- pushes --- */

void rpush_start(struct host *host, const struct request *request, void *owner)
{
	op_task_append(host, request, owner, APPEND_PUSHES | APPEND_CREATES);
}

void rpushx_start(struct host *host, const struct request *request, void *owner)
{
	op_task_append(host, request, owner, APPEND_PUSHES);
}

void lpush_start(struct host *host, const struct request *request, void *owner)
{
	op_task_append(host, request, owner, APPEND_PUSHES | APPEND_CREATES | APPEND_FRONT);
}

void lpushx_start(struct host *host, const struct request *request, void *owner)
{
	op_task_append(host, request, owner, APPEND_PUSHES | APPEND_FRONT);
}

/* --- list operations --- */

static void start(struct host *host, const struct request *request, void *owner, enum list_verb verb, op_done *done)
{
	const struct args *args = request->args;
	const struct list_request asked = {
		.verb = verb,
		.start = args->first,
		.stop = args->last,
		.count = args->count,
		.item = args->words,
	};

	op_task_ask_list(host, request, owner, &asked, done);
}

void lrange_start(struct host *host, const struct request *request, void *owner)
{
	start(host, request, owner, LIST_RANGE, op_task_listed);
}

void lindex_start(struct host *host, const struct request *request, void *owner)
{
	start(host, request, owner, LIST_RANGE, op_task_listed);
}

void ltrim_start(struct host *host, const struct request *request, void *owner)
{
	start(host, request, owner, LIST_TRIM, op_task_told);
}

void llen_start(struct host *host, const struct request *request, void *owner)
{
	start(host, request, owner, LIST_LENGTH, op_task_counted);
}

void lpos_start(struct host *host, const struct request *request, void *owner)
{
	start(host, request, owner, LIST_POSITION, op_task_counted);
}

void lrem_start(struct host *host, const struct request *request, void *owner)
{
	start(host, request, owner, LIST_REMOVE, op_task_counted);
}

void lset_start(struct host *host, const struct request *request, void *owner)
{
	start(host, request, owner, LIST_SET, op_task_told);
}

void lpop_start(struct host *host, const struct request *request, void *owner)
{
	start(host, request, owner, LIST_POP_FRONT, op_task_listed);
}

void rpop_start(struct host *host, const struct request *request, void *owner)
{
	start(host, request, owner, LIST_POP_BACK, op_task_listed);
}
