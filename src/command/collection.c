/*
 * The commands on sets and lists. Commands with one key are an operation in its lane; smembers
 * reads many sets. sinfo and scompact accept both kinds.
 */
#include "collection/adopted/encodings/encodings.h"
#include "collection/lane/lanes.h"
#include "collection/list_request.h"
#include "collection/room.h"
#include "collection/text/fold.h"
#include "collection/text/table.h"
#include "command/args.h"
#include "command/conversion.h"
#include "command/fan.h"
#include "command/op_task.h"
#include "command/start.h"
#include "command/word_log.h"
#include "protocol/commands.h"
#include "protocol/reply.h"
#include "util/glob.h"
#include "util/random.h"

/* --- replies to an operation that is done --- */

static void collection_on_count(struct op *op, const struct outcome *outcome)
{
	struct task *task = &op_task_of(op)->task;
	uint64_t n = op->kind == OP_READ ? op->set->number : outcome->number;
	struct reply r;

	if (outcome_ends(outcome, task))
		return;
	if (task_is_plain(task)) {
		task_say_number(task, n);
		return;
	}
	r = reply_number(n);
	outcome_describe(outcome, task, &r);
	task_say(task, &r);
}

/*
 * Returns the members in the log of a POP or TAKE, which has a removal of each, with a space after
 * each member.
 */
static struct slice popped_words(struct slice removals, struct buf *out)
{
	struct slice removal;

	while ((removal = slice_token(&removals)).n)
		buf_add_word(out, slice_skip(removal, 1));
	return buf_slice(out);
}

/* Returns the members or elements that were read or removed, separated by spaces. */
static struct slice values_of(
	const struct op *op, const struct outcome *outcome, struct buf *scratch)
{
	struct slice values;

	if (op->kind == OP_LIST)
		return outcome->log;
	values = op->kind == OP_POP || outcome->log.n ? popped_words(outcome->log, scratch)
						      : buf_slice(&op->set->text);
	values.n -= values.n > 0;
	return values;
}

static void reply_values(struct op *op, const struct outcome *outcome, enum reply_content content)
{
	struct task *task = &op_task_of(op)->task;
	/* The operation is freed with its task. */
	struct set_request read =
		op->kind == OP_READ || op->kind == OP_TAKE ? *op->set : (struct set_request){ 0 };
	struct reply r = reply_elements(content, op->key, SLICE(""));

	if (outcome->status == OUTCOME_DONE && buf_size(&read.text) >= TASK_SHARES) {
		read.text.end--;
		read.shared = shared_create(&read.text);
	}
	/* A set that was lost while it was listed leaves a partial text. */
	if (outcome->status == OUTCOME_DONE) {
		r.shared = read.shared;
		if (!r.shared)
			r.bytes = values_of(op, outcome, &task->scratch);
		outcome_describe(outcome, task, &r);
	}
	if (r.shared || r.bytes.n)
		task_say_elements(task, &r);
	else if (outcome->status == OUTCOME_MISSING || outcome->status == OUTCOME_DONE)
		task_say_word(task, WORD_END);
	else
		outcome_end(outcome, task);
	set_request_free(&read);
}

static void collection_on_list(struct op *op, const struct outcome *outcome)
{
	reply_values(op, outcome, CONTENT_ELEMENTS);
}

static void collection_on_element(struct op *op, const struct outcome *outcome)
{
	reply_values(op, outcome, CONTENT_ELEMENT);
}

static void collection_on_positions(struct op *op, const struct outcome *outcome)
{
	reply_values(op, outcome, CONTENT_BYTES);
}

/* Returns how a command replies that returns one element unless its line has a count. */
static op_done *values_done(const struct request *request)
{
	return request->args->counted ? collection_on_list : collection_on_element;
}

/* Replies a digit for each member. */
static void collection_on_test(struct op *op, const struct outcome *outcome)
{
	struct task *task = &op_task_of(op)->task;
	struct buf digits = op->set->text;
	struct reply r = reply_line(buf_slice(&digits));

	if (!outcome_ends(outcome, task)) {
		outcome_describe(outcome, task, &r);
		task_say(task, &r);
	}
	buf_free(&digits);
}

