#include "command/task.h"

#include "command/fan.h"
#include "command/verbs.h"
#include "protocol/reply.h"

static bool is_admin(enum command_id id)
{
	switch (id) {
	case COMMAND_HELP:
	case COMMAND_MN:
	case COMMAND_QUIT:
	case COMMAND_ROUTE:
	case COMMAND_STATS:
	case COMMAND_VERBOSITY:
	case COMMAND_VERSION:
		return true;
	default:
		return false;
	}
}

bool task_start(struct host *host, const struct request *request, void *owner)
{
	if (is_admin(request->command->id))
		return false;
	switch (request->command->grammar) {
	case GRAMMAR_KEYS:
	case GRAMMAR_TOUCH_KEYS:
		get_start(host, request, owner);
		break;
	case GRAMMAR_META:
	case GRAMMAR_META_DATA:
		meta_start(host, request, owner);
		break;
	case GRAMMAR_FLUSH:
		flush_start(host, request, owner);
		break;
	case GRAMMAR_COLLECTION:
		if (request->command->name.p[0] == 's')
			set_start(host, request, owner);
		else
			list_command_start(host, request, owner);
		break;
	case GRAMMAR_COLLECTION_KEYS:
		if (request->command->id == COMMAND_SMEMBERS)
			members_start(host, request, owner);
		else
			algebra_start(host, request, owner);
		break;
	case GRAMMAR_KEY_ARGS:
	case GRAMMAR_EVENT_DATA:
		event_start(host, request, owner);
		break;
	default:
		if (verbs_cover(host, request->key))
			verbs_start(host, request, owner);
		else
			plain_start(host, request, owner);
	}
	return true;
}

static bool walks(const struct request *request)
{
	switch (request->command ? request->command->grammar : GRAMMAR_BARE) {
	case GRAMMAR_KEYS:
	case GRAMMAR_TOUCH_KEYS:
		return request->keys > FAN_KEYS_FIRST;
	case GRAMMAR_COLLECTION_KEYS:
		/* What reads sets in blocks goes on reading. */
		return request->command->id != COMMAND_SMEMBERS || request->keys > FAN_SETS_FIRST;
	default:
		return request->command &&
			(request->command->id == COMMAND_EVRANGE || request->command->id == COMMAND_EVLAST);
	}
}

void *task_new(struct host *host, const struct request *request, void *owner, size_t size)
{
	struct task *task = pool_get(host->pool, size);

	*task = (struct task){
		.host = host,
		.owner = owner,
		.size = size,
		.command = request->command,
		.quiet = request->noreply,
		.walks = walks(request),
	};
	host->begin(task);
	return task;
}

void task_free(struct task *task)
{
	buf_free(&task->spill);
	buf_free(&task->scratch);
	pool_put(task->host->pool, task, task->size);
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
