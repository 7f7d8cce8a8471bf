#include "command/plain.h"

#include "collection/adopted/encodings/encodings.h"
#include "collection/lane/lanes.h"
#include "collection/list_request.h"
#include "collection/text/fold.h"
#include "command/conversion.h"
#include "command/word_log.h"
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
	const struct task *task;
	char delimiter;
	struct failure failure; /* The failure of the touch. */
	struct result hit;      /* Its value is in the reply that is converted. */
	size_t size;
	char key[];
};

static void end_reading(struct reading *r, const struct result *result)
{
	struct waiter *waiter = r->waiter;

	waiter->done(waiter, result);
	failure_free(&r->failure);
	set_request_free(&r->all);
	pool_put(r->host->env.pool, r, r->size);
}

static void plain_on_converted(void *arg, const struct reply *reply)
{
	struct reading *r = arg;

	r->hit.value = reply_bytes(reply);
	if (reply->kind == REPLY_ERROR)
		r->hit = (struct result){ .status = RESULT_REFUSED, .line = reply->bytes };
	end_reading(r, &r->hit);
}

static void plain_on_read(struct op *op, const struct outcome *outcome)
{
	struct reading *r = (struct reading *)op;
	const struct elements how = { .joins = true, .ends = true, .delimiter = r->delimiter };
	struct reply words;
	struct result result;

	if (r->failure.happened) {
		end_reading(r, &r->failure.result);
		return;
	}
	if (outcome->status != OUTCOME_DONE) {
		result = outcome_result(outcome);
		end_reading(r, &result);
		return;
	}
	r->hit = (struct result){
		.status = RESULT_HIT,
		.flags = outcome->result->flags,
		.cas = outcome->result->cas,
		.ttl = outcome->result->ttl,
	};
	words = reply_elements(CONTENT_ELEMENTS, op->key, outcome->log);
	words.shared = r->all.shared;
	conversion_start(r->task, &words, how, plain_on_converted, r);
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
		.task = task,
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
	command_id id = request->command->id;
	bool removes = rule->type == COLLECTION_SET && id == COMMAND_PREPEND;
	const char *error = NULL;
	struct word_log w = word_log_of_item(rule, request->data, removes ? '-' : '+',
		removes ? EXPIRY_NONE : word_log_rule_date(host, request->key, rule));
	struct op_task *t;

	if (request->key.n > COLLECTION_KEY_MAX)
		error = "CLIENT_ERROR key too long";
	else if (request->command->grammar == GRAMMAR_ARITHMETIC)
		error = "CLIENT_ERROR cannot increment or decrement a collection";
	else if (request->extras.compare)
		error = "CLIENT_ERROR a cas id is only for commands that replace a collection";
	if (error) {
		task_refuse(host, request, owner, error);
		return;
	}
	t = op_task_new(host, request, owner, writes[id].kind, op_task_told, word_log_room(&w));
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
	word_log_submit(t, &w);
}
