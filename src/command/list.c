/* The list commands: pushes are blind additions, everything else is a list operation in the lane of its key. */
#include "collection/encoding.h"
#include "collection/lanes.h"
#include "command/set.h"
#include "protocol/reply.h"
#include "util/num.h"

struct list_task {
	struct task task;
	struct op op;
	struct list_request request;
	char bytes[];
};

static struct list_task *task_of(struct op *op)
{
	return (struct list_task *)((char *)op - offsetof(struct list_task, op));
}

/* --- replies --- */

/* Replies to what was not done; true when it did. */
static bool ended(struct list_task *list, const struct outcome *outcome)
{
	if (outcome->status == OUTCOME_DONE)
		return false;
	if (outcome->status == OUTCOME_MISSING)
		reply_text(task_reply(&list->task), "NOT_FOUND");
	else if (outcome->status == OUTCOME_RANGE)
		reply_text(task_reply(&list->task), "CLIENT_ERROR index out of range");
	else
		set_reply_failure(task_reply(&list->task), outcome);
	task_done(&list->task);
	return true;
}

static void stored(struct op *op, const struct outcome *outcome)
{
	if (!ended(task_of(op), outcome))
		task_reply_line(&task_of(op)->task, "STORED");
}

static void counted(struct op *op, const struct outcome *outcome)
{
	if (!ended(task_of(op), outcome))
		task_reply_number(&task_of(op)->task, outcome->number);
}

/* VALUE with the items, and END; without items, or a list, there is only END. */
static void listed(struct op *op, const struct outcome *outcome)
{
	struct list_task *list = task_of(op);
	struct buf *out;

	if (outcome->status != OUTCOME_MISSING && ended(list, outcome))
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

static const char *check_item(const struct collection_rule *rule, struct slice item)
{
	return item.n > MEMBER_MAX ? "CLIENT_ERROR item too long" : encoding_check_member(rule, item);
}

/* How many items, and their bytes; NULL, or what is wrong with them. */
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

/* At the head the item that is named last comes first. */
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

	list->op = (struct op){ .kind = kind, .key = task_keep(&at, request->key), .client = task_client(host, owner) };
	list->op.ttl = rules_collection(host->rules, list->op.key)->ttl;
	return list;
}

static void start_push(struct host *host, const struct request *request, void *owner, bool front, bool create)
{
	size_t count, bytes;
	const char *error = check_items(rules_collection(host->rules, request->key), request->rest, &count, &bytes);
	struct list_task *list;

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

/* --- all else --- */

static const char *const bad_format = "CLIENT_ERROR bad command line format";

/* One index, or two. */
static const char *parse_indices(struct slice rest, int64_t *first, int64_t *second)
{
	struct slice a = slice_token(&rest), b = second ? slice_token(&rest) : a;

	if (a.n == 0 || b.n == 0 || slice_token(&rest).n)
		return bad_format;
	return num_parse_i64(a, first) && (!second || num_parse_i64(b, second)) ? NULL : "CLIENT_ERROR invalid index";
}

/* With `number` a number first, then one item. */
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

/* NULL, or what is wrong; the item is still that of the line. */
static const char *parse(const struct request *request, struct list_request *out)
{
	struct slice rest = request->rest;

	switch (request->command->id) {
	case COMMAND_LRANGE:
		out->verb = LIST_RANGE;
		return parse_indices(rest, &out->start, &out->stop);
	case COMMAND_LTRIM:
		out->verb = LIST_TRIM;
		return parse_indices(rest, &out->start, &out->stop);
	case COMMAND_LINDEX: {
		const char *error = parse_indices(rest, &out->start, NULL);
		out->verb = LIST_RANGE;
		out->stop = out->start;
		return error;
	}
	case COMMAND_LPOS:
		out->verb = LIST_POSITION;
		return parse_item(rest, NULL, &out->item, NULL);
	case COMMAND_LREM:
		out->verb = LIST_REMOVE;
		return parse_item(rest, &out->start, &out->item, "CLIENT_ERROR invalid count");
	case COMMAND_LSET:
		out->verb = LIST_SET;
		return parse_item(rest, &out->start, &out->item, "CLIENT_ERROR invalid index");
	case COMMAND_LPOP:
		out->verb = LIST_POP_FRONT;
		return parse_count(rest, &out->count);
	case COMMAND_RPOP:
		out->verb = LIST_POP_BACK;
		return parse_count(rest, &out->count);
	default:
		out->verb = LIST_LENGTH;
		return slice_token(&rest).n ? bad_format : NULL;
	}
}

static void start_operation(struct host *host, const struct request *request, void *owner)
{
	struct list_request parsed = { 0 };
	const char *error = parse(request, &parsed);
	struct list_task *list;
	char *at;

	if (!error && parsed.item.n)
		error = check_item(rules_collection(host->rules, request->key), parsed.item);
	if (error) {
		task_refuse(host, request, owner, error);
		return;
	}
	list = new_task(host, request, owner, OP_LIST, parsed.item.n);
	at = list->bytes + request->key.n;
	list->request = parsed;
	list->request.item = task_keep(&at, parsed.item);
	list->op.list = &list->request;
	switch (parsed.verb) {
	case LIST_RANGE:
	case LIST_POP_FRONT:
	case LIST_POP_BACK:
		list->op.done = listed;
		break;
	case LIST_SET:
	case LIST_TRIM:
		list->op.done = stored;
		break;
	default:
		list->op.done = counted;
	}
	lanes_submit(host->lanes, &list->op);
}

void list_command_start(struct host *host, const struct request *request, void *owner)
{
	enum encoding_id encoding = rules_collection(host->rules, request->key)->encoding;

	if (encoding != ENCODING_OPLOG && encoding != ENCODING_CSV) {
		task_refuse(host, request, owner, "CLIENT_ERROR the encoding of this key is for sets alone");
		return;
	}
	switch (request->command->id) {
	case COMMAND_RPUSH:
		start_push(host, request, owner, false, true);
		break;
	case COMMAND_RPUSHX:
		start_push(host, request, owner, false, false);
		break;
	case COMMAND_LPUSH:
		start_push(host, request, owner, true, true);
		break;
	case COMMAND_LPUSHX:
		start_push(host, request, owner, true, false);
		break;
	default:
		start_operation(host, request, owner);
	}
}
