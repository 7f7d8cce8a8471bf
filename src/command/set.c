/* The set commands on one key: each is an operation in the lane of its key. */
#include "command/set.h"

#include "collection/encoding.h"
#include "collection/lanes.h"
#include "collection/set/request.h"
#include "collection/text/fold.h"
#include "protocol/reply.h"
#include "util/num.h"
#include "util/random.h"

struct set_task {
	struct task task;
	struct op op;
	struct set_request request;
	char bytes[];
};

void set_reply_failure(struct buf *out, const struct outcome *outcome)
{
	switch (outcome->status) {
	case OUTCOME_CORRUPT:
		reply_text(out, "CLIENT_ERROR value is not a collection");
		break;
	case OUTCOME_NEWER:
		reply_text(out, "SERVER_ERROR stored by a newer version of setlistd");
		break;
	case OUTCOME_IS_SET:
		reply_text(out, "CLIENT_ERROR value is a set, not a list");
		break;
	case OUTCOME_TOO_LARGE:
		reply_text(out, "SERVER_ERROR object too large for cache");
		break;
	case OUTCOME_BUSY:
		reply_text(out, "SERVER_ERROR busy");
		break;
	default:
		reply_failure(out, outcome->result);
	}
}

static struct set_task *task_of(struct op *op)
{
	return (struct set_task *)((char *)op - offsetof(struct set_task, op));
}

/* Replies where there is nothing to read or to tell; true when it did. */
static bool ended(struct set_task *set, const struct outcome *outcome)
{
	if (outcome->status == OUTCOME_DONE)
		return false;
	if (outcome->status == OUTCOME_MISSING)
		reply_text(task_reply(&set->task), "NOT_FOUND");
	else
		set_reply_failure(task_reply(&set->task), outcome);
	task_done(&set->task);
	return true;
}

static void stored(struct op *op, const struct outcome *outcome)
{
	if (!ended(task_of(op), outcome))
		task_reply_line(&task_of(op)->task, "STORED");
}

static void removed(struct op *op, const struct outcome *outcome)
{
	if (!ended(task_of(op), outcome))
		task_reply_line(&task_of(op)->task, "DELETED");
}

static void counted(struct op *op, const struct outcome *outcome)
{
	if (!ended(task_of(op), outcome))
		task_reply_number(&task_of(op)->task, op->set->number);
}

static void tested(struct op *op, const struct outcome *outcome)
{
	struct set_task *set = task_of(op);
	struct buf digits = op->set->text;

	if (!ended(set, outcome)) {
		reply_line(task_reply(&set->task), buf_slice(&digits));
		task_done(&set->task);
	}
	buf_free(&digits);
}

static void described(struct op *op, const struct outcome *outcome)
{
	struct set_task *set = task_of(op);
	const struct set_info *info = &op->set->info;
	struct buf *out;

	if (ended(set, outcome))
		return;
	out = task_reply(&set->task);
	reply_stat_text(out, "encoding", encoding_name(rules_collection(set->task.host->rules, op->key)->encoding));
	reply_stat_text(out, "server", outcome->result->server);
	reply_stat(out, "members", info->members);
	reply_stat(out, "bytes", info->base_bytes + info->table_bytes);
	reply_stat(out, "base_bytes", info->base_bytes);
	reply_stat(out, "table_bytes", info->table_bytes);
	reply_stat(out, "tokens", info->tokens);
	buf_printf(out, "STAT waste %.2f\r\n", info->waste);
	reply_stat(out, "runs", info->runs);
	reply_stat(out, "tables", info->tables);
	reply_stat(out, "entries", info->entries);
	reply_stat(out, "removals", info->removals);
	if (outcome->result->ttl == TTL_UNKNOWN)
		reply_stat_text(out, "ttl", "unknown");
	else
		buf_printf(out, "STAT ttl %lld\r\n", (long long)outcome->result->ttl);
	reply_text(out, "END");
	task_done(&set->task);
}

/* VALUE with these members, each ended by a space, and END; without members there is only END. */
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
	set_reply_failure(task_reply(&set->task), outcome);
	task_done(&set->task);
}

