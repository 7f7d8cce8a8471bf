/* The commands on sets: with one key each is an operation in its lane; smembers reads many sets. sinfo and scompact take lists as well. */
#include "collection/adopted/encodings/encodings.h"
#include "collection/lane/lanes.h"
#include "collection/text/fold.h"
#include "command/args.h"
#include "command/fan.h"
#include "command/op_task.h"
#include "command/start.h"
#include "protocol/reply.h"
#include "util/random.h"

/* --- changes --- */

void sadd_start(struct host *host, const struct request *request, void *owner)
{
	op_task_append(host, request, owner, APPEND_CREATES);
}

void saddx_start(struct host *host, const struct request *request, void *owner)
{
	op_task_append(host, request, owner, 0);
}

void srem_start(struct host *host, const struct request *request, void *owner)
{
	op_task_append(host, request, owner, APPEND_REMOVES);
}

void sset_start(struct host *host, const struct request *request, void *owner)
{
	struct op_task *t = op_task_new(host, request, owner, OP_REPLACE, op_task_told, 0);
	struct slice rest = request->args->words, member;
	struct fold fold = { .seed = host->env.seed };

	while ((member = slice_token(&rest)).n)
		fold_add(&fold, member);
	fold_encode(&fold, &t->task.scratch);
	fold_free(&fold);
	t->op.mode = request->has_number ? REPLACE_SAME : REPLACE_ANY;
	t->op.cas = request->number;
	t->op.log = buf_slice(&t->task.scratch);
	op_task_submit(t);
}

void spop_start(struct host *host, const struct request *request, void *owner)
{
	struct op_task *t = op_task_new(host, request, owner, OP_POP, op_task_listed, 0);

	t->op.count = request->args->count;
	op_task_submit(t);
}

void scompact_start(struct host *host, const struct request *request, void *owner)
{
	struct op_task *t = op_task_new(host, request, owner, OP_COMPACT, op_task_told, 0);

	t->op.all = true;
	op_task_submit(t);
}

/* --- reads of one set --- */

/* A digit for each member. */
static void tested(struct op *op, const struct outcome *outcome)
{
	struct task *task = &op_task_of(op)->task;
	struct buf digits = op->set->text;

	outcome_tell_cas(outcome, task);
	if (!outcome_ends(outcome, task)) {
		reply_line(task_reply(task), buf_slice(&digits));
		task_done(task);
	}
	buf_free(&digits);
}

void smismember_start(struct host *host, const struct request *request, void *owner)
{
	const struct set_request asked = { .verb = SET_TEST, .members = request->args->words };

	op_task_ask_set(host, request, owner, &asked, tested);
}

void sismember_start(struct host *host, const struct request *request, void *owner)
{
	smismember_start(host, request, owner);
}

void scard_start(struct host *host, const struct request *request, void *owner)
{
	op_task_ask_set(host, request, owner, &(struct set_request){ .verb = SET_COUNT }, op_task_counted);
}

void scount_start(struct host *host, const struct request *request, void *owner)
{
	const struct set_request asked = { .verb = SET_COUNT, .range = request->args->range };

	op_task_ask_set(host, request, owner, &asked, op_task_counted);
}

void srange_start(struct host *host, const struct request *request, void *owner)
{
	const struct args *args = request->args;
	const struct set_request asked = { .verb = SET_RANGE, .range = args->range, .count = args->count };

	op_task_ask_set(host, request, owner, &asked, op_task_listed);
}

void sscan_start(struct host *host, const struct request *request, void *owner)
{
	srange_start(host, request, owner);
}

void srandmember_start(struct host *host, const struct request *request, void *owner)
{
	const struct set_request asked = {
		.verb = SET_SAMPLE,
		.count = request->args->count,
		.random = random_next(&host->env.random),
	};

	op_task_ask_set(host, request, owner, &asked, op_task_listed);
}

/* --- smembers: one read for each key, answered in the order of the request --- */

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

static void read_next(struct members_task *members, struct members_part *part, op_done *done)
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

/* --- sinfo: a small set and a small list look alike, so it reads the key as both --- */

struct info_task {
	struct task task;
	struct op read, length;
	struct set_request request;
	struct list_request list;
	const char *server;
	int64_t ttl;
	uint64_t items;
	bool is_list; /* it can be read as one */
	int pending;  /* operations */
	char key[];
};

static void describe(struct info_task *info, struct buf *out)
{
	const struct set_info *i = &info->request.info;
	const struct collection_rule *rule = rules_collection(info->task.host->env.rules, info->read.key);

	reply_stat_text(out, "encoding", encoding_name(rule->encoding));
	reply_stat_text(out, "server", info->server);
	reply_stat(out, "members", i->members);
	if (info->is_list)
		reply_stat(out, "items", info->items);
	reply_stat(out, "bytes", i->base_bytes + i->table_bytes);
	reply_stat(out, "base_bytes", i->base_bytes);
	reply_stat(out, "table_bytes", i->table_bytes);
	reply_stat(out, "tokens", i->tokens);
	buf_printf(out, "STAT waste %.2f\r\n", i->waste);
	reply_stat(out, "runs", i->runs);
	reply_stat(out, "tables", i->tables);
	reply_stat(out, "entries", i->entries);
	reply_stat(out, "removals", i->removals);
	if (info->ttl == TTL_UNKNOWN)
		reply_stat_text(out, "ttl", "unknown");
	else
		buf_printf(out, "STAT ttl %lld\r\n", (long long)info->ttl);
	reply_text(out, "END");
}

static void end_one(struct info_task *info)
{
	if (--info->pending || task_fails(&info->task))
		return;
	describe(info, task_reply(&info->task));
	task_done(&info->task);
}

static void was_measured(struct op *op, const struct outcome *outcome)
{
	struct info_task *info = (struct info_task *)((char *)op - offsetof(struct info_task, length));

	info->is_list = outcome->status == OUTCOME_DONE;
	info->items = outcome->number;
	end_one(info);
}

static void was_read(struct op *op, const struct outcome *outcome)
{
	struct info_task *info = (struct info_task *)((char *)op - offsetof(struct info_task, read));

	if (outcome->status == OUTCOME_DONE) {
		info->server = outcome->result->server;
		info->ttl = outcome->result->ttl;
	} else if (outcome->status == OUTCOME_MISSING) {
		reply_text(&info->task.scratch, "NOT_FOUND");
	} else {
		outcome_reply_failure(&info->task.scratch, outcome);
	}
	end_one(info);
}

void sinfo_start(struct host *host, const struct request *request, void *owner)
{
	struct info_task *info = task_new(host, request, owner, sizeof(*info) + request->key.n);
	char *at = info->key;
	struct slice key = task_keys(&info->task, task_keep(&at, request->key), 1);
	bool may_be_list = args_allow_lists(request->args->rule);

	info->is_list = false;
	info->request = (struct set_request){ .verb = SET_INFO };
	info->list = (struct list_request){ .verb = LIST_LENGTH };
	info->read = (struct op){ .kind = OP_READ, .key = key, .set = &info->request, .done = was_read };
	info->length = (struct op){ .kind = OP_LIST, .key = key, .list = &info->list, .done = was_measured };
	info->read.client = info->length.client = task_client(host, owner);
	info->pending = may_be_list ? 2 : 1;
	lanes_submit(host->lanes, &info->read);
	if (may_be_list)
		lanes_submit(host->lanes, &info->length);
}
