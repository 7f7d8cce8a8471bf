#include "client/binary.h"

#include <assert.h>

#include "client/auth.h"
#include "client/command.h"
#include "command/args.h"
#include "command/item.h"
#include "command/lookup.h"
#include "command/start.h"
#include "command/target.h"
#include "protocol/commands.h"
#include "protocol/login.h"
#include "protocol/reply.h"
#include "util/num.h"

static void respond_text(struct client *c, const struct binary_request *request, unsigned status, struct slice text)
{
	struct task *task = task_new(client_host(c), &request->request, c, sizeof(*task));

	binary_reply_text(task_reply(task), &request->head, status, text);
	task_done(task);
}

static void respond_line(struct client *c, const struct binary_request *request, const char *line)
{
	struct task *task = task_new(client_host(c), &request->request, c, sizeof(*task));

	binary_reply_line(task_reply(task), &request->head, slice_of(line, strlen(line)));
	task_done(task);
}

/* Keeps the key of the request: for the response, and for the meter, which reads the keys of a task that is done. */
static struct slice keep_key(struct task *task, const struct request *request, char *at)
{
	struct slice key = task_keep(&at, request->key);

	return key.n && !request->extras.odd_key ? task_keys(task, key, 1) : key;
}

/* --- reads, and TOUCH, which responds with the flags and the cas id of the item --- */

struct read_task {
	struct task task;
	struct waiter waiter;
	bool touches;
	enum target target;
	int64_t exptime;
	struct binary_head head;
	char key[];
};

static void was_read(struct waiter *waiter, const struct result *r)
{
	struct read_task *read = (struct read_task *)((char *)waiter - offsetof(struct read_task, waiter));

	lookup_result(&read->task, waiter->key, r);
	if (read->touches)
		item_touched(read->task.host, read->target, waiter->key, read->exptime, r);
	if (r->status != RESULT_MISS || !read->head.quiet)
		binary_reply_read(task_reply(&read->task), &read->head, waiter->key, r);
	task_done(&read->task);
}

static void start_read(struct client *c, const struct binary_request *b)
{
	const struct request *request = &b->request;
	bool touches = request->command->id != COMMAND_GET;
	struct read_task *read = task_new(client_host(c), request, c, sizeof(*read) + request->key.n);
	struct call call;

	read->touches = touches && !request->extras.odd_key;
	/* TOUCH is a write to the text protocol, but here it reads. */
	read->target = request->command->id == COMMAND_TOUCH ? target_of_read(client_host(c)->env.rules, request->key)
							     : request->target;
	read->exptime = request->exptime;
	read->head = b->head;
	read->waiter = (struct waiter){ was_read, keep_key(&read->task, request, read->key) };
	call = (struct call){
		.verb = touches ? CALL_GAT : CALL_GET,
		.want = WANT_VALUE | WANT_CAS | (request->extras.odd_key ? WANT_ENCODED : 0u),
		.server = CALL_ANY_SERVER,
		.key = read->waiter.key,
		.expected = read->task.expected,
		.exptime = request->exptime,
	};
	item_read(&read->task, read->target, &call, &read->waiter);
}

/* --- what has one line of reply in text --- */

struct line_task {
	struct task task;
	struct nest nest;
	struct binary_head head;
	char key[];
};

static void was_replied(struct nest *nest, struct slice reply)
{
	struct line_task *line = (struct line_task *)((char *)nest - offsetof(struct line_task, nest));
	struct reply_part part = { .line = slice_of("", 0) };

	(void)reply_next(&reply, &part);
	binary_reply_line(task_reply(&line->task), &line->head, part.line);
	task_done(&line->task);
}

static void resume(struct task *task)
{
	if (task->abandoned)
		task_abandon_inside(&((struct line_task *)task)->nest);
}

static struct nest *start_outer(
	struct client *c, const struct binary_request *b, void (*done)(struct nest *nest, struct slice reply))
{
	struct slice key = b->request.key;
	struct line_task *line = task_new(client_host(c), &b->request, c, sizeof(*line) + key.n);

	(void)keep_key(&line->task, &b->request, line->key);
	line->task.resume = resume;
	line->head = b->head;
	line->nest = (struct nest){ .outer = &line->task, .done = done };
	return &line->nest;
}

static void start_inside(struct client *c, const struct binary_request *b, command_id command,
	void (*done)(struct nest *nest, struct slice reply))
{
	struct request inside = b->request;

	inside.command = command_get(command);
	if (!task_start_inside(start_outer(c, b, done), &inside))
		assert(false);
}

/* --- a read of a key that is a command --- */

