/* smembers: one read a key, answered in the order asked for. */
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
	struct slice rest;           /* the keys not yet asked for */
	struct members_part parts[]; /* a ring, and behind it the keys */
};

/* A failure takes the place of END, so that nothing is taken for complete that is not. It is kept in the scratch. */
static void finish(struct fan *fan)
{
	struct buf *failure = &fan->task->scratch;

	buf_add_slice(task_reply(fan->task), buf_size(failure) ? buf_slice(failure) : SLICE("END\r\n"));
	task_done(fan->task);
}

/* A missing set is left out. */
static void listed(struct op *op, const struct outcome *outcome)
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
	struct members_task *members = (struct members_task *)fan->task;
	struct members_part *part = (struct members_part *)fan_part;

	part->request = (struct set_request){ .verb = SET_ALL };
	part->op = (struct op){
		.kind = OP_READ,
		.key = slice_token(&members->rest),
		.client = task_client(fan->task->host, fan->task->owner),
		.set = &part->request,
		.done = listed,
	};
	lanes_submit(fan->task->host->lanes, &part->op);
	return true;
}

void members_start(struct host *host, const struct request *request, void *owner)
{
	size_t ring = request->keys < FAN_RING ? request->keys : FAN_RING;
	size_t size = sizeof(struct members_task) + ring * sizeof(struct members_part);
	struct slice keys = slice_of(request->key.p, (size_t)(request->rest.p + request->rest.n - request->key.p));
	struct members_task *members = task_new(host, request, owner, size + keys.n);
	char *at = (char *)members + size;

	members->rest = task_keep(&at, keys);
	members->fan = (struct fan){
		.task = &members->task,
		.ask = ask,
		.finish = finish,
		.parts = (char *)members->parts,
		.stride = sizeof(struct members_part),
		.ring = ring,
		.total = request->keys,
		.first = ORDER_SETS_FIRST,
		.limit = SIZE_MAX,
	};
	fan_start(&members->fan);
}
