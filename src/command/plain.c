#include "command/plain.h"

#include "collection/adopted/encodings/encodings.h"
#include "collection/lane/lanes.h"
#include "collection/list_request.h"
#include "collection/text/fold.h"
#include "command/op_task.h"
#include "protocol/commands.h"
#include "protocol/failure.h"
#include "protocol/reply.h"

/* --- reading --- */

struct reading {
	struct op read, touch;
	struct list_request range; /* The range of all elements of a list. */
	struct set_request all;    /* The request for all members of a set. */
	struct host *host;
	struct waiter *waiter;
	char delimiter;
	struct failure failure; /* The failure of the touch. */
	struct buf text;        /* The members. */
	size_t size;
	char key[];
};

static void end_reading(struct reading *r, const struct result *result)
{
	struct waiter *waiter = r->waiter;

	waiter->done(waiter, result);
	failure_free(&r->failure);
	buf_free(&r->text);
	set_request_free(&r->all);
	pool_put(r->host->env.pool, r, r->size);
}

static void write_text(struct buf *out, struct slice members, char delimiter)
{
	char *at;

	if (members.n == 0)
		return;
	at = buf_reserve(out, members.n + 1);
	for (size_t i = 0; i < members.n; i++)
		at[i] = members.p[i] == ' ' ? delimiter : members.p[i];
	at[members.n] = delimiter;
	buf_commit(out, members.n + 1);
}

static void plain_on_read(struct op *op, const struct outcome *outcome)
{
	struct reading *r = (struct reading *)op;
	struct result result;

	if (r->failure.happened) {
		end_reading(r, &r->failure.result);
		return;
	}
	if (outcome->status == OUTCOME_DONE) {
		write_text(&r->text, r->all.shared ? buf_slice(&r->all.shared->text) : outcome->log,
			r->delimiter);
		result = (struct result){
			.status = RESULT_HIT,
			.value = buf_slice(&r->text),
			.flags = outcome->result->flags,
			.cas = outcome->result->cas,
			.ttl = outcome->result->ttl,
		};
	} else {
		result = outcome_result(outcome);
	}
	end_reading(r, &result);
}

static void plain_on_touched(struct op *op, const struct outcome *outcome)
{
	struct reading *r = (struct reading *)((char *)op - offsetof(struct reading, touch));

	if (outcome->status == OUTCOME_FAILED)
		failure_keep(&r->failure, outcome->result);
}

void plain_read(const struct task *task, const struct call *call, struct waiter *waiter)
{
	struct host *host = task->host;
	size_t size = sizeof(struct reading) + call->key.n;
	struct reading *r = pool_get(host->env.pool, size);
	const struct collection_rule *rule = rules_collection(host->env.rules, call->key);
	struct slice key = slice_of(r->key, call->key.n);

	*r = (struct reading){
		.host = host,
		.waiter = waiter,
		.delimiter = rule->delimiter,
		.size = size,
	};
	memcpy(r->key, call->key.p, call->key.n);
	if (call->verb == CALL_GAT) {
		r->touch = (struct op){
			.kind = OP_TOUCH, .key = key, .ttl = call->exptime, .done = plain_on_touched
		};
		task_owns(task, &r->touch);
		lanes_submit(host->lanes, &r->touch);
	}
	r->all = (struct set_request){ .verb = SET_ALL };
	r->range = (struct list_request){ .verb = LIST_RANGE, .stop = -1 };
	if (rule->type == COLLECTION_LIST)
		r->read = (struct op){
			.kind = OP_LIST, .key = key, .list = &r->range, .done = plain_on_read
		};
	else
		r->read = (struct op){
			.kind = OP_READ, .key = key, .set = &r->all, .done = plain_on_read
		};
	task_owns(task, &r->read);
	lanes_submit(host->lanes, &r->read);
}

/* --- writing --- */

/*
 * Converts an item's value to a log with the same sign for all members. Returns NULL, or the
 * error line.
 */
static const char *parse_value(
	const struct collection_rule *rule, struct slice data, char sign, struct buf *log)
{
	while (data.n) {
		const char *end = memchr(data.p, rule->delimiter, data.n);
		struct slice member = slice_of(data.p, end ? (size_t)(end - data.p) : data.n);
		const char *error;

		if (member.n > MEMBER_MAX)
			return "CLIENT_ERROR member too long";
		if (!request_key_valid(member, MEMBER_MAX))
			return "CLIENT_ERROR bad member";
		error = encoding_check_member(rule, member);
		if (error)
			return error;
		buf_add(log, &sign, 1);
		buf_add_word(log, member);
		data = slice_skip(data, member.n + (end ? 1 : 0));
	}
	return NULL;
}

static const struct {
	enum op_kind kind;
	enum replace_mode mode;
} writes[] = {
	[COMMAND_ADD] = { OP_REPLACE, REPLACE_MISSING },
	[COMMAND_APPEND] = { .kind = OP_APPEND },
	[COMMAND_CAS] = { OP_REPLACE, REPLACE_SAME },
	[COMMAND_DELETE] = { .kind = OP_DELETE },
	[COMMAND_PREPEND] = { .kind = OP_APPEND },
	[COMMAND_REPLACE] = { OP_REPLACE, REPLACE_PRESENT },
	[COMMAND_SET] = { OP_REPLACE, REPLACE_ANY },
	[COMMAND_TOUCH] = { .kind = OP_TOUCH },
};

void plain_start(struct host *host, const struct request *request, void *owner)
{
	const struct collection_rule *rule = rules_collection(host->env.rules, request->key);
	struct buf log = BUF_EMPTY;
	command_id id = request->command->id;
	bool removes = rule->type == COLLECTION_SET && id == COMMAND_PREPEND;
	const char *error = NULL;
	struct op_task *t;

	if (request->key.n > COLLECTION_KEY_MAX)
		error = "CLIENT_ERROR key too long";
	else if (request->command->grammar == GRAMMAR_ARITHMETIC)
		error = "CLIENT_ERROR cannot increment or decrement a collection";
	else if (request->extras.compare)
		error = "CLIENT_ERROR a cas id is only for commands that replace a collection";
	else
		error = parse_value(rule, request->data, removes ? '-' : '+', &log);
	if (error) {
		buf_free(&log);
		task_refuse(host, request, owner, error);
		return;
	}
	t = op_task_new(host, request, owner, writes[id].kind, op_task_told, 0);
	t->op.type = rule->type;
	if (t->op.kind == OP_REPLACE) {
		t->op.flags = request->flags;
		t->op.cas = request->number;
		t->op.mode = writes[id].mode;
	} else {
		/* Only a collection that is stored as a whole is new. */
		t->op.ttl = request->exptime;
		t->op.front = op_is_list(&t->op) && id == COMMAND_PREPEND;
	}
	t->task.scratch = log;
	t->op.log = buf_slice(&t->task.scratch);
	op_task_submit(t);
}
