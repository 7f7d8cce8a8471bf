/*
 * Moves from one key to another, without a lock:
 *
 *     lmove: read the element  -> push it -> pop the element, if it is still at its end
 *            read the target              -> it is not: remove the copy -> read again
 *     smove: test the member   -> add it  -> remove it
 *            read the target
 *
 * The target gets the element before the source loses it. If a proxy is killed in between, both
 * have it, and nothing is lost.
 *
 * An append does not check its target, and an element that is appended to a plain item would be
 * lost. Therefore the target is read in the same round trip as the source, and nothing is moved
 * unless the target is a collection or missing.
 */
#include "collection/adopted/encodings/encodings.h"
#include "collection/lane/lanes.h"
#include "collection/list_request.h"
#include "collection/text/expiry.h"
#include "collection/ttl.h"
#include "command/args.h"
#include "command/conversion.h"
#include "command/op_task.h"
#include "command/start.h"
#include "command/word_log.h"
#include "protocol/reply.h"
#include "util/random.h"

enum { ATTEMPTS = 32, PAUSES = 7 /* Pauses grow up to 2 to the power PAUSES, in milliseconds. */ };

/* The result of reading the source. A failure is in task.scratch. */
enum found { FOUND_FAILURE, FOUND_NOTHING, FOUND_IT };

struct move {
	struct task task;
	struct op op;        /* The operation in flight. */
	struct op target_op; /* The read of the target. */
	struct list_request target_list;
	struct set_request target_set;
	unsigned reads; /* Reads of the source and the target in flight. */
	enum found found;
	void (*both_read)(struct move *m);
	struct slice source, target;
	struct buf token; /* The element or member, as a token. */
	int64_t ttl;      /* Time to live of a target that is created. */
	struct list_request list;
	struct set_request set;
	const struct collection_rule *rule; /* The rule of the target. */
	int64_t from, to;                   /* The ends of an lmove: 0 or -1. */
	struct waiter pause;
	unsigned attempts;
	char keys[];
};

static struct move *move_of(struct op *op)
{
	return (struct move *)((char *)op - offsetof(struct move, op));
}

static struct slice moved_word(const struct move *m)
{
	struct slice token = slice_skip(buf_slice(&m->token), 1);

	return slice_of(token.p, token.n - 1);
}

/* Stores the word as the token of an addition. */
static void set_token(struct move *m, struct slice word)
{
	buf_consume(&m->token, buf_size(&m->token));
	BUF_ADD(&m->token, "+");
	buf_add_word(&m->token, word);
}

static struct move *new_move(struct host *host, const struct request *request, void *owner)
{
	struct slice source = request->key, target = request->args->target;
	struct move *m = task_new(host, request, owner, sizeof(*m) + source.n + target.n + 1);
	char *at = m->keys;

	m->source = task_keep(&at, source);
	*at++ = ' ';
	m->target = task_keep(&at, target);
	(void)task_keys(&m->task, slice_of(m->keys, (size_t)(at - m->keys)), 2);
	m->rule = rules_collection(host->env.rules, m->target);
	m->ttl = task_ttl(request, m->rule->ttl);
	m->token = BUF_EMPTY;
	m->from = request->args->first;
	m->to = request->args->last;
	m->attempts = 0;
	return m;
}

static void prepare_op(struct move *m, enum op_kind kind, struct slice key,
	void (*done)(struct op *, const struct outcome *))
{
	m->op = (struct op){ .kind = kind, .key = key, .done = done };
	task_owns(&m->task, &m->op);
	if (kind == OP_LIST)
		m->op.list = &m->list;
	if (kind == OP_READ)
		m->op.set = &m->set;
	if (kind == OP_APPEND) {
		m->op.log = buf_slice(&m->token);
		m->op.create = slice_equal(key, m->target);
		m->op.ttl = m->ttl;
	}
}

static void submit_op(struct move *m)
{
	lanes_submit(m->task.host->lanes, &m->op);
}

/* Frees what the task owns in addition to itself, and returns the task. */
static struct task *end_move(struct move *m)
{
	buf_free(&m->token);
	return &m->task;
}

/* --- the reads of both keys --- */

