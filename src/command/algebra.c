/*
 * sunion sinter sdiff: the sets are read all at once, wherever they are, and worked through in the order of their keys, each
 * as soon as it is there; a missing one is empty.
 */
#include "collection/set/cache.h"
#include "collection/text/fold.h"
#include "collection/lanes.h"
#include "command/set.h"
#include "protocol/reply.h"

struct algebra_part {
	struct op op;
	struct algebra_task *algebra;
	struct buf text; /* the members, while sets before it are not there */
	bool done;
};

struct algebra_task {
	struct task task;
	struct fold result; /* borrows from the texts */
	size_t count, next; /* of the sets; the next to work through */
	struct algebra_part parts[];
};

/* What is not in `text` any more goes out of the result. */
static void intersect(struct fold *result, struct slice text)
{
	struct fold both = { .seed = result->seed };
	struct slice member;

	while ((member = roster_next(&text)).n) {
		if (fold_contains(result, member))
			fold_add(&both, member);
	}
	fold_free(result);
	*result = both;
}

static void work_in(struct algebra_task *a, struct slice text)
{
	enum command_id id = a->task.command->id;
	struct slice member;

	if (id == COMMAND_SINTER && a->next > 0) {
		intersect(&a->result, text);
		return;
	}
	while ((member = roster_next(&text)).n) {
		if (id != COMMAND_SDIFF || a->next == 0)
			fold_add(&a->result, member);
		else if (fold_contains(&a->result, member))
			fold_remove(&a->result, member);
	}
}

static void finish(struct algebra_task *a)
{
	struct buf *out = task_reply(&a->task), *failure = &a->task.scratch;

	if (buf_size(failure)) {
		buf_add_slice(out, buf_slice(failure));
	} else {
		reply_value_head(out, a->task.command->name, 0, fold_joined_size(&a->result), NULL);
		fold_join(&a->result, out);
		BUF_ADD(out, "\r\nEND\r\n");
	}
	fold_free(&a->result);
	for (size_t i = 0; i < a->count; i++)
		buf_free(&a->parts[i].text);
	task_done(&a->task);
}

static void read_done(struct op *op, const struct outcome *outcome)
{
	struct algebra_part *part = (struct algebra_part *)op;
	struct algebra_task *a = part->algebra;
	struct buf *failure = &a->task.scratch;

	part->done = true;
	if (outcome->status == OUTCOME_DONE)
		buf_add_slice(&part->text, roster_text(&outcome->view->roster));
	else if (outcome->status != OUTCOME_MISSING && buf_size(failure) == 0)
		set_reply_failure(failure, outcome);
	for (; a->next < a->count && a->parts[a->next].done; a->next++)
		work_in(a, buf_slice(&a->parts[a->next].text));
	if (a->next == a->count)
		finish(a);
}

void algebra_start(struct host *host, const struct request *request, void *owner)
{
	size_t size = sizeof(struct algebra_task) + request->keys * sizeof(struct algebra_part);
	struct algebra_task *a = task_new(host, request, owner, size + request->key.n + request->rest.n);
	struct slice rest = request->rest, key = request->key;
	char *at = (char *)a + size;

	a->result = (struct fold){ .seed = host->seed };
	a->count = request->keys;
	a->next = 0;
	for (size_t i = 0; i < a->count; i++, key = slice_token(&rest)) {
		struct algebra_part *part = &a->parts[i];
		*part = (struct algebra_part){ .algebra = a };
		part->op = (struct op){ .kind = OP_READ, .key = task_keep(&at, key), .done = read_done };
		lanes_submit(host->lanes, &part->op);
	}
}