/* --- additions and removals --- */

/* Submits an operation with a log of one token. */
static void submit_one(struct op_task *t, char sign, struct slice word)
{
	t->more[0] = sign;
	*slice_write(t->more + 1, word) = ' ';
	t->op.log = slice_of(t->more, word.n + 2);
	op_task_submit(t);
}

void append_words_start(struct host *host, const struct request *request, void *owner)
{
	static const struct append {
		char sign;
		bool create, front;
		enum collection_type type;
	} appends[] = {
		[COMMAND_SADD] = { .sign = '+', .create = true },
		[COMMAND_SADDEX] = { .sign = '+', .create = true },
		[COMMAND_SADDX] = { .sign = '+' },
		[COMMAND_SREM] = { .sign = '-' },
		[COMMAND_RPUSH] = { .sign = '+', .create = true, .type = COLLECTION_LIST },
		[COMMAND_RPUSHX] = { .sign = '+', .type = COLLECTION_LIST },
		[COMMAND_LPUSH] = { .sign = '+',
			.create = true,
			.front = true,
			.type = COLLECTION_LIST },
		[COMMAND_LPUSHX] = { .sign = '+', .front = true, .type = COLLECTION_LIST },
	};
	const struct append *how = &appends[request->command->id];
	struct slice rest = request->args->words, word = slice_token(&rest);
	/* The usual case. */
	bool one = word.n && rest.n == 0 && request->extras.delimiter == 0 &&
		!request->args->timed && !request->args->rule->member_ttl &&
		!args_check_word(request->args->rule, word, args_long_member);
	struct word_log w;
	struct op_task *t;

	if (!one) {
		w = word_log_of_args(request, how->sign,
			how->sign == '+' ? word_log_date(host, request) : EXPIRY_NONE);
		/* The last element becomes the first. */
		w.front = how->front;
	}
	t = op_task_new(host, request, owner, OP_APPEND, op_task_told,
		one ? word.n + 2 : word_log_room(&w));
	t->op.create = how->create;
	t->op.front = how->front;
	t->op.type = how->type;
	if (one)
		submit_one(t, how->sign, word);
	else
		word_log_submit(t, &w);
}

void sset_start(struct host *host, const struct request *request, void *owner)
{
	struct word_log w = word_log_of_args(request, '+', word_log_date(host, request));
	struct op_task *t =
		op_task_new(host, request, owner, OP_REPLACE, op_task_told, word_log_room(&w));

	t->op.mode = request->has_number ? REPLACE_SAME : REPLACE_ANY;
	t->op.cas = request->number;
	word_log_submit(t, &w);
}

void spop_start(struct host *host, const struct request *request, void *owner)
{
	struct op_task *t = op_task_new(host, request, owner, OP_POP, values_done(request), 0);

	t->op.count = request->args->count;
	op_task_submit(t);
}

/* --- stake: a large set is taken in blocks, one for each request --- */

/*
 * A block has about TAKE_BLOCK bytes of members. To find them takes up to TAKE_ROOM times that much
 * memory, since other tables mention the same members.
 */
enum { TAKE_BLOCK = 1 << 20, TAKE_ROOM = 2 };

struct taking {
	struct set_request request;
	struct stay stay; /* the room for the work on a large set */
	bool is_large;
	size_t used;
};

static struct taking *taking_of(struct op_task *t)
{
	return (struct taking *)(void *)t->more;
}

static size_t taken_at_once(const struct collection_options *options)
{
	size_t most = options->block ? options->block : TAKE_BLOCK;

	return options->result_max && options->result_max < most ? options->result_max : most;
}

static void ask_for_members(struct op_task *t, size_t bytes)
{
	struct set_request *request = &taking_of(t)->request;

	set_request_init(request);
	request->verb = SET_TAKE;
	request->bytes = bytes;
	t->op.set = request;
}

static void leave_room(struct op_task *t)
{
	room_leave(&t->task.host->env, &taking_of(t)->stay);
	task_use(&t->task, 0, taking_of(t)->used);
	t->task.resume = NULL;
}

