#include "command/task.h"

#include "protocol/reply.h"

void *task_new(struct host *host, const struct request *request, void *owner, size_t size)
{
	struct task *task = pool_get(host->env.pool, size);

	*task = (struct task){
		.host = host,
		.owner = owner,
		.size = size,
		.taken = (uint32_t)request->consumed,
		.values = (uint32_t)request->keys,
		.command = request->command,
		.quiet = request->noreply,
		.order = order_effect(request),
	};
	host->begin(task);
	return task;
}

void task_free(struct task *task)
{
	buf_free(&task->spill);
	buf_free(&task->scratch);
	pool_put(task->host->env.pool, task, task->size);
}

const void *task_client(const struct host *host, const void *owner)
{
	return host->client ? host->client(owner) : owner;
}

struct buf *task_reply(struct task *task)
{
	return task->host->reply(task);
}

void task_reply_shared(struct task *task, struct shared *text)
{
	enum { WORTH_SHARING = 16 * 1024 };
	struct host *host = task->host;

	if (buf_size(&text->text) < WORTH_SHARING || !host->share || !host->share(task, text))
		buf_add_slice(task_reply(task), buf_slice(&text->text));
}

void task_done(struct task *task)
{
	task->host->done(task);
}

void task_reply_line(struct task *task, const char *line)
{
	reply_text(task_reply(task), line);
	task_done(task);
}

void task_reply_number(struct task *task, uint64_t n)
{
	reply_number(task_reply(task), n);
	task_done(task);
}

void task_reply_failure(struct task *task, const struct result *r)
{
	reply_failure(task_reply(task), r);
	task_done(task);
}

struct slice task_keep(char **at, struct slice s)
{
	struct slice copy = slice_of(*at, s.n);

	*at = slice_write(*at, s);
	return copy;
}

void task_refuse(struct host *host, const struct request *request, void *owner, const char *line)
{
	task_reply_line(task_new(host, request, owner, sizeof(struct task)), line);
}