static void was_got(struct nest *nest, struct slice reply)
{
	struct line_task *line = (struct line_task *)((char *)nest - offsetof(struct line_task, nest));
	struct slice key = slice_of(line->key, line->task.size - sizeof(*line));
	struct result r = { .status = RESULT_MISS };
	struct reply_part part = { .line = slice_of("", 0) };

	if (!reply_next(&reply, &part) || part.kind == REPLY_PART_ERROR) {
		binary_reply_line(task_reply(&line->task), &line->head, part.line);
		task_done(&line->task);
		return;
	}
	if (part.kind == REPLY_PART_VALUE)
		r = (struct result){ .status = RESULT_HIT, .value = part.data, .flags = part.flags, .cas = part.cas };
	binary_reply_read(task_reply(&line->task), &line->head, key, &r);
	task_done(&line->task);
}

/* --- TOUCH of a set or list in an adopted encoding, whose flags may be on several items --- */

static bool touches_adopted(struct client *c, const struct request *request)
{
	return request->command->id == COMMAND_TOUCH && !request->extras.odd_key &&
		rules_collection(client_host(c)->env.rules, request->key)->encoding != ENCODING_OPLOG;
}

static void was_touched(struct nest *nest, struct slice reply)
{
	struct line_task *line = (struct line_task *)((char *)nest - offsetof(struct line_task, nest));
	struct result r = { .status = RESULT_HIT };

	if (!slice_starts(reply, SLICE("TOUCHED"))) {
		was_replied(nest, reply);
		return;
	}
	binary_reply_read(task_reply(&line->task), &line->head, SLICE(""), &r);
	task_done(&line->task);
}

/* --- what is answered at once --- */

/* The text of the reply, without its first word and its end. */
static struct slice behind_word(struct slice text)
{
	(void)slice_token(&text);
	if (text.n < 3)
		return slice_of("", 0);
	return slice_of(text.p + 1, text.n - 3);
}

static void respond(struct buf *out, const struct binary_head *head, struct slice text)
{
	switch (head->opcode) {
	case BINARY_STAT:
		binary_reply_stats(out, head, text);
		break;
	case BINARY_VERSION:
		binary_reply_text(out, head, BINARY_OK, behind_word(text));
		break;
	case BINARY_QUITQ:
		break;
	case BINARY_QUIT:
		binary_reply_text(out, head, BINARY_OK, slice_of("", 0));
		break;
	default:
		binary_reply_line(out, head, slice_of(text.p, text.n - 2));
	}
}

static void reply_admin(struct client_command *command, struct slice text)
{
	respond(task_reply(&command->task), &command->head, text);
}

static void start_admin(struct client *c, const struct binary_request *b)
{
	struct request request = b->request;
	char level[NUM_U64_MAX];

	if (b->head.opcode == BINARY_VERBOSITY)
		request.rest = slice_of(level, num_format_u64(level, request.number));
	client_start_command(c, &request, &b->head, reply_admin);
}

/* --- authentication --- */

static const struct slice mechanism = { "PLAIN", 5 };

/* [authzid] NUL user NUL password (RFC 4616). authzid is ignored. */
static bool is_right(struct client *c, struct slice message)
{
	struct slice user;

	(void)slice_cut(&message, 0);
	user = slice_cut(&message, 0);
	return auth_is_right(c, user, message);
}

static void succeed(struct client *c, const struct binary_request *request)
{
	respond_text(c, request, BINARY_OK, SLICE("Authenticated"));
}

static void fail(struct client *c, const struct binary_request *request)
{
	respond_text(c, request, BINARY_AUTH_ERROR, SLICE("Auth failure."));
}

/* A client that stayed could try the passwords of all users without a pause. */
static void fail_for_good(struct client *c, const struct binary_request *request)
{
	fail(c, request);
	c->closing = true;
}

/* Whether the request has the message of PLAIN. It may come with AUTH, or with STEP after an AUTH without one. */
static bool has_message(const struct binary_request *request, bool is_begun)
{
	return slice_equal(request->request.key, mechanism) &&
		(request->head.opcode == BINARY_SASL_STEP ? is_begun : request->request.data.n > 0);
}

static bool begins(const struct binary_request *request)
{
	return request->head.opcode == BINARY_SASL_AUTH && slice_equal(request->request.key, mechanism) &&
		request->request.data.n == 0;
}

/* `waiting` is how much has come behind the request. */
static void authenticate(struct client *c, const struct binary_request *request, size_t waiting)
{
	if (begins(request)) {
		c->auth->is_begun = true;
		respond_text(c, request, BINARY_AUTH_CONTINUE, slice_of("", 0));
	} else if (has_message(request, c->auth->is_begun) && is_right(c, request->request.data)) {
		auth_succeed(c);
		succeed(c, request);
	} else {
		auth_fail(c);
		fail(c, request);
		auth_slow_down(c, waiting);
	}
}