static void collection_on_entered(struct waiter *waiter, const struct result *r)
{
	struct taking *taking =
		(struct taking *)((char *)waiter - offsetof(struct taking, stay.waiter));
	struct op_task *t = (struct op_task *)((char *)taking - offsetof(struct op_task, more));

	(void)r;
	if (!task_is_abandoned(&t->task)) {
		op_task_submit(t);
		return;
	}
	leave_room(t);
	task_say_error(&t->task, "SERVER_ERROR client closed");
}

/* A client that has disconnected waits for nothing, and takes nothing. */
static void collection_resume_taking(struct task *task)
{
	struct taking *taking = taking_of((struct op_task *)task);

	if (!task_is_abandoned(task) || !taking->stay.waits)
		return;
	room_leave(&task->host->env, &taking->stay);
	task_pause(task, &taking->stay.waiter);
}

/* Most sets are small. Only a large one needs a place in a room, before its tables are read. */
static void take_large(struct op_task *t)
{
	struct taking *taking = taking_of(t);
	struct env *env = &t->task.host->env;
	size_t bytes = taken_at_once(env->options);

	set_request_free(&taking->request);
	taking->is_large = true;
	taking->used = bytes;
	task_use(&t->task, bytes, 0);
	ask_for_members(t, bytes);
	if (room_enter(env, ROOM_MERGES, &taking->stay, t->task.account, TAKE_ROOM * bytes))
		op_task_submit(t);
}

static void collection_on_taken(struct op *op, const struct outcome *outcome)
{
	struct op_task *t = op_task_of(op);

	if (outcome->status == OUTCOME_OVERFLOW && !taking_of(t)->is_large) {
		take_large(t);
		return;
	}
	leave_room(t);
	reply_values(op, outcome, CONTENT_ELEMENTS);
}

void stake_start(struct host *host, const struct request *request, void *owner)
{
	struct op_task *t;

	if (request->args->counted) {
		spop_start(host, request, owner);
		return;
	}
	t = op_task_new(host, request, owner, OP_TAKE, collection_on_taken, sizeof(struct taking));
	*taking_of(t) = (struct taking){ .stay = { .waiter = { .done = collection_on_entered } } };
	t->task.resume = collection_resume_taking;
	ask_for_members(t, 0);
	op_task_submit(t);
}

void claim_member_start(struct host *host, const struct request *request, void *owner)
{
	struct slice member = request->args->words;
	uint32_t date = word_log_date(host, request);
	struct op_task *t = op_task_new(
		host, request, owner, OP_CLAIM, collection_on_count, member.n + EXPIRY_SIZE + 2);
	char *at = t->more;

	*at++ = '+';
	at = slice_write(at, member);
	if (date)
		at = expiry_write(at, date);
	*at++ = ' ';
	t->op.log = slice_of(t->more, (size_t)(at - t->more));
	op_task_submit(t);
}

void expire_members_start(struct host *host, const struct request *request, void *owner)
{
	struct word_log w = word_log_of_args(request, '+', word_log_date(host, request));

	word_log_submit(op_task_new(host, request, owner, OP_EXPIRE, collection_on_count,
				word_log_room(&w)),
		&w);
}

static void collection_on_ttl(struct op *op, const struct outcome *outcome)
{
	struct task *task = &op_task_of(op)->task;
	const struct reply never = reply_line(SLICE("-1"));
	uint64_t seconds = op->set->number;

	if (outcome_ends(outcome, task))
		return;
	if (seconds == SET_TTL_NONE)
		task_say_word(task, WORD_NOT_FOUND);
	else if (seconds == SET_TTL_NEVER)
		task_say(task, &never);
	else
		task_say_number(task, seconds);
}

void scompact_start(struct host *host, const struct request *request, void *owner)
{
	struct op_task *t = op_task_new(host, request, owner, OP_COMPACT, op_task_told, 0);

	t->op.all = true;
	op_task_submit(t);
}

/* --- reads of one set --- */

/*
 * Narrows the range to the members that begin as the pattern does; then sets the pattern, for the
 * members that remain. Their end need not be exact. `at` is memory for the bounds and the pattern.
 */