/* Ends the task and returns true if there is a failure. */
static bool fails(struct move *m)
{
	if (!task_has_failed(&m->task))
		return false;
	return task_fails(end_move(m));
}

static void one_read(struct move *m)
{
	if (--m->reads == 0)
		m->both_read(m);
}

/* If both reads fail, the reply is the failure of the source. */
static void source_read(struct move *m, enum found found, const struct outcome *outcome)
{
	struct buf *failure = &m->task.scratch;

	m->found = found;
	if (found == FOUND_FAILURE) {
		buf_consume(failure, buf_size(failure));
		outcome_add_error(failure, outcome);
	}
	one_read(m);
}

static void move_on_target_read(struct op *op, const struct outcome *outcome)
{
	struct move *m = (struct move *)((char *)op - offsetof(struct move, target_op));

	set_request_free(&m->target_set);
	if (outcome->status != OUTCOME_DONE && outcome->status != OUTCOME_MISSING)
		task_note_outcome(&m->task, outcome);
	one_read(m);
}

/*
 * Reads the source by `op`, and the size of the target, which is in its base. If both are the
 * same key, one read is enough.
 */
static void read_both(struct move *m, enum op_kind kind, void (*both_read)(struct move *m))
{
	bool same = slice_equal(m->source, m->target);

	m->both_read = both_read;
	m->reads = same ? 1 : 2;
	m->target_list = (struct list_request){ .verb = LIST_LENGTH };
	m->target_set = (struct set_request){ .verb = SET_COUNT };
	m->target_op = (struct op){ .kind = kind, .key = m->target, .done = move_on_target_read };
	if (kind == OP_LIST)
		m->target_op.list = &m->target_list;
	else
		m->target_op.set = &m->target_set;
	submit_op(m);
	if (same)
		return;
	task_owns(&m->task, &m->target_op);
	lanes_submit(m->task.host->lanes, &m->target_op);
}

/* --- lmove --- */

static void read_element(struct move *m);

static void reply_element(struct move *m, struct slice element)
{
	struct reply r = element.n ? reply_elements(CONTENT_ELEMENT, m->source, element)
				   : reply_word(WORD_END);
	/* The element may be a part of the token. */
	struct buf token = m->token;

	m->token = BUF_EMPTY;
	task_say(&m->task, &r);
	buf_free(&token);
}

static void move_on_pause_over(struct waiter *waiter, const struct result *r)
{
	(void)r;
	read_element((struct move *)((char *)waiter - offsetof(struct move, pause)));
}

/*
 * If many clients move from one list at once, only one of them removes the element, and all
 * others have pushed a copy that they must remove. Each retries after a random time to avoid
 * another conflict.
 */
static void retry_move(struct move *m)
{
	struct env *env = &m->task.host->env;

	if (++m->attempts >= ATTEMPTS) {
		task_say_error(end_move(m), "SERVER_ERROR busy");
	} else if (env->later) {
		unsigned power = m->attempts < PAUSES ? m->attempts : PAUSES;
		m->pause = (struct waiter){ .done = move_on_pause_over };
		env->later(env, &m->pause, (unsigned)(random_next(&env->random) % (1u << power)));
	} else {
		read_element(m);
	}
}

static void move_on_taken_back(struct op *op, const struct outcome *outcome)
{
	struct move *m = move_of(op);

	if (outcome->status == OUTCOME_CHANGED ||
		(outcome->status == OUTCOME_BUSY && ++m->attempts < ATTEMPTS)) {
		/* Others have pushed after it, or every attempt had a conflict. */
		m->list = (struct list_request){
			.verb = LIST_REMOVE, .start = m->to ? -1 : 1, .item = moved_word(m)
		};
		prepare_op(m, OP_LIST, m->target, move_on_taken_back);
		submit_op(m);
	} else if (outcome->status == OUTCOME_DONE || outcome->status == OUTCOME_MISSING) {
		retry_move(m);
	} else {
		(void)outcome_ends(outcome, end_move(m));
	}
}

/*
 * The copy stays unless it is known that the element is still in the source, or that another
 * client removes it.
 */
