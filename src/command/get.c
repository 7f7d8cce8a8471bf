/* get gets gat gats: one call for each key, to all servers in parallel. The reply is in the order of the request. */
#include "command/fan.h"
#include "command/item.h"
#include "command/start.h"
#include "command/target.h"
#include "protocol/reply.h"

struct get_part {
	struct fan_part part;
	struct waiter waiter;
	enum target target;
};

struct get_task {
	struct task task;
	struct fan fan;
	struct call call;        /* for all keys */
	struct slice rest;       /* the keys not yet read */
	struct get_part parts[]; /* a ring; the keys lie behind it */
};

static void answered(struct waiter *waiter, const struct result *r)
{
	struct get_part *part = (struct get_part *)((char *)waiter - offsetof(struct get_part, waiter));
	struct get_task *get = (struct get_task *)part->part.fan->task;

	if (result_failed(r) && buf_size(&get->task.scratch) == 0)
		reply_failure(&get->task.scratch, r);
	if (r->status == RESULT_HIT) {
		if (get->call.verb == CALL_GAT)
			item_touched(get->task.host, part->target, waiter->key, get->call.exptime, r);
		reply_value(fan_reply(&part->part, r->value.n), waiter->key, r, get->call.want & WANT_CAS);
	}
	fan_part_done(&part->part);
}

static bool ask(struct fan *fan, struct fan_part *fan_part)
{
	struct get_task *get = (struct get_task *)fan->task;
	struct get_part *part = (struct get_part *)fan_part;

	get->call.key = slice_token(&get->rest);
	part->waiter = (struct waiter){ answered, get->call.key };
	part->target = target_of_read(get->task.host->env.rules, part->waiter.key);
	item_read(get->task.host, part->target, &get->call, get->task.owner, &part->waiter);
	return true;
}

/* The task for one key, as in most requests: it needs no fan. So many of them are under way that it keeps no more of the call. */
struct single_task {
	struct task task;
	struct waiter waiter;
	bool touches, cas;
	enum target target;
	int64_t exptime;
	char key[];
};

static void single_answered(struct waiter *waiter, const struct result *r)
{
	struct single_task *single = (struct single_task *)((char *)waiter - offsetof(struct single_task, waiter));
	struct task *task = &single->task;

	if (result_failed(r)) {
		task_reply_failure(task, r);
		return;
	}
	if (single->touches)
		item_touched(task->host, single->target, waiter->key, single->exptime, r);
	if (r->status == RESULT_HIT)
		reply_value(task_reply(task), waiter->key, r, single->cas);
	task_reply_line(task, "END");
}

static void start_single(struct host *host, const struct request *request, void *owner, struct call *call)
{
	struct single_task *single = task_new(host, request, owner, sizeof(*single) + request->key.n);
	char *at = single->key;

	call->key = task_keys(&single->task, task_keep(&at, request->key), 1);
	call->expected = single->task.expected;
	single->touches = call->verb == CALL_GAT;
	single->cas = call->want & WANT_CAS;
	single->exptime = call->exptime;
	single->target = request->target;
	single->waiter = (struct waiter){ single_answered, call->key };
	item_read(host, single->target, call, owner, &single->waiter);
}

void get_start(struct host *host, const struct request *request, void *owner)
{
	bool touches = request->command->grammar == GRAMMAR_TOUCH_KEYS;
	bool cas = request->command->id == COMMAND_GETS || request->command->id == COMMAND_GATS;
	size_t ring = request->keys < FAN_RING ? request->keys : FAN_RING;
	size_t size = sizeof(struct get_task) + ring * sizeof(struct get_part);
	struct slice keys = target_keys(request);
	struct call call = {
		.verb = touches ? CALL_GAT : CALL_GET,
		.want = WANT_VALUE | (cas ? WANT_CAS : 0u),
		.server = CALL_ANY_SERVER,
		.exptime = request->exptime,
	};
	struct get_task *get;
	char *at;

	if (request->keys == 1) {
		start_single(host, request, owner, &call);
		return;
	}
	get = task_new(host, request, owner, size + keys.n);
	at = (char *)get + size;
	get->rest = task_keys(&get->task, task_keep(&at, keys), request->keys);
	get->call = call;
	get->call.expected = get->task.expected;
	get->fan = (struct fan){
		.task = &get->task,
		.ask = ask,
		.parts = (char *)get->parts,
		.stride = sizeof(struct get_part),
		.ring = ring,
		.total = request->keys,
		.first = ORDER_KEYS_FIRST,
		.limit = SIZE_MAX,
	};
	fan_start(&get->fan);
}
