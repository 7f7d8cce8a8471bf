/* The set commands with one key. Each is an operation in the lane of the key. */
#include "collection/adopted/encodings/encodings.h"
#include "collection/lane/lanes.h"
#include "collection/set_request.h"
#include "collection/text/fold.h"
#include "command/outcome.h"
#include "command/start.h"
#include "protocol/reply.h"
#include "util/num.h"
#include "util/random.h"

struct set_task {
	struct task task;
	struct op op;
	struct set_request request;
	char bytes[];
};

static const char *const bad_format = "CLIENT_ERROR bad command line format";

static struct set_task *task_of(struct op *op)
{
	return (struct set_task *)((char *)op - offsetof(struct set_task, op));
}

/* --- replies --- */

static void stored(struct op *op, const struct outcome *outcome)
{
	if (!outcome_ends(outcome, &task_of(op)->task))
		task_reply_line(&task_of(op)->task, "STORED");
}

/* Only a conditional sset finds the set changed. */
static void replaced(struct op *op, const struct outcome *outcome)
{
	if (outcome->status == OUTCOME_CHANGED)
		task_reply_line(&task_of(op)->task, "EXISTS");
	else
		stored(op, outcome);
}

static void removed(struct op *op, const struct outcome *outcome)
{
	if (!outcome_ends(outcome, &task_of(op)->task))
		task_reply_line(&task_of(op)->task, "DELETED");
}

static void counted(struct op *op, const struct outcome *outcome)
{
	outcome_tell_cas(outcome, &task_of(op)->task);
	if (!outcome_ends(outcome, &task_of(op)->task))
		task_reply_number(&task_of(op)->task, op->set->number);
}

static void tested(struct op *op, const struct outcome *outcome)
{
	struct set_task *set = task_of(op);
	struct buf digits = op->set->text;

	outcome_tell_cas(outcome, &set->task);
	if (!outcome_ends(outcome, &set->task)) {
		reply_line(task_reply(&set->task), buf_slice(&digits));
		task_done(&set->task);
	}
	buf_free(&digits);
}

/* VALUE with the members, and END; or END alone if there are none. In `members` a space follows each one. */
static void reply_members(struct set_task *set, struct slice members)
{
	struct buf *out = task_reply(&set->task);

	if (members.n) {
		reply_value_head(out, set->op.key, 0, members.n - 1, NULL);
		reply_line(out, slice_of(members.p, members.n - 1));
	}
	reply_text(out, "END");
	task_done(&set->task);
}

static void failed(struct set_task *set, const struct outcome *outcome)
{
	outcome_reply_failure(task_reply(&set->task), outcome);
	task_done(&set->task);
}

static void listed(struct op *op, const struct outcome *outcome)
{
	struct set_task *set = task_of(op);
	struct buf members = op->set->text;

	outcome_tell_cas(outcome, &set->task);
	/* A set that went while it was listed leaves a part of the text behind. */
	if (outcome->status == OUTCOME_MISSING)
		buf_consume(&members, buf_size(&members));
	if (outcome->status == OUTCOME_DONE || outcome->status == OUTCOME_MISSING)
		reply_members(set, buf_slice(&members));
	else
		failed(set, outcome);
	buf_free(&members);
}

/* The outcome's log has a removal of each popped member. */
static void popped(struct op *op, const struct outcome *outcome)
{
	struct set_task *set = task_of(op);
	struct slice rest = outcome->log, removal;
	struct buf *members = &set->task.scratch;

	while (outcome->status == OUTCOME_DONE && (removal = slice_token(&rest)).n) {
		buf_add_slice(members, slice_skip(removal, 1));
		BUF_ADD(members, " ");
	}
	if (outcome->status == OUTCOME_DONE || outcome->status == OUTCOME_MISSING)
		reply_members(set, buf_slice(members));
	else
		failed(set, outcome);
}

static void compacted(struct op *op, const struct outcome *outcome)
{
	/* If it was repeated, a later request of the same client may have deleted the set since. */
	struct outcome gone = { .status = OUTCOME_BUSY };

	if (op->rounds && outcome->status == OUTCOME_MISSING)
		outcome = &gone;
	if (!outcome_ends(outcome, &task_of(op)->task))
		task_reply_line(&task_of(op)->task, "OK");
}

/* --- arguments --- */