static bool is_sasl(unsigned char opcode)
{
	return opcode >= BINARY_SASL_LIST && opcode <= BINARY_SASL_STEP;
}

/* Of a client that need not authenticate, or has. */
static void start_sasl(struct client *c, const struct binary_request *request)
{
	if (!client_config(c)->users)
		respond_text(c, request, BINARY_UNKNOWN, SLICE("Unknown command"));
	else if (request->head.opcode == BINARY_SASL_LIST)
		respond_text(c, request, BINARY_OK, mechanism);
	else if (has_message(request, false) && is_right(c, request->request.data))
		succeed(c, request);
	else
		fail_for_good(c, request);
}

/* Refuses a request for its form, as if the client were authenticated. */
static void refuse(struct client *c, const struct binary_request *request, enum request_status status)
{
	client_binary_refuse(c, request);
	if (status == REQUEST_FATAL || request->request.skip.bytes > LOGIN_BLOCK_MAX)
		c->closing = true;
	else
		client_skip(c, &request->request);
}

static void carry_out(struct client *c, const struct binary_request *request, size_t waiting)
{
	if (request->head.opcode == BINARY_VERSION)
		client_binary_start(c, request);
	else if (request->head.opcode == BINARY_SASL_LIST)
		respond_text(c, request, BINARY_OK, mechanism);
	else
		authenticate(c, request, waiting);
}

size_t client_binary_authenticate(struct client *c, struct slice in)
{
	static const struct request_limits limits = { .max_value = LOGIN_BLOCK_MAX };
	struct binary_request b;
	enum request_status status = binary_parse(in, &limits, &c->input.progress, &b);

	if (status == REQUEST_HANGUP) {
		c->closing = true;
		return in.n;
	}
	/* Refuse a forbidden opcode before its body arrives. */
	if (in.n >= BINARY_HEADER && !is_sasl((unsigned char)in.p[1]) && in.p[1] != BINARY_VERSION) {
		client_count(c, COUNT_cmd_refused, 1);
		fail_for_good(c, &b);
		return in.n;
	}
	if (status == REQUEST_MORE)
		return 0;
	if (status == REQUEST_READY)
		carry_out(c, &b, in.n - b.request.consumed);
	else
		refuse(c, &b, status);
	auth_bound(c, in.n - b.request.consumed);
	c->input.progress = (struct request_progress){ 0 };
	return b.request.consumed;
}

/* --- all --- */

static bool is_admins(const struct binary_request *b)
{
	switch (b->head.opcode) {
	case BINARY_NOOP:
	case BINARY_QUIT:
	case BINARY_QUITQ:
	case BINARY_STAT:
	case BINARY_VERBOSITY:
	case BINARY_VERSION:
		return true;
	default:
		return false;
	}
}

static bool reads(const struct request *request)
{
	return request->command->id == COMMAND_GET || request->command->id == COMMAND_GAT ||
		request->command->id == COMMAND_TOUCH;
}

/* Gives why the key is refused, or NULL. A key with spaces has no place in the lines of text that a rule makes of it for servers. */
static const char *key_refusal(const struct host *host, const struct request *request)
{
	bool touches = request->command->id == COMMAND_GAT || request->command->id == COMMAND_TOUCH;

	if (request->extras.odd_key && request->target > TARGET_PART)
		return start_odd_key_refusal;
	if (touches && request->target == TARGET_PART)
		return args_part_refusal;
	if (touches && request->target == TARGET_COMMAND)
		return target_refusal(host->env.rules, request);
	return NULL;
}

void client_binary_start(struct client *c, const struct binary_request *b)
{
	const char *refusal = key_refusal(client_host(c), &b->request);

	if (is_sasl(b->head.opcode))
		start_sasl(c, b);
	else if (refusal)
		respond_line(c, b, refusal);
	else if (b->request.command->id == COMMAND_GET && b->request.target == TARGET_COMMAND)
		start_inside(c, b, COMMAND_GETS, was_got); /* for the cas id of a set */
	else if (touches_adopted(c, &b->request))
		start_inside(c, b, COMMAND_TOUCH, was_touched);
	else if (reads(&b->request))
		start_read(c, b);
	else if (is_admins(b))
		start_admin(c, b);
	else
		start_inside(c, b, b->request.command->id, was_replied);
}

void client_binary_refuse(struct client *c, const struct binary_request *b)
{
	struct request inside = b->request;

	if (!request_discards(&b->request)) {
		respond_line(c, b, b->request.error);
		return;
	}
	inside.into = start_outer(c, b, was_replied);
	task_start_refused(client_host(c), &inside, c);
}