static void move_on_taken(struct op *op, const struct outcome *outcome)
{
	struct move *m = move_of(op);

	if (outcome->status == OUTCOME_DONE) {
		reply_element(m, moved_word(m));
	} else if (outcome->status == OUTCOME_CHANGED || outcome->status == OUTCOME_MISSING ||
		outcome->status == OUTCOME_BUSY) {
		m->list = (struct list_request){
			.verb = LIST_TAKE, .start = m->to, .item = moved_word(m)
		};
		prepare_op(m, OP_LIST, m->target, move_on_taken_back);
		submit_op(m);
	} else {
		(void)outcome_ends(outcome, end_move(m));
	}
}

static void move_on_pushed(struct op *op, const struct outcome *outcome)
{
	struct move *m = move_of(op);

	if (outcome->status != OUTCOME_DONE) {
		(void)outcome_ends(outcome, end_move(m));
		return;
	}
	m->list =
		(struct list_request){ .verb = LIST_TAKE, .start = m->from, .item = moved_word(m) };
	prepare_op(m, OP_LIST, m->source, move_on_taken);
	submit_op(m);
}

static void push(struct move *m)
{
	const char *error =
		encoding_takes_any(m->rule) ? NULL : encoding_check_member(m->rule, moved_word(m));

	if (error) {
		task_say_error(end_move(m), error);
		return;
	}
	prepare_op(m, OP_APPEND, m->target, move_on_pushed);
	m->op.type = COLLECTION_LIST;
	m->op.front = m->to == 0;
	submit_op(m);
}

/*
 * Returns OUTCOME_DONE if an element can be removed from a list with this base, else the
 * outcome to reply.
 */
static enum outcome_status is_movable(const struct move *m, const struct result *base)
{
	const struct env *env = &m->task.host->env;
	int64_t exptime;

	if (rules_collection(env->rules, m->source)->encoding != ENCODING_OPLOG)
		return OUTCOME_DONE;
	if (base->cas == 0)
		return OUTCOME_NO_CAS;
	return ttl_exptime(env, base->ttl, &exptime) ? OUTCOME_DONE : OUTCOME_BUSY;
}

static void move_on_both_lists(struct move *m)
{
	if (m->found == FOUND_NOTHING)
		reply_element(m, SLICE(""));
	else if (!fails(m))
		push(m);
}

static void move_on_element(struct op *op, const struct outcome *outcome)
{
	struct move *m = move_of(op);
	struct outcome taken = { .status = OUTCOME_DONE };

	if (outcome->status != OUTCOME_DONE && outcome->status != OUTCOME_MISSING) {
		source_read(m, FOUND_FAILURE, outcome);
		return;
	}
	if (outcome->status == OUTCOME_MISSING || outcome->log.n == 0) {
		source_read(m, FOUND_NOTHING, NULL);
		return;
	}
	taken.status = is_movable(m, outcome->result);
	set_token(m, outcome->log);
	source_read(m, taken.status == OUTCOME_DONE ? FOUND_IT : FOUND_FAILURE, &taken);
}

static void read_element(struct move *m)
{
	m->list = (struct list_request){ .verb = LIST_RANGE, .start = m->from, .stop = m->from };
	prepare_op(m, OP_LIST, m->source, move_on_element);
	read_both(m, OP_LIST, move_on_both_lists);
}

static void move_on_rotated(struct op *op, const struct outcome *outcome)
{
	struct move *m = move_of(op);

	if (outcome->status != OUTCOME_MISSING && outcome_ends(outcome, &m->task))
		return;
	reply_element(m, outcome->status == OUTCOME_DONE ? outcome->log : SLICE(""));
}

/* On a single list it is one operation. */
static void rotate_list(struct move *m)
{
	m->list = (struct list_request){ .verb = LIST_ROTATE, .start = m->from, .stop = m->to };
	prepare_op(m, OP_LIST, m->source, move_on_rotated);
	submit_op(m);
}

void move_element_start(struct host *host, const struct request *request, void *owner)
{
	struct move *m = new_move(host, request, owner);

	if (slice_equal(m->source, m->target))
		rotate_list(m);
	else
		read_element(m);
}

/* --- smove --- */

/*
 * If another client has removed the member or the whole set meanwhile, the move is complete,
 * too.
 */