static void listed(struct op *op, const struct outcome *outcome)
{
	struct set_task *set = task_of(op);
	struct buf members = op->set->text;

	if (outcome->status == OUTCOME_DONE || outcome->status == OUTCOME_MISSING)
		reply_members(set, buf_slice(&members));
	else
		failed(set, outcome);
	buf_free(&members);
}

/* What was popped comes as removals. */
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
	/* Asked for again behind a merge, it may meet what was deleted since. */
	struct outcome gone = { .status = OUTCOME_BUSY };

	if (op->delta > 1 && outcome->status == OUTCOME_MISSING)
		outcome = &gone;
	if (!ended(task_of(op), outcome))
		task_reply_line(&task_of(op)->task, "OK");
}

/* What is wrong with the members, or NULL; how many there are. */
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

/* One number, or nothing. */
static const char *check_count(struct slice rest)
{
	struct slice word = slice_token(&rest);
	uint64_t n;

	if (slice_token(&rest).n)
		return "CLIENT_ERROR bad command line format";
	return word.n && !num_parse_u64(word, &n) ? "CLIENT_ERROR invalid count" : NULL;
}

static const char *check_number(struct slice word)
{
	uint64_t n;

	if (word.n == 0)
		return "CLIENT_ERROR bad command line format";
	return num_parse_u64(word, &n) ? NULL : "CLIENT_ERROR invalid count";
}

/* <count> [<after>] */
static const char *check_scan(struct slice rest)
{
	const char *error = check_number(slice_token(&rest));

	if (slice_token(&rest).n > MEMBER_MAX)
		return "CLIENT_ERROR member too long";
	return slice_token(&rest).n ? "CLIENT_ERROR bad command line format" : error;
}

/* <from> <to>, and <count> */
static const char *check_range(struct slice rest, bool count)
{
	struct slice from = slice_token(&rest), to = slice_token(&rest);
	const char *error;

	if (from.n == 0 || to.n == 0)
		return "CLIENT_ERROR bad command line format";
	if (from.n > MEMBER_MAX || to.n > MEMBER_MAX)
		return "CLIENT_ERROR member too long";
	error = count ? check_number(slice_token(&rest)) : NULL;
	return slice_token(&rest).n ? "CLIENT_ERROR bad command line format" : error;
}

/* What is wrong with the arguments of a command, or NULL. */
static const char *check(const struct host *host, const struct request *request, size_t *count)
{
	const struct collection_rule *rule = rules_collection(host->rules, request->key);
	const char *error = check_members(rule, request->rest, count);

	switch (request->command->id) {
	case COMMAND_SCARD:
	case COMMAND_SCOMPACT:
	case COMMAND_SINFO:
		return *count ? "CLIENT_ERROR bad command line format" : NULL;
	case COMMAND_SISMEMBER:
		if (!error && *count > 1)
			return "CLIENT_ERROR bad command line format";
		break;
	case COMMAND_SSET:
		return error;
	case COMMAND_SPOP:
	case COMMAND_SRANDMEMBER:
		return check_count(request->rest);
	case COMMAND_SSCAN:
		return check_scan(request->rest);
	case COMMAND_SCOUNT:
	case COMMAND_SRANGE:
		return check_range(request->rest, request->command->id == COMMAND_SRANGE);
	default:
		break;
	}
	return !error && *count == 0 ? "CLIENT_ERROR no member given" : error;
}

static struct set_task *new_task(
	struct host *host, const struct request *request, void *owner, enum op_kind kind, size_t bytes)
{
	struct set_task *set = task_new(host, request, owner, sizeof(*set) + request->key.n + bytes);
	char *at = set->bytes;

	set->op = (struct op){ .kind = kind, .key = task_keep(&at, request->key), .client = task_client(host, owner) };
	set->op.ttl = rules_collection(host->rules, set->op.key)->ttl;
	return set;
}

/* Behind the key. */
static char *bytes_of(struct set_task *set)
{
	return set->bytes + set->op.key.n;
}

/* Writes a token for each member: a log of the same word on all of them. */
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

