/*
 * The meta commands. They are sent to a server without q, since each call needs a reply. If the
 * client sent q, the task suppresses nominal replies.
 *
 * memcached may print a base64 key as its decoded bytes, which may be line ends. To prevent
 * this for a base64 key that decodes to spaces or control bytes, the client's own text of the
 * key is inserted into the reply. Keys with control bytes that a client sends as text are
 * passed on unchanged.
 *
 * If `mg` with T has touched the base of a set or list, that is touched again by the machine of
 * `touch`, since a base has its date and parts; then the client receives the reply to another `mg`.
 */
#include "collection/both/both.h"
#include "collection/lane/lanes.h"
#include "command/lookup.h"
#include "command/start.h"
#include "command/target.h"
#include "command/task.h"
#include "protocol/commands.h"
#include "protocol/metaform.h"
#include "protocol/reply.h"
#include "util/num.h"

struct meta_task {
	struct task task;
	struct waiter waiter;
	struct metaflags flags;
	bool decrements; /* `ma`: it subtracts. */
	bool fenced;     /* The server suppresses the reply itself. */
	bool touches;    /* `mg` with T, of an item that was not touched as a base yet. */
	struct op touch;
	struct call call; /* Its slices are in `bytes`. */
	/* The client's text of the key if it must be inserted into the reply, else empty. */
	struct slice own_key;
	char bytes[];
};

static void say_line(struct meta_task *meta, const struct result *r, struct slice code)
{
	struct reply reply = {
		.kind = REPLY_META,
		.word = metaform_word(code),
		.key = r->line,
		.bytes = r->value,
		.has_value = slice_equal(code, SLICE("VA")),
	};

	if (meta->own_key.n) {
		metaflags_copy_with_key(
			r->line, meta->flags.before_key, meta->own_key, &meta->task.scratch);
		reply.key = buf_slice(&meta->task.scratch);
	}
	task_say(&meta->task, &reply);
}

static bool is_kept_back(const struct meta_task *meta, struct slice code)
{
	if (meta->fenced)
		return slice_equal(code, SLICE("MN"));
	return metaflags_hide(&meta->flags, meta->task.command->id, code);
}

static void meta_on_touched(struct op *op, const struct outcome *outcome)
{
	struct meta_task *meta =
		(struct meta_task *)((char *)op - offsetof(struct meta_task, touch));

	if (outcome->status == OUTCOME_FAILED)
		task_say_failure(&meta->task, outcome->result);
	else
		lanes_call(meta->task.host->lanes, meta->task.account, &meta->call, &meta->waiter);
}

/* Returns whether the item that was touched may be a base. Without its value that is unknown. */
static bool may_touch_base(const struct meta_task *meta, const struct result *r, struct slice code)
{
	const struct lanes *lanes = meta->task.host->lanes;
	struct slice key = meta->waiter.key;

	if (!meta->touches || key.n > COLLECTION_KEY_MAX)
		return false;
	if (slice_equal(code, SLICE("VA")))
		return touch_is_base(lanes, key, r->value);
	return slice_equal(code, SLICE("HD")) &&
		rules_collection(lanes->env->rules, key)->encoding == ENCODING_OPLOG;
}

static void meta_on_answer(struct waiter *waiter, const struct result *r)
{
	struct meta_task *meta =
		(struct meta_task *)((char *)waiter - offsetof(struct meta_task, waiter));
	struct slice rest = r->line, code;

	if (result_failed(r)) {
		task_say_failure(&meta->task, r);
		return;
	}
	code = slice_token(&rest);
	if (may_touch_base(meta, r, code)) {
		meta->touches = false;
		task_owns(&meta->task, &meta->touch);
		lanes_submit(meta->task.host->lanes, &meta->touch);
		return;
	}
	lookup_meta(&meta->task, &meta->flags, meta->decrements, code);
	if (is_kept_back(meta, code))
		task_done(&meta->task);
	else
		say_line(meta, r, code);
}