static void move_on_removed(struct op *op, const struct outcome *outcome)
{
	struct task *task = end_move(move_of(op));

	if (outcome->status == OUTCOME_MISSING || !outcome_ends(outcome, task))
		task_say_done(task);
}

static void move_on_added(struct op *op, const struct outcome *outcome)
{
	struct move *m = move_of(op);
	struct slice word;

	if (outcome->status != OUTCOME_DONE) {
		(void)outcome_ends(outcome, end_move(m));
		return;
	}
	/* A removal has no date. */
	word = buf_slice(&m->token);
	word.n--;
	m->token.end -= word.n - expiry_member(word).n;
	m->token.data[m->token.end - 1] = ' ';
	*m->token.data = '-';
	prepare_op(m, OP_APPEND, m->source, move_on_removed);
	submit_op(m);
}

static void move_on_both_sets(struct move *m)
{
	if (m->found == FOUND_NOTHING) {
		task_say_word(end_move(m), WORD_NOT_FOUND);
	} else if (fails(m)) {
		/* Replied by fails(). */
	} else if (slice_equal(m->source, m->target)) {
		task_say_done(end_move(m));
	} else {
		m->token.end--;
		expiry_add(&m->token, word_log_rule_date(m->task.host, m->target, m->rule));
		BUF_ADD(&m->token, " ");
		prepare_op(m, OP_APPEND, m->target, move_on_added);
		submit_op(m);
	}
}

static void move_on_tested(struct op *op, const struct outcome *outcome)
{
	struct move *m = move_of(op);
	bool is_member = outcome->status == OUTCOME_DONE && *m->set.text.data == '1';
	bool failed = outcome->status != OUTCOME_DONE && outcome->status != OUTCOME_MISSING;

	buf_free(&m->set.text);
	source_read(m, failed ? FOUND_FAILURE : is_member ? FOUND_IT : FOUND_NOTHING, outcome);
}

void move_member_start(struct host *host, const struct request *request, void *owner)
{
	struct move *m = new_move(host, request, owner);

	set_token(m, request->args->words);
	m->set = (struct set_request){ .verb = SET_TEST, .members = moved_word(m) };
	prepare_op(m, OP_READ, m->source, move_on_tested);
	read_both(m, OP_READ, move_on_both_sets);
}

/* --- lmpop --- */

struct pops {
	struct task task;
	struct op op;
	struct list_request list;
	struct slice rest; /* The keys after that of `op`. */
	char keys[];
};

static void pop_next(struct pops *p);

static void move_on_popped(struct op *op, const struct outcome *outcome)
{
	struct pops *p = (struct pops *)((char *)op - offsetof(struct pops, op));

	if (outcome->status == OUTCOME_MISSING ||
		(outcome->status == OUTCOME_DONE && outcome->log.n == 0)) {
		pop_next(p);
	} else if (!outcome_ends(outcome, &p->task)) {
		const struct reply r = reply_elements(CONTENT_ELEMENTS, op->key, outcome->log);
		task_say_elements(&p->task, &r);
	}
}

static void pop_next(struct pops *p)
{
	struct slice key = slice_token(&p->rest);
	const struct collection_rule *rule = rules_collection(p->task.host->env.rules, key);

	/* Elements that are popped for a disconnected client would be lost. */
	if (key.n == 0 || task_is_abandoned(&p->task)) {
		task_say_word(&p->task, WORD_END);
	} else if (!args_allow_lists(rule)) {
		task_say_error(&p->task, args_no_list(rule));
	} else {
		p->op = (struct op){
			.kind = OP_LIST, .key = key, .list = &p->list, .done = move_on_popped
		};
		task_owns(&p->task, &p->op);
		lanes_submit(p->task.host->lanes, &p->op);
	}
}

void pop_keys_start(struct host *host, const struct request *request, void *owner)
{
	struct slice keys = slice_of(
		request->key.p, (size_t)(request->rest.p + request->rest.n - request->key.p));
	struct pops *p = task_new(host, request, owner, sizeof(*p) + keys.n);
	char *at = p->keys;

	p->list = (struct list_request){ .verb = request->flags ? LIST_POP_BACK : LIST_POP_FRONT,
		.count = request->number };
	p->rest = task_keys(&p->task, task_keep(&at, keys), request->keys);
	pop_next(p);
}