static void start_append(struct host *host, const struct request *request, void *owner, size_t count)
{
	bool removes = request->command->id == COMMAND_SREM;
	struct set_task *set = new_task(host, request, owner, OP_APPEND, request->rest.n + 2 * count);

	set->op.log = write_log(bytes_of(set), request->rest, removes ? '-' : '+');
	set->op.create = request->command->id == COMMAND_SADD;
	set->op.done = removes ? removed : stored;
	lanes_submit(host->lanes, &set->op);
}

static void start_replace(struct host *host, const struct request *request, void *owner)
{
	struct set_task *set = new_task(host, request, owner, OP_REPLACE, 0);
	struct fold fold = { .seed = host->seed };
	struct slice rest = request->rest, member;

	while ((member = slice_token(&rest)).n)
		fold_add(&fold, member);
	fold_encode(&fold, &set->task.scratch);
	fold_free(&fold);
	set->op.log = buf_slice(&set->task.scratch);
	set->op.done = stored;
	lanes_submit(host->lanes, &set->op);
}

static void start_read(struct host *host, const struct request *request, void *owner, enum set_verb verb,
	void (*done)(struct op *op, const struct outcome *outcome))
{
	struct set_task *set = new_task(host, request, owner, OP_READ, request->rest.n);
	char *at = bytes_of(set);
	struct slice rest = task_keep(&at, request->rest);

	set->op.done = done;
	set->op.set = &set->request;
	set->request = (struct set_request){ .verb = verb };
	if (verb == SET_TEST) {
		set->request.members = rest;
	} else if (verb == SET_SAMPLE) {
		set->request.count = 1;
		(void)num_parse_u64(slice_token(&rest), &set->request.count);
		set->request.random = random_next(&host->random);
	} else if (request->command->id == COMMAND_SSCAN) {
		(void)num_parse_u64(slice_token(&rest), &set->request.count);
		set->request.range = (struct set_range){ .from = slice_token(&rest), .after = true };
	} else if (verb == SET_RANGE || verb == SET_COUNT) {
		set->request.range.from = slice_token(&rest);
		set->request.range.to = slice_token(&rest);
		set->request.range.has_to = set->request.range.to.n > 0;
		(void)num_parse_u64(slice_token(&rest), &set->request.count);
	}
	lanes_submit(host->lanes, &set->op);
}

/* A command whose operation may carry a count, 1 where none is given. */
static void start_op(struct host *host, const struct request *request, void *owner, enum op_kind kind,
	void (*done)(struct op *op, const struct outcome *outcome))
{
	struct set_task *set = new_task(host, request, owner, kind, 0);
	struct slice rest = request->rest;

	set->op.delta = 1;
	(void)num_parse_u64(slice_token(&rest), &set->op.delta);
	set->op.create = kind == OP_COMPACT;
	set->op.done = done;
	lanes_submit(host->lanes, &set->op);
}

void set_start(struct host *host, const struct request *request, void *owner)
{
	size_t count;
	const char *error = check(host, request, &count);

	if (error) {
		task_refuse(host, request, owner, error);
		return;
	}
	switch (request->command->id) {
	case COMMAND_SSET:
		start_replace(host, request, owner);
		break;
	case COMMAND_SCARD:
		start_read(host, request, owner, SET_COUNT, counted);
		break;
	case COMMAND_SISMEMBER:
	case COMMAND_SMISMEMBER:
		start_read(host, request, owner, SET_TEST, tested);
		break;
	case COMMAND_SINFO:
		start_read(host, request, owner, SET_INFO, described);
		break;
	case COMMAND_SRANDMEMBER:
		start_read(host, request, owner, SET_SAMPLE, listed);
		break;
	case COMMAND_SCOUNT:
		start_read(host, request, owner, SET_COUNT, counted);
		break;
	case COMMAND_SRANGE:
	case COMMAND_SSCAN:
		start_read(host, request, owner, SET_RANGE, listed);
		break;
	case COMMAND_SPOP:
		start_op(host, request, owner, OP_POP, popped);
		break;
	case COMMAND_SCOMPACT:
		start_op(host, request, owner, OP_COMPACT, compacted);
		break;
	default:
		start_append(host, request, owner, count);
	}
}
