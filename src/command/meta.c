/*
 * The meta commands. They are passed on without q: each call needs a reply. If the client sent q, nominal replies are suppressed
 * here.
 */
#include "collection/lane/lanes.h"
#include "command/start.h"
#include "command/task.h"
#include "protocol/metaflags.h"
#include "protocol/reply.h"

struct meta_task {
	struct task task;
	struct waiter waiter;
	bool quiet;
	char key[];
};

/* Whether q suppresses this code: a miss for mg, success for the others. */
static bool is_nominal(enum command_id id, struct slice code)
{
	switch (id) {
	case COMMAND_MG:
		return slice_equal(code, SLICE("EN"));
	case COMMAND_MA:
		return slice_equal(code, SLICE("HD")) || slice_equal(code, SLICE("VA"));
	case COMMAND_MS:
	case COMMAND_MD:
		return slice_equal(code, SLICE("HD"));
	default:
		return false;
	}
}

static void answered(struct waiter *waiter, const struct result *r)
{
	struct meta_task *meta = (struct meta_task *)((char *)waiter - offsetof(struct meta_task, waiter));
	struct slice rest = r->line, code;
	struct buf *out;

	if (result_failed(r)) {
		task_reply_failure(&meta->task, r);
		return;
	}
	code = slice_token(&rest);
	if (!meta->quiet || !is_nominal(meta->task.command->id, code)) {
		out = task_reply(&meta->task);
		reply_line(out, r->line);
		if (slice_equal(code, SLICE("VA")))
			reply_line(out, r->value);
	}
	task_done(&meta->task);
}

/* A base64 key names the same item as its decoded key, which decides the server. */
static struct slice decoded_key(const struct request *request, bool base64, char *key)
{
	if (base64)
		return slice_of(key, metaflags_decode_key(request->key, key));
	memcpy(key, request->key.p, request->key.n);
	return slice_of(key, request->key.n);
}

void meta_start(struct host *host, const struct request *request, void *owner)
{
	struct meta_task *meta = task_new(host, request, owner, sizeof(*meta) + request->key.n);
	struct buf *line = &meta->task.scratch;
	bool data = request->command->grammar == GRAMMAR_META_DATA;
	struct metaflags flags;

	/* The parser has checked the flags. */
	(void)metaflags_parse(request->command->id, request->rest, &flags);
	meta->quiet = flags.quiet;
	meta->waiter = (struct waiter){ answered, decoded_key(request, flags.base64, meta->key) };
	buf_add_slice(line, request->command->name);
	BUF_ADD(line, " ");
	buf_add_slice(line, request->key);
	if (data) {
		BUF_ADD(line, " ");
		buf_add_u64(line, request->data.n);
	}
	metaflags_copy(request->rest, line);
	lanes_call(host->lanes,
		&(struct call){
			.verb = CALL_META,
			.server = CALL_ANY_SERVER,
			.key = meta->waiter.key,
			.line = buf_slice(line),
			.value = request->data,
			.has_value = data,
		},
		&meta->waiter);
}
