/* The list commands. A push is an APPEND, all others are LIST operations, in the lane of the key. */
#include "collection/adopted/encodings/encodings.h"
#include "collection/lane/lanes.h"
#include "command/outcome.h"
#include "command/start.h"
#include "protocol/reply.h"
#include "util/num.h"

struct list_task {
	struct task task;
	struct op op;
	struct list_request request;
	char bytes[];
};

typedef void list_done(struct op *op, const struct outcome *outcome);

static const char *const bad_format = "CLIENT_ERROR bad command line format";

static struct list_task *task_of(struct op *op)
{
	return (struct list_task *)((char *)op - offsetof(struct list_task, op));
}

/* --- replies --- */

static void stored(struct op *op, const struct outcome *outcome)
{
	if (!outcome_ends(outcome, &task_of(op)->task))
		task_reply_line(&task_of(op)->task, "STORED");
}

static void counted(struct op *op, const struct outcome *outcome)
{
	outcome_tell_cas(outcome, &task_of(op)->task);
	if (!outcome_ends(outcome, &task_of(op)->task))
		task_reply_number(&task_of(op)->task, outcome->number);
}

/* VALUE with the items, and END. If there are no items, or no list, only END. */
static void listed(struct op *op, const struct outcome *outcome)
{
	struct list_task *list = task_of(op);
	struct buf *out;

	outcome_tell_cas(outcome, &list->task);
	if (outcome->status != OUTCOME_MISSING && outcome_ends(outcome, &list->task))
		return;
	out = task_reply(&list->task);
	if (outcome->status == OUTCOME_DONE && outcome->log.n) {
		reply_value_head(out, op->key, 0, outcome->log.n, NULL);
		reply_line(out, outcome->log);
	}
	reply_text(out, "END");
	task_done(&list->task);
}

/* --- pushes --- */

static const char *check_encoding(const struct collection_rule *rule)
{
	bool lists = rule->encoding == ENCODING_OPLOG || rule->encoding == ENCODING_CSV;

	return lists ? NULL : "CLIENT_ERROR the encoding of this key is for sets alone";
}

static const char *check_item(const struct collection_rule *rule, struct slice item)
{
	return item.n > MEMBER_MAX ? "CLIENT_ERROR item too long" : encoding_check_member(rule, item);
}

/* Counts the items and their bytes. Gives NULL, or the error line. */
static const char *check_items(const struct collection_rule *rule, struct slice rest, size_t *count, size_t *bytes)
{
	const char *error = NULL;
	struct slice item;

	for (*count = *bytes = 0; !error && (item = slice_token(&rest)).n; ++*count) {
		error = check_item(rule, item);
		*bytes += item.n;
	}
	return error || *count ? error : "CLIENT_ERROR no item given";
}

static char *write_token(char *at, struct slice item)
{
	*at++ = '+';
	memcpy(at, item.p, item.n);
	at += item.n;
	*at++ = ' ';
	return at;
}

/* Writes the log of a push. At the front of a list, the last item becomes the first. */
static struct slice write_log(char *start, size_t size, struct slice rest, bool front)
{
	char *at = front ? start + size : start;
	struct slice item;

	while ((item = slice_token(&rest)).n) {
		if (front)
			write_token(at -= item.n + 2, item);
		else
			at = write_token(at, item);
	}
	return slice_of(start, size);
}

static struct list_task *new_task(
	struct host *host, const struct request *request, void *owner, enum op_kind kind, size_t bytes)
{
	struct list_task *list = task_new(host, request, owner, sizeof(*list) + request->key.n + bytes);
	char *at = list->bytes;

	list->op = (struct op){ .kind = kind,
		.key = task_keys(&list->task, task_keep(&at, request->key), 1),
		.client = task_client(host, owner) };
	list->op.ttl = task_ttl(request, rules_collection(host->env.rules, list->op.key)->ttl);
	return list;
}

static void start_push(struct host *host, const struct request *request, void *owner, bool front, bool create)
{
	size_t count, bytes;
	const struct collection_rule *rule = rules_collection(host->env.rules, request->key);
	const char *error = check_encoding(rule);
	struct list_task *list;

	if (!error)
		error = check_items(rule, request->rest, &count, &bytes);
	if (error) {
		task_refuse(host, request, owner, error);
		return;
	}
	bytes += 2 * count;
	list = new_task(host, request, owner, OP_APPEND, bytes);
	list->op.log = write_log(list->bytes + request->key.n, bytes, request->rest, front);
	list->op.front = front;
	list->op.create = create;
	list->op.push = true;
	list->op.done = stored;
	lanes_submit(host->lanes, &list->op);
}

void rpush_start(struct host *host, const struct request *request, void *owner)
{
	start_push(host, request, owner, false, true);
}

void rpushx_start(struct host *host, const struct request *request, void *owner)
{
	start_push(host, request, owner, false, false);
}