/* Counts the members. Gives NULL, or the error line. */
static const char *check_members(const struct collection_rule *rule, struct slice rest, size_t *count)
{
	bool any = encoding_takes_any(rule);
	const char *error = NULL;
	struct slice member;

	for (*count = 0; !error && (member = slice_token(&rest)).n; ++*count) {
		if (member.n > MEMBER_MAX)
			error = "CLIENT_ERROR member too long";
		else if (!any)
			error = encoding_check_member(rule, member);
	}
	return error;
}

/* The same, for one member or more. */
static const char *check_some_members(const struct host *host, const struct request *request, size_t *count)
{
	const char *error = check_members(rules_collection(host->env.rules, request->key), request->rest, count);

	return error || *count ? error : "CLIENT_ERROR no member given";
}

static const char *check_nothing(const struct request *request)
{
	struct slice rest = request->rest;

	return slice_token(&rest).n ? bad_format : NULL;
}

static const char *parse_number(struct slice word, uint64_t *number)
{
	if (word.n == 0)
		return bad_format;
	return num_parse_u64(word, number) ? NULL : "CLIENT_ERROR invalid count";
}

/* [<count>] */
static const char *parse_count(const struct request *request, uint64_t *count)
{
	struct slice rest = request->rest, word = slice_token(&rest);

	*count = 1;
	if (slice_token(&rest).n)
		return bad_format;
	return word.n ? parse_number(word, count) : NULL;
}

/* <from> <to>, which it takes off `rest`. */
static const char *parse_range(struct slice *rest, struct set_range *range)
{
	range->from = slice_token(rest);
	range->to = slice_token(rest);
	range->has_to = true;
	if (range->from.n == 0 || range->to.n == 0)
		return bad_format;
	return range->from.n > MEMBER_MAX || range->to.n > MEMBER_MAX ? "CLIENT_ERROR member too long" : NULL;
}

/* --- starting --- */

typedef void set_done(struct op *op, const struct outcome *outcome);

static struct set_task *new_task(
	struct host *host, const struct request *request, void *owner, enum op_kind kind, set_done *done, size_t bytes)
{
	struct set_task *set = task_new(host, request, owner, sizeof(*set) + request->key.n + bytes);
	char *at = set->bytes;

	set->op = (struct op){ .kind = kind,
		.key = task_keys(&set->task, task_keep(&at, request->key), 1),
		.client = task_client(host, owner),
		.done = done };
	set->op.ttl = task_ttl(request, rules_collection(host->env.rules, set->op.key)->ttl);
	return set;
}

/* The bytes of the task behind the key. */
static char *bytes_of(struct set_task *set)
{
	return set->bytes + set->op.key.n;
}

/* Writes a log with the same sign for all members. */
static struct slice write_log(char *at, struct slice rest, char sign)
{
	char *start = at;
	struct slice member;

	while ((member = slice_token(&rest)).n) {
		*at++ = sign;
		memcpy(at, member.p, member.n);
		at += member.n;
		*at++ = ' ';
	}
	return slice_of(start, (size_t)(at - start));
}

static void start_append(
	struct host *host, const struct request *request, void *owner, char sign, bool create, set_done *done)
{
	size_t count;
	const char *error = check_some_members(host, request, &count);
	struct set_task *set;

	if (error) {
		task_refuse(host, request, owner, error);
		return;
	}
	set = new_task(host, request, owner, OP_APPEND, done, request->rest.n + 2 * count);
	set->op.log = write_log(bytes_of(set), request->rest, sign);
	set->op.create = create;
	lanes_submit(host->lanes, &set->op);
}

void sadd_start(struct host *host, const struct request *request, void *owner)
{
	start_append(host, request, owner, '+', true, stored);
}

void saddx_start(struct host *host, const struct request *request, void *owner)
{
	start_append(host, request, owner, '+', false, stored);
}

void srem_start(struct host *host, const struct request *request, void *owner)
{
	start_append(host, request, owner, '-', false, removed);
}