static void match(struct set_request *asked, struct slice pattern, char *at)
{
	char bytes[GLOB_MAX];
	struct slice from, to;

	asked->pattern = slice_of(at, (size_t)(element_write(at, pattern) - at));
	at += asked->pattern.n;
	from = slice_of(bytes, glob_prefix(asked->pattern, bytes));
	if (from.n == 0)
		return;
	from = slice_of(at, (size_t)(element_write_word(at, from) - at));
	at += from.n;
	to = slice_of(at, (size_t)(set_range_bound(from, at) - at));
	if (to.n) {
		asked->range.to = to;
		asked->range.has_to = true;
	}
	if (member_compare(asked->range.from, from) < 0) {
		asked->range.from = from;
		asked->range.after = false;
	}
}

void read_set_start(struct host *host, const struct request *request, void *owner)
{
	static const struct {
		enum set_verb verb;
		op_done *done;
	} reads[] = {
		[COMMAND_SCARD] = { SET_COUNT, collection_on_count },
		[COMMAND_SCOUNT] = { SET_COUNT, collection_on_count },
		[COMMAND_SISMEMBER] = { SET_HAS, collection_on_count },
		[COMMAND_SMISMEMBER] = { SET_TEST, collection_on_test },
		[COMMAND_SRANDMEMBER] = { .verb = SET_SAMPLE },
		[COMMAND_SRANGE] = { SET_RANGE, collection_on_list },
		[COMMAND_SSCAN] = { SET_RANGE, collection_on_list },
		[COMMAND_STTL] = { SET_TTL, collection_on_ttl },
	};
	command_id id = request->command->id;
	const struct args *args = request->args;
	/* The bounds of a pattern are at most as large as its word. */
	size_t size = sizeof(struct set_request) + request->rest.n + 3 * args->pattern.n;
	op_done *done = reads[id].done ? reads[id].done : values_done(request);
	struct op_task *t = op_task_new(host, request, owner, OP_READ, done, size);
	struct set_request *asked = (struct set_request *)(void *)t->more;
	char *at = t->more + sizeof(*asked);

	set_request_init(asked);
	asked->verb = reads[id].verb;
	asked->count = args->count;
	asked->range = args->range;
	if (args->words.n)
		asked->members = task_keep(&at, args->words);
	asked->range.from = task_keep(&at, args->range.from);
	asked->range.to = task_keep(&at, args->range.to);
	asked->repeats = args->repeats;
	if (args->pattern.p)
		match(asked, args->pattern, at);
	if (asked->verb == SET_SAMPLE)
		asked->random = random_next(&host->env.random);
	t->op.set = asked;
	op_task_submit(t);
}

/* --- operations on a list --- */

void ask_list_start(struct host *host, const struct request *request, void *owner)
{
	static const struct {
		enum list_verb verb;
		op_done *done;
	} asks[] = {
		[COMMAND_LINDEX] = { LIST_RANGE, collection_on_element },
		[COMMAND_LINSERT] = { LIST_INSERT, collection_on_count },
		[COMMAND_LLEN] = { LIST_LENGTH, collection_on_count },
		[COMMAND_LPOP] = { .verb = LIST_POP_FRONT },
		[COMMAND_LPOS] = { LIST_POSITION, collection_on_count },
		[COMMAND_LRANGE] = { LIST_RANGE, collection_on_list },
		[COMMAND_LREM] = { LIST_REMOVE, collection_on_count },
		[COMMAND_LSET] = { LIST_SET, op_task_told },
		[COMMAND_LTRIM] = { LIST_TRIM, op_task_told },
		[COMMAND_RPOP] = { .verb = LIST_POP_BACK },
	};
	command_id id = request->command->id;
	const struct args *args = request->args;
	size_t size = sizeof(struct list_request) + args->words.n + args->pivot.n;
	op_done *done = args->find.many ? collection_on_positions
		: asks[id].done         ? asks[id].done
					: values_done(request);
	struct op_task *t = op_task_new(host, request, owner, OP_LIST, done, size);
	char *at = t->more + sizeof(struct list_request);

	t->op.list = (struct list_request *)(void *)t->more;
	*t->op.list = (struct list_request){
		.verb = asks[id].verb,
		.start = args->first,
		.stop = args->last,
		.count = args->count,
		.item = task_keep(&at, args->words),
		.pivot = task_keep(&at, args->pivot),
		.find = args->find,
	};
	op_task_submit(t);
}