void lpush_start(struct host *host, const struct request *request, void *owner)
{
	start_push(host, request, owner, true, true);
}

void lpushx_start(struct host *host, const struct request *request, void *owner)
{
	start_push(host, request, owner, true, false);
}

/* --- list operations --- */

/* <index>, or <index> <index> if `second` is not NULL. */
static const char *parse_indices(struct slice rest, int64_t *first, int64_t *second)
{
	struct slice a = slice_token(&rest), b = second ? slice_token(&rest) : a;

	if (a.n == 0 || b.n == 0 || slice_token(&rest).n)
		return bad_format;
	return num_parse_i64(a, first) && (!second || num_parse_i64(b, second)) ? NULL : "CLIENT_ERROR invalid index";
}

/* <item>, or <number> <item> if `number` is not NULL. */
static const char *parse_item(struct slice rest, int64_t *number, struct slice *item, const char *bad_number)
{
	struct slice word = number ? slice_token(&rest) : slice_of("0", 1);

	*item = slice_token(&rest);
	if (item->n == 0 || slice_token(&rest).n)
		return bad_format;
	if (number && !num_parse_i64(word, number))
		return bad_number;
	return NULL;
}

static const char *parse_count(struct slice rest, uint64_t *count)
{
	struct slice word = slice_token(&rest);

	*count = 1;
	if (slice_token(&rest).n)
		return bad_format;
	return word.n && !num_parse_u64(word, count) ? "CLIENT_ERROR invalid count" : NULL;
}

/* Starts an operation, or refuses it with `error`. Copies the item, which is a slice of the request. */
static void start_operation(struct host *host, const struct request *request, void *owner, const char *error,
	const struct list_request *asked, list_done *done)
{
	const struct collection_rule *rule = rules_collection(host->env.rules, request->key);
	struct list_task *list;
	char *at;

	if (check_encoding(rule))
		error = check_encoding(rule);
	else if (!error && asked->item.n)
		error = check_item(rule, asked->item);
	if (error) {
		task_refuse(host, request, owner, error);
		return;
	}
	list = new_task(host, request, owner, OP_LIST, asked->item.n);
	at = list->bytes + request->key.n;
	list->request = *asked;
	list->request.item = task_keep(&at, asked->item);
	list->op.list = &list->request;
	list->op.done = done;
	lanes_submit(host->lanes, &list->op);
}

void lrange_start(struct host *host, const struct request *request, void *owner)
{
	struct list_request asked = { .verb = LIST_RANGE };
	const char *error = parse_indices(request->rest, &asked.start, &asked.stop);

	start_operation(host, request, owner, error, &asked, listed);
}

void lindex_start(struct host *host, const struct request *request, void *owner)
{
	struct list_request asked = { .verb = LIST_RANGE };
	const char *error = parse_indices(request->rest, &asked.start, NULL);

	asked.stop = asked.start;
	start_operation(host, request, owner, error, &asked, listed);
}

void ltrim_start(struct host *host, const struct request *request, void *owner)
{
	struct list_request asked = { .verb = LIST_TRIM };
	const char *error = parse_indices(request->rest, &asked.start, &asked.stop);

	start_operation(host, request, owner, error, &asked, stored);
}

void llen_start(struct host *host, const struct request *request, void *owner)
{
	const struct list_request asked = { .verb = LIST_LENGTH };
	struct slice rest = request->rest;

	start_operation(host, request, owner, slice_token(&rest).n ? bad_format : NULL, &asked, counted);
}

void lpos_start(struct host *host, const struct request *request, void *owner)
{
	struct list_request asked = { .verb = LIST_POSITION };
	const char *error = parse_item(request->rest, NULL, &asked.item, NULL);

	start_operation(host, request, owner, error, &asked, counted);
}

void lrem_start(struct host *host, const struct request *request, void *owner)
{
	struct list_request asked = { .verb = LIST_REMOVE };
	const char *error = parse_item(request->rest, &asked.start, &asked.item, "CLIENT_ERROR invalid count");

	start_operation(host, request, owner, error, &asked, counted);
}

void lset_start(struct host *host, const struct request *request, void *owner)
{
	struct list_request asked = { .verb = LIST_SET };
	const char *error = parse_item(request->rest, &asked.start, &asked.item, "CLIENT_ERROR invalid index");

	start_operation(host, request, owner, error, &asked, stored);
}

void lpop_start(struct host *host, const struct request *request, void *owner)
{
	struct list_request asked = { .verb = LIST_POP_FRONT };
	const char *error = parse_count(request->rest, &asked.count);

	start_operation(host, request, owner, error, &asked, listed);
}

void rpop_start(struct host *host, const struct request *request, void *owner)
{
	struct list_request asked = { .verb = LIST_POP_BACK };
	const char *error = parse_count(request->rest, &asked.count);

	start_operation(host, request, owner, error, &asked, listed);
}