void sset_start(struct host *host, const struct request *request, void *owner)
{
	struct fold fold = { .seed = host->env.seed };
	struct slice rest = request->rest, member;
	struct set_task *set;
	size_t count;
	const char *error = check_members(rules_collection(host->env.rules, request->key), rest, &count);

	if (error) {
		task_refuse(host, request, owner, error);
		return;
	}
	set = new_task(host, request, owner, OP_REPLACE, replaced, 0);
	set->op.mode = request->has_number ? REPLACE_SAME : REPLACE_ANY;
	set->op.cas = request->number;
	while ((member = slice_token(&rest)).n)
		fold_add(&fold, member);
	fold_encode(&fold, &set->task.scratch);
	fold_free(&fold);
	set->op.log = buf_slice(&set->task.scratch);
	lanes_submit(host->lanes, &set->op);
}

/* Starts a read, or refuses it with `error`. Copies the slices, which are of the request. */
static void start_read(struct host *host, const struct request *request, void *owner, const char *error,
	const struct set_request *asked, set_done *done)
{
	struct set_task *set;
	char *at;

	if (error) {
		task_refuse(host, request, owner, error);
		return;
	}
	set = new_task(host, request, owner, OP_READ, done, request->rest.n);
	at = bytes_of(set);
	set->request = *asked;
	if (asked->members.n)
		set->request.members = task_keep(&at, asked->members);
	set->request.range.from = task_keep(&at, asked->range.from);
	set->request.range.to = task_keep(&at, asked->range.to);
	set->op.set = &set->request;
	lanes_submit(host->lanes, &set->op);
}

void smismember_start(struct host *host, const struct request *request, void *owner)
{
	const struct set_request asked = { .verb = SET_TEST, .members = request->rest };
	size_t count;
	const char *error = check_some_members(host, request, &count);

	start_read(host, request, owner, error, &asked, tested);
}

void sismember_start(struct host *host, const struct request *request, void *owner)
{
	const struct set_request asked = { .verb = SET_TEST, .members = request->rest };
	size_t count;
	const char *error = check_some_members(host, request, &count);

	start_read(host, request, owner, !error && count > 1 ? bad_format : error, &asked, tested);
}

void scard_start(struct host *host, const struct request *request, void *owner)
{
	const struct set_request asked = { .verb = SET_COUNT };

	start_read(host, request, owner, check_nothing(request), &asked, counted);
}

void scount_start(struct host *host, const struct request *request, void *owner)
{
	struct set_request asked = { .verb = SET_COUNT };
	struct slice rest = request->rest;
	const char *error = parse_range(&rest, &asked.range);

	if (!error && slice_token(&rest).n)
		error = bad_format;
	start_read(host, request, owner, error, &asked, counted);
}

void srange_start(struct host *host, const struct request *request, void *owner)
{
	struct set_request asked = { .verb = SET_RANGE };
	struct slice rest = request->rest;
	const char *error = parse_range(&rest, &asked.range);

	if (!error)
		error = parse_number(slice_token(&rest), &asked.count);
	if (!error && slice_token(&rest).n)
		error = bad_format;
	start_read(host, request, owner, error, &asked, listed);
}

void sscan_start(struct host *host, const struct request *request, void *owner)
{
	struct set_request asked = { .verb = SET_RANGE, .range.after = true };
	struct slice rest = request->rest;
	const char *error = parse_number(slice_token(&rest), &asked.count);

	asked.range.from = slice_token(&rest);
	if (asked.range.from.n > MEMBER_MAX)
		error = "CLIENT_ERROR member too long";
	else if (slice_token(&rest).n)
		error = bad_format;
	start_read(host, request, owner, error, &asked, listed);
}

void srandmember_start(struct host *host, const struct request *request, void *owner)
{
	struct set_request asked = { .verb = SET_SAMPLE };
	const char *error = parse_count(request, &asked.count);

	asked.random = random_next(&host->env.random);
	start_read(host, request, owner, error, &asked, listed);
}

void spop_start(struct host *host, const struct request *request, void *owner)
{
	uint64_t count;
	const char *error = parse_count(request, &count);
	struct set_task *set;

	if (error) {
		task_refuse(host, request, owner, error);
		return;
	}
	set = new_task(host, request, owner, OP_POP, popped, 0);
	set->op.count = count;
	lanes_submit(host->lanes, &set->op);
}

void scompact_start(struct host *host, const struct request *request, void *owner)
{
	const char *error = check_nothing(request);
	struct set_task *set;

	if (error) {
		task_refuse(host, request, owner, error);
		return;
	}
	set = new_task(host, request, owner, OP_COMPACT, compacted, 0);
	set->op.all = true;
	lanes_submit(host->lanes, &set->op);
}
