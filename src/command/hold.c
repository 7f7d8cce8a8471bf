/*
 * lhold, lack and lfail. An element that was delivered too often is moved to the list of dead
 * elements of its rule, without a lock:
 *
 *     hold an element -> few deliveries: reply it
 *                     -> too many: read the dead list -> push the element to it
 *                                  -> acknowledge the element -> hold another one
 *
 * Until it is acknowledged, the element is held. If the proxy is killed after the push, the element
 * is given back after its time, and moved once more. As an append does not check its target, the
 * dead list is read first: see move.c.
 */
#include "collection/lane/lanes.h"
#include "collection/list_request.h"
#include "collection/text/held.h"
#include "command/args.h"
#include "command/conversion.h"
#include "command/op_task.h"
#include "command/start.h"
#include "protocol/commands.h"
#include "protocol/reply.h"

struct hold {
	struct task task;
	struct op op; /* The operation in flight. */
	struct list_request list;
	const struct collection_rule *rule;
	struct slice key;
	int64_t end, seconds;
	char ticket[HELD_TICKET];
	struct buf token; /* The dead element, as the token of an addition. */
	char keys[];
};

static void hold_next(struct hold *h);

/* Frees what the task owns in addition to itself, and returns the task. */
static struct task *end_hold(struct hold *h)
{
	buf_free(&h->token);
	return &h->task;
}

static struct hold *hold_of(struct op *op)
{
	return (struct hold *)((char *)op - offsetof(struct hold, op));
}

static void submit_hold(struct hold *h, enum op_kind kind, struct slice key,
	void (*done)(struct op *, const struct outcome *))
{
	h->op = (struct op){ .kind = kind, .key = key, .done = done };
	h->op.whole = kind == OP_LIST && h->list.verb == LIST_HOLD;
	if (kind == OP_LIST)
		h->op.list = &h->list;
	task_owns(&h->task, &h->op);
	if (kind == OP_APPEND) {
		h->op.type = COLLECTION_LIST;
		h->op.log = buf_slice(&h->token);
		h->op.create = true;
		h->op.ttl = rules_collection(h->task.host->env.rules, key)->ttl;
	}
	lanes_submit(h->task.host->lanes, &h->op);
}

/* --- a dead element --- */

/* If its time is over, it has been given back, and is moved once more. */
static void hold_on_acknowledged(struct op *op, const struct outcome *outcome)
{
	struct hold *h = hold_of(op);

	if (outcome->status == OUTCOME_DONE || outcome->status == OUTCOME_MISSING)
		hold_next(h);
	else
		outcome_end(outcome, end_hold(h));
}

static void hold_on_buried(struct op *op, const struct outcome *outcome)
{
	struct hold *h = hold_of(op);

	if (outcome->status != OUTCOME_DONE) {
		outcome_end(outcome, end_hold(h));
		return;
	}
	h->list =
		(struct list_request){ .verb = LIST_ACK, .item = slice_of(h->ticket, HELD_TICKET) };
	submit_hold(h, OP_LIST, h->key, hold_on_acknowledged);
}

static void hold_on_dead_read(struct op *op, const struct outcome *outcome)
{
	struct hold *h = hold_of(op);

	if (outcome->status != OUTCOME_DONE && outcome->status != OUTCOME_MISSING)
		outcome_end(outcome, end_hold(h));
	else
		submit_hold(h, OP_APPEND, h->rule->dead, hold_on_buried);
}

/* The answer to the hold is the ticket, the deliveries and the word. */
static void bury(struct hold *h, struct slice answer)
{
	const struct collection_rule *rule =
		rules_collection(h->task.host->env.rules, h->rule->dead);

	(void)slice_token(&answer);
	(void)slice_token(&answer);
	buf_consume(&h->token, buf_size(&h->token));
	BUF_ADD(&h->token, "+");
	buf_add_word(&h->token, slice_token(&answer));
	if (!args_allow_lists(rule)) {
		task_say_error(end_hold(h), args_no_list(rule));
		return;
	}
	h->list = (struct list_request){ .verb = LIST_LENGTH };
	submit_hold(h, OP_LIST, h->rule->dead, hold_on_dead_read);
}

/* --- lhold --- */

static bool is_dead(const struct hold *h)
{
	return h->list.count && h->list.number > h->list.count;
}

static void hold_on_held(struct op *op, const struct outcome *outcome)
{
	struct hold *h = hold_of(op);
	struct reply r;

	if (outcome->status == OUTCOME_MISSING ||
		(outcome->status == OUTCOME_DONE && outcome->log.n == 0)) {
		task_say_word(end_hold(h), WORD_END);
	} else if (outcome->status != OUTCOME_DONE) {
		outcome_end(outcome, end_hold(h));
	} else if (is_dead(h)) {
		bury(h, outcome->log);
	} else {
		r = reply_elements(CONTENT_ELEMENTS, h->key, outcome->log);
		task_say_elements(end_hold(h), &r);
	}
}

/* Nothing is held for a client that has disconnected. */
static void hold_next(struct hold *h)
{
	bool buries = h->rule->dead.n && !slice_equal(h->rule->dead, h->key);

	if (task_is_abandoned(&h->task)) {
		task_say_word(end_hold(h), WORD_END);
		return;
	}
	held_new_ticket(&h->task.host->env.random, h->ticket);
	h->list = (struct list_request){
		.verb = LIST_HOLD,
		.start = h->end,
		.stop = h->seconds,
		.count = buries ? (uint64_t)h->rule->dead_after : 0,
		.item = slice_of(h->ticket, HELD_TICKET),
	};
	submit_hold(h, OP_LIST, h->key, hold_on_held);
}

void hold_element_start(struct host *host, const struct request *request, void *owner)
{
	struct hold *h = task_new(host, request, owner, sizeof(*h) + request->key.n);
	char *at = h->keys;

	h->key = task_keys(&h->task, task_keep(&at, request->key), 1);
	h->rule = request->args->rule;
	h->end = request->args->first;
	h->seconds = (int64_t)request->args->count;
	h->token = BUF_EMPTY;
	hold_next(h);
}

/* --- lack and lfail --- */

void ticket_start(struct host *host, const struct request *request, void *owner)
{
	struct slice ticket = request->args->token;
	size_t size = sizeof(struct list_request) + ticket.n;
	struct op_task *t = op_task_new(host, request, owner, OP_LIST, op_task_told, size);
	char *at = t->more + sizeof(struct list_request);

	t->op.list = (struct list_request *)(void *)t->more;
	*t->op.list = (struct list_request){
		.verb = request->command->id == COMMAND_LACK ? LIST_ACK : LIST_FAIL,
		.item = task_keep(&at, ticket),
	};
	op_task_submit(t);
}
