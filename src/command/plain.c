/* memcached's commands of one key and one line of reply: one call each, or for delete and touch one operation. */
#include "collection/lanes.h"
#include "collection/large.h"
#include "command/task.h"
#include "protocol/reply.h"

struct plain_task {
	struct task task;
	struct waiter waiter;
	struct op op; /* delete and touch, which reach the segments of a collection */
	enum call_verb verb;
	char key[];
};

static enum call_verb verb_of(enum command_id id)
{
	switch (id) {
	case COMMAND_ADD:
		return CALL_ADD;
	case COMMAND_APPEND:
		return CALL_APPEND;
	case COMMAND_CAS:
		return CALL_CAS;
	case COMMAND_DECR:
		return CALL_DECR;
	case COMMAND_DELETE:
		return CALL_DELETE;
	case COMMAND_INCR:
		return CALL_INCR;
	case COMMAND_PREPEND:
		return CALL_PREPEND;
	case COMMAND_REPLACE:
		return CALL_REPLACE;
	case COMMAND_TOUCH:
		return CALL_TOUCH;
	default:
		return CALL_SET;
	}
}

static const char *done_word(enum call_verb verb)
{
	return verb == CALL_DELETE ? "DELETED" : verb == CALL_TOUCH ? "TOUCHED" : "STORED";
}

static void answered(struct waiter *waiter, const struct result *r)
{
	struct plain_task *plain = (struct plain_task *)((char *)waiter - offsetof(struct plain_task, waiter));

	switch (r->status) {
	case RESULT_DONE:
		task_reply_line(&plain->task, done_word(plain->verb));
		break;
	case RESULT_MISS:
		task_reply_line(&plain->task, "NOT_FOUND");
		break;
	case RESULT_NOT_STORED:
		task_reply_line(&plain->task, "NOT_STORED");
		break;
	case RESULT_EXISTS:
		task_reply_line(&plain->task, "EXISTS");
		break;
	case RESULT_NUMBER:
		task_reply_number(&plain->task, r->number);
		break;
	default:
		task_reply_failure(&plain->task, r);
	}
}

/* Of a flip no item lies under the key itself: what was meant may be one of its items, whose keys match the rule too. */
static bool is_flip(const struct plain_task *plain)
{
	return rules_collection(plain->task.host->rules, plain->waiter.key)->encoding == ENCODING_FLIP;
}

static void sweep_item(struct plain_task *plain)
{
	lanes_call(plain->task.host->lanes,
		&(struct call){
			.verb = plain->verb,
			.server = CALL_ANY_SERVER,
			.key = plain->waiter.key,
			.exptime = plain->op.ttl,
		},
		&plain->waiter);
}

static void swept(struct op *op, const struct outcome *outcome)
{
	struct plain_task *plain = (struct plain_task *)((char *)op - offsetof(struct plain_task, op));

	if (outcome->status == OUTCOME_FAILED)
		task_reply_failure(&plain->task, outcome->result);
	else if (outcome->status == OUTCOME_BUSY)
		task_reply_line(&plain->task, "SERVER_ERROR busy");
	else if (outcome->status == OUTCOME_NEWER)
		task_reply_line(&plain->task, "SERVER_ERROR stored by a newer version of setlistd");
	else if (outcome->status == OUTCOME_MISSING && is_flip(plain))
		sweep_item(plain);
	else
		task_reply_line(&plain->task, outcome->status == OUTCOME_DONE ? done_word(plain->verb) : "NOT_FOUND");
}

/*
 * Whether deleting the item alone may leave segments behind. They would do no harm: nobody can reach them, and the server
 * evicts them in the end. So an ordinary key is not asked about first.
 */
static bool may_be_large(const struct host *host, const struct collection_rule *rule, struct slice key)
{
	return large_seen(host->large, key) || rule->prefix.n > 0;
}

/* Whether it may have other items that must go the same way. */
static bool sweeps(const struct host *host, enum call_verb verb, struct slice key)
{
	const struct collection_rule *rule = rules_collection(host->rules, key);

	/* Those of a key that long would have longer ones than there are. */
	if (rule->encoding != ENCODING_OPLOG && key.n > COLLECTION_KEY_MAX)
		return false;
	return verb == CALL_TOUCH || (verb == CALL_DELETE && may_be_large(host, rule, key));
}

void plain_start(struct host *host, const struct request *request, void *owner)
{
	struct plain_task *plain = task_new(host, request, owner, sizeof(*plain) + request->key.n);
	char *at = plain->key;

	plain->verb = verb_of(request->command->id);
	plain->waiter = (struct waiter){ answered, task_keep(&at, request->key) };
	if (sweeps(host, plain->verb, request->key)) {
		plain->op = (struct op){
			.kind = OP_SWEEP,
			.create = plain->verb == CALL_TOUCH,
			.key = plain->waiter.key,
			.ttl = request->exptime,
			.done = swept,
		};
		lanes_submit(host->lanes, &plain->op);
		return;
	}
	lanes_call(host->lanes,
		&(struct call){
			.verb = plain->verb,
			.server = CALL_ANY_SERVER,
			.key = plain->waiter.key,
			.value = request->data,
			.flags = request->flags,
			.exptime = request->exptime,
			.number = request->number,
		},
		&plain->waiter);
}