/* --- smembers: one read per key, replied in the order of the request --- */

struct members_part {
	struct fan_part part;
	struct op op;
	struct set_request request;
};

struct members_task {
	struct task task;
	struct fan fan;
	struct slice rest;           /* The keys that are not read yet. */
	struct members_part parts[]; /* A ring, followed by the keys. */
};

static void read_next(struct members_task *members, struct members_part *part, op_done *done)
{
	part->request = (struct set_request){ .verb = SET_ALL };
	part->op = (struct op){
		.kind = OP_READ,
		.key = slice_token(&members->rest),
		.set = &part->request,
		.done = done,
	};
	task_owns(&members->task, &part->op);
	lanes_submit(members->task.host->lanes, &part->op);
}

/*
 * A single key, the usual case, needs no fan. A missing set has no VALUE; a failure is the
 * whole reply.
 */
static void collection_on_single_read(struct op *op, const struct outcome *outcome)
{
	size_t offset = offsetof(struct members_task, parts) + offsetof(struct members_part, op);
	struct task *task = (struct task *)((char *)op - offset);
	struct set_request read = *op->set;
	struct reply r = reply_elements(CONTENT_ELEMENTS, op->key, SLICE(""));

	if (outcome->status == OUTCOME_DONE) {
		r.shared = read.shared;
		outcome_describe(outcome, task, &r);
		task_say_elements(task, &r);
	} else if (outcome->status == OUTCOME_MISSING) {
		task_say_word(task, WORD_END);
	} else {
		outcome_end(outcome, task);
	}
	set_request_free(&read);
}

static void collection_on_part_converted(void *arg, const struct reply *reply)
{
	struct members_part *part = arg;

	fan_say(&part->part, reply);
	set_request_free(&part->request);
	fan_part_done(&part->part);
}

static void collection_on_part_read(struct op *op, const struct outcome *outcome)
{
	static const struct elements quoted;
	struct members_part *part =
		(struct members_part *)((char *)op - offsetof(struct members_part, op));
	struct fan *fan = part->part.fan;
	struct reply r = reply_elements(CONTENT_ELEMENTS, op->key, SLICE(""));

	if (outcome->status == OUTCOME_DONE) {
		r.shared = op->set->shared;
		conversion_start(fan->task, &r, quoted, collection_on_part_converted, part);
		return;
	}
	if (outcome->status != OUTCOME_MISSING)
		task_note_outcome(fan->task, outcome);
	set_request_free(op->set);
	fan_part_done(&part->part);
}

static bool collection_ask_part(struct fan *fan, struct fan_part *fan_part)
{
	read_next((struct members_task *)fan->task, (struct members_part *)fan_part,
		collection_on_part_read);
	return true;
}

void members_start(struct host *host, const struct request *request, void *owner)
{
	size_t ring = request->keys < FAN_RING ? request->keys : FAN_RING;
	size_t size = sizeof(struct members_task) + ring * sizeof(struct members_part);
	struct slice keys = slice_of(
		request->key.p, (size_t)(request->rest.p + request->rest.n - request->key.p));
	struct members_task *members = task_new(host, request, owner, size + keys.n);
	char *at = (char *)members + size;

	members->rest = task_keys(&members->task, task_keep(&at, keys), request->keys);
	if (request->keys == 1) {
		read_next(members, members->parts, collection_on_single_read);
		return;
	}
	members->fan = (struct fan){
		.task = &members->task,
		.ask = collection_ask_part,
		.parts = (char *)members->parts,
		.stride = sizeof(struct members_part),
		.ring = ring,
		.total = request->keys,
		.first = ORDER_SETS_FIRST,
		.limit = SIZE_MAX,
	};
	fan_start(&members->fan);
}

/* --- sinfo: a small set and a small list look alike, so the key is read as both --- */

