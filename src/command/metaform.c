/*
 * The meta commands on a key that is more than an item. The classic command of the same meaning is a task inside, and its reply is
 * given in the meta form.
 *
 *     mg tags-ann v -> metaform_parse -> gets tags-ann -> task inside, its reply -> metaform_reply -> VA 4
 */
#include <stdlib.h>

#include "command/start.h"
#include "command/target.h"
#include "command/task.h"
#include "protocol/metaform.h"
#include "protocol/reply.h"

struct form_task {
	struct task task;
	struct nest nest;
	struct metaform form;
	char bytes[];
};

static void reply_value_of(struct task *task, struct nest *nest, struct slice value)
{
	struct shared *text;

	if (!nest->text && value.n < TASK_SHARES) {
		reply_line(task_reply(task), value);
		return;
	}
	text = nest_take(nest, value);
	task_reply_shared(task, text);
	BUF_ADD(task_reply(task), "\r\n");
	shared_drop(text);
}

static void replied(struct nest *nest, struct slice reply)
{
	struct form_task *form = (struct form_task *)nest->outer;
	struct slice value;

	if (metaform_reply(task_reply(&form->task), &form->form, reply, nest->ttl, &value))
		reply_value_of(&form->task, nest, value);
	task_done(&form->task);
}

static void resume(struct task *task)
{
	if (task->abandoned)
		task_abandon_inside(&((struct form_task *)task)->nest);
}

static void start(struct host *host, const struct request *request, void *owner, struct request *inside)
{
	size_t bytes = request->key.n + request->rest.n + inside->key.n;
	struct form_task *form = task_new(host, request, owner, sizeof(*form) + bytes);
	char *at = form->bytes;

	form->form = (struct metaform){
		.command = request->command->id,
		.flags = request->meta,
		.key = task_keep(&at, request->key),
		.line = task_keep(&at, request->rest),
	};
	(void)task_keys(&form->task, task_keep(&at, inside->key), 1);
	form->task.resume = resume;
	form->nest = (struct nest){ .outer = &form->task, .done = replied, .takes_text = true };
	inside->target = request->target;
	if (!task_start_inside(&form->nest, inside))
		abort();
}

void metaform_start(struct host *host, const struct request *request, void *owner)
{
	char decoded[KEY_MAX];
	struct slice key = target_key(request, decoded);
	const char *error = start_odd_key_refusal;
	struct request inside;

	if (request_key_valid(key, KEY_MAX))
		error = metaform_parse(request, key, &inside);
	if (error)
		task_refuse(host, request, owner, error);
	else
		start(host, request, owner, &inside);
}
