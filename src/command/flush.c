/* flush_all: one call to each server. */
#include "collection/lane/lanes.h"
#include "command/start.h"
#include "command/task.h"
#include "protocol/reply.h"

struct flush_part {
	struct waiter waiter;
	struct flush_task *flush;
};

struct flush_task {
	struct task task;
	int pending;
	struct flush_part parts[];
};

static void answered(struct waiter *waiter, const struct result *r)
{
	struct flush_task *flush = ((struct flush_part *)waiter)->flush;
	struct buf *failure = &flush->task.scratch;

	if (result_failed(r) && buf_size(failure) == 0)
		reply_failure(failure, r);
	if (--flush->pending > 0)
		return;
	if (buf_size(failure))
		buf_add_slice(task_reply(&flush->task), buf_slice(failure));
	else
		reply_text(task_reply(&flush->task), "OK");
	task_done(&flush->task);
}

void flush_start(struct host *host, const struct request *request, void *owner)
{
	size_t size = sizeof(struct flush_task) + (size_t)host->env.servers * sizeof(struct flush_part);
	struct flush_task *flush = task_new(host, request, owner, size);
	struct call call = { .verb = CALL_FLUSH_ALL, .exptime = request->exptime };

	flush->pending = host->env.servers;
	for (call.server = 0; call.server < host->env.servers; call.server++) {
		struct flush_part *part = &flush->parts[call.server];
		*part = (struct flush_part){ { answered, { "", 0 } }, flush };
		lanes_call(host->lanes, &call, &part->waiter);
	}
}
