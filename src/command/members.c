/* smembers: one read for each key, answered in the order of the request. */
#include "collection/lane/lanes.h"
#include "collection/set_request.h"
#include "command/fan.h"
#include "command/outcome.h"
#include "command/start.h"
#include "protocol/reply.h"

struct members_part {
	struct fan_part part;
	struct op op;
	struct set_request request;
};

struct members_task {
	struct task task;
	struct fan fan;
	struct slice rest;           /* the keys not yet read */
	struct members_part parts[]; /* a ring; the keys lie behind it */
};

typedef void read_done(struct op *op, const struct outcome *outcome);

static void read_next(struct members_task *members, struct members_part *part, read_done *done)
{
	part->request = (struct set_request){ .verb = SET_ALL };
	part->op = (struct op){
		.kind = OP_READ,
		.key = slice_token(&members->rest),
		.client = task_client(members->task.host, members->task.owner),
		.set = &part->request,
		.done = done,
	};
	lanes_submit(members->task.host->lanes, &part->op);
}

/* One key, as most requests have, needs no fan. A missing set has no VALUE; a failure is the whole reply. */
static void single_read(struct op *op, const struct outcome *outcome)
{
	size_t offset = offsetof(struct members_task, parts) + offsetof(struct members_part, op);
	struct task *task = (struct task *)((char *)op - offset);
	struct shared *text = op->set->shared;

	outcome_tell_cas(outcome, task);
	if (outcome->status == OUTCOME_DONE) {
		reply_value_head(task_reply(task), op->key, 0, buf_size(&text->text), NULL);
		task_reply_shared(task, text);
		BUF_ADD(task_reply(task), "\r\nEND\r\n");
	} else if (outcome->status == OUTCOME_MISSING) {
		reply_text(task_reply(task), "END");
	} else {
		outcome_reply_failure(task_reply(task), outcome);
	}
	set_request_free(op->set);
	task_done(task);
}

static void part_read(struct op *op, const struct outcome *outcome)
{
	struct members_part *part = (struct members_part *)((char *)op - offsetof(struct members_part, op));
	struct fan *fan = part->part.fan;

	if (outcome->status == OUTCOME_DONE) {
		struct shared *text = op->set->shared;
		struct buf *out = fan_reply(&part->part, buf_size(&text->text));
		reply_value_head(out, op->key, 0, buf_size(&text->text), NULL);
		out = fan_reply_shared(&part->part, out, text);
		BUF_ADD(out, "\r\n");
	} else if (outcome->status != OUTCOME_MISSING && buf_size(&fan->task->scratch) == 0) {
		outcome_reply_failure(&fan->task->scratch, outcome);
	}
	set_request_free(op->set);
	fan_part_done(&part->part);
}

static bool ask(struct fan *fan, struct fan_part *fan_part)
{
	read_next((struct members_task *)fan->task, (struct members_part *)fan_part, part_read);
	return true;
}

void members_start(struct host *host, const struct request *request, void *owner)
{
	size_t ring = request->keys < FAN_RING ? request->keys : FAN_RING;
	size_t size = sizeof(struct members_task) + ring * sizeof(struct members_part);
	struct slice keys = slice_of(request->key.p, (size_t)(request->rest.p + request->rest.n - request->key.p));
	struct members_task *members = task_new(host, request, owner, size + keys.n);
	char *at = (char *)members + size;

	members->rest = task_keys(&members->task, task_keep(&at, keys), request->keys);
	if (request->keys == 1) {
		read_next(members, members->parts, single_read);
		return;
	}
	members->fan = (struct fan){
		.task = &members->task,
		.ask = ask,
		.parts = (char *)members->parts,
		.stride = sizeof(struct members_part),
		.ring = ring,
		.total = request->keys,
		.first = ORDER_SETS_FIRST,
		.limit = SIZE_MAX,
	};
	fan_start(&members->fan);
}