/* Returns the maximum size that write_meta_line needs. */
static size_t line_max(const struct request *request)
{
	return request->command->name.n + request->key.n + request->rest.n + NUM_U64_MAX + 3;
}

/* Writes the line for the server to `at`. */
static struct slice write_meta_line(
	const struct meta_task *meta, const struct request *request, char *at)
{
	bool debug = request->command->id == COMMAND_ME;
	char without[4], *end = without, *line = at;

	if (!meta->fenced)
		*end++ = 'q';
	if (meta->own_key.n)
		*end++ = 'k';
	if (metaflags_name_item(&request->meta, request->rest))
		*end++ = 'P';
	*end = 0;

	task_keep(&at, request->command->name);
	*at++ = ' ';
	task_keep(&at, debug ? meta->waiter.key : request->key);
	if (request->command->grammar == GRAMMAR_META_DATA) {
		*at++ = ' ';
		at += num_format_u64(at, request->data.n);
	}
	if (!debug)
		at += metaflags_copy(request->rest, without, at);
	return slice_of(line, (size_t)(at - line));
}

/*
 * Returns the no-ops that `ma` needs around it. If memcached has not written an earlier reply
 * with this item yet, it loses the T. With q it replies if it created the item, and does not
 * reply if it changed the item, which is the only way to distinguish these.
 */
static unsigned wanted_no_ops(const struct meta_task *meta)
{
	if (meta->task.command->id != COMMAND_MA)
		return 0;
	return (metaflags_has(&meta->flags, 'T') ? WANT_FLUSH : 0u) |
		(meta->fenced ? WANT_FENCE : 0u);
}

/* Prepares the touch of a base. Of a negative time, the item has already expired. */
static void note_touch(struct meta_task *meta, const struct request *request)
{
	struct slice rest = request->rest, flag;
	int64_t exptime = -1;

	while ((flag = slice_token(&rest)).n) {
		if (flag.p[0] == 'T' && !num_parse_i64(slice_skip(flag, 1), &exptime))
			return;
	}
	meta->touches = exptime >= 0;
	meta->touch = (struct op){
		.kind = OP_TOUCH, .key = meta->waiter.key, .ttl = exptime, .done = meta_on_touched
	};
}

void meta_start(struct host *host, const struct request *request, void *owner)
{
	struct meta_task *meta = task_new(
		host, request, owner, sizeof(*meta) + 2 * request->key.n + line_max(request));
	char *at = meta->bytes, decoded[KEY_MAX];
	struct call call;

	meta->flags = request->meta;
	/* A base64 key names the same item as its decoded key, which selects the server. */
	meta->waiter =
		(struct waiter){ meta_on_answer, task_keep(&at, target_key(request, decoded)) };
	meta->own_key = slice_of("", 0);
	(void)task_keys(&meta->task, meta->waiter.key, 1);
	if (metaflags_has(&meta->flags, 'k') && metaflags_has(&meta->flags, 'b') &&
		!request_key_valid(meta->waiter.key, KEY_MAX))
		meta->own_key = task_keep(&at, request->key);
	meta->decrements =
		request->command->id == COMMAND_MA && metaflags_decrements(request->rest);
	meta->fenced = request->command->id == COMMAND_MA && metaflags_has(&meta->flags, 'q') &&
		metaflags_has(&meta->flags, 'N');
	call = (struct call){
		.verb = CALL_META,
		.want = wanted_no_ops(meta),
		.server = CALL_ANY_SERVER,
		.key = meta->waiter.key,
		.line = write_meta_line(meta, request, at),
		.value = request->data,
		.has_value = request->command->grammar == GRAMMAR_META_DATA,
		.discards = true,
		.expected = meta->task.expected,
	};
	meta->touches = false;
	if (request->command->id == COMMAND_MG && metaflags_has(&meta->flags, 'T')) {
		note_touch(meta, request);
		meta->call = call;
	}
	lanes_call(host->lanes, meta->task.account, &call, &meta->waiter);
}