struct info_task {
	struct task task;
	struct op read, length;
	struct set_request request;
	struct list_request list;
	const char *server;
	int64_t ttl;
	uint64_t items;
	bool is_list; /* It can be read as a list. */
	bool is_missing;
	int pending; /* Number of pending operations. */
	char key[];
};

static void describe_held(struct info_task *info, struct buf *out)
{
	struct env *env = &info->task.host->env;
	int64_t left = info->list.due - env_server_time(env, info->read.key);

	reply_add_stat(out, "held", info->list.held);
	reply_add_stat(out, "due", left > 0 ? (uint64_t)left : 0);
}

static void describe(struct info_task *info, struct buf *out)
{
	const struct set_info *i = &info->request.info;
	const struct collection_rule *rule =
		rules_collection(info->task.host->env.rules, info->read.key);

	reply_add_stat_text(out, "encoding", encoding_name(rule->encoding));
	reply_add_stat_text(out, "server", info->server);
	reply_add_stat(out, "members", i->members);
	if (info->is_list)
		reply_add_stat(out, "items", info->items);
	if (info->is_list && info->list.held)
		describe_held(info, out);
	reply_add_stat(out, "bytes", i->base_bytes + i->table_bytes);
	reply_add_stat(out, "base_bytes", i->base_bytes);
	reply_add_stat(out, "table_bytes", i->table_bytes);
	reply_add_stat(out, "tokens", i->tokens);
	buf_printf(out, "STAT waste %.2f\r\n", i->waste);
	reply_add_stat(out, "runs", i->runs);
	reply_add_stat(out, "tables", i->tables);
	reply_add_stat(out, "entries", i->entries);
	reply_add_stat(out, "removals", i->removals);
	if (info->ttl == TTL_UNKNOWN)
		reply_add_stat_text(out, "ttl", "unknown");
	else
		buf_printf(out, "STAT ttl %lld\r\n", (long long)info->ttl);
}

static void end_one(struct info_task *info)
{
	struct reply r = { .kind = REPLY_LINES, .more = true };
	struct buf lines = BUF_EMPTY;

	if (--info->pending || task_fails(&info->task))
		return;
	if (info->is_missing) {
		task_say_word(&info->task, WORD_NOT_FOUND);
		return;
	}
	describe(info, &lines);
	r.bytes = buf_slice(&lines);
	task_say(&info->task, &r);
	task_say_word(&info->task, WORD_END);
	buf_free(&lines);
}

static void collection_on_length(struct op *op, const struct outcome *outcome)
{
	struct info_task *info =
		(struct info_task *)((char *)op - offsetof(struct info_task, length));

	info->is_list = outcome->status == OUTCOME_DONE;
	info->items = outcome->number;
	end_one(info);
}

static void collection_on_info(struct op *op, const struct outcome *outcome)
{
	struct info_task *info =
		(struct info_task *)((char *)op - offsetof(struct info_task, read));

	if (outcome->status == OUTCOME_DONE) {
		info->server = outcome->result->server;
		info->ttl = outcome->result->ttl;
	} else if (outcome->status == OUTCOME_MISSING) {
		info->is_missing = true;
	} else {
		task_note_outcome(&info->task, outcome);
	}
	end_one(info);
}

void sinfo_start(struct host *host, const struct request *request, void *owner)
{
	struct info_task *info = task_new(host, request, owner, sizeof(*info) + request->key.n);
	char *at = info->key;
	struct slice key = task_keys(&info->task, task_keep(&at, request->key), 1);
	bool may_be_list = args_allow_lists(request->args->rule);

	info->is_list = info->is_missing = false;
	info->request = (struct set_request){ .verb = SET_INFO };
	info->list = (struct list_request){ .verb = LIST_LENGTH };
	info->read = (struct op){
		.kind = OP_READ, .key = key, .set = &info->request, .done = collection_on_info
	};
	info->length = (struct op){
		.kind = OP_LIST, .key = key, .list = &info->list, .done = collection_on_length
	};
	task_owns(&info->task, &info->read);
	task_owns(&info->task, &info->length);
	info->pending = may_be_list ? 2 : 1;
	lanes_submit(host->lanes, &info->read);
	if (may_be_list)
		lanes_submit(host->lanes, &info->length);
}
