/*
 * The binary protocol. Clients authenticate by SASL with the mechanism PLAIN, compatible with
 * memcached's option -S. Any other request before that is refused and closes the connection, as
 * in memcached.
 */
#include "client/protocols.h"

#include <assert.h>

#include "client/auth.h"
#include "client/command.h"
#include "client/state.h"
#include "command/args.h"
#include "command/start.h"
#include "command/target.h"
#include "protocol/binary.h"
#include "protocol/commands.h"
#include "protocol/login.h"
#include "util/num.h"

static_assert(sizeof(struct binary_asked) <= PROTOCOL_ASKED, "it has no room");

static struct binary_asked *asked_of(struct parsed *parsed)
{
	return (struct binary_asked *)(void *)parsed->asked;
}

enum request_status client_binary_parse(struct slice in, const struct request_limits *limits,
	struct request_progress *progress, struct parsed *out)
{
	return binary_parse(in, limits, progress, &out->request, &out->reply, asked_of(out));
}

/* --- authentication --- */

/* Sends a response to SASL. */
static void respond_text(
	struct client *c, struct parsed *request, unsigned status, struct slice text)
{
	struct task *task = task_new(client_host(c), &request->request, c, sizeof(*task));

	binary_reply_text(task_reply(task), asked_of(request), status, text);
	task_done(task);
}

static const struct slice mechanism = { "PLAIN", 5 };

/* Checks [authzid] NUL user NUL password (RFC 4616). authzid is ignored. */
static bool is_right(struct client *c, struct slice message)
{
	struct slice user;

	(void)slice_cut(&message, 0);
	user = slice_cut(&message, 0);
	return auth_is_right(c, user, message);
}

static void succeed(struct client *c, struct parsed *request)
{
	respond_text(c, request, BINARY_OK, SLICE("Authenticated"));
}

static void reply_auth_failure(struct client *c, struct parsed *request)
{
	respond_text(c, request, BINARY_AUTH_ERROR, SLICE("Auth failure."));
}

/* Closes the client, which could otherwise try the passwords of all users without a pause. */
static void fail_for_good(struct client *c, struct parsed *request)
{
	reply_auth_failure(c, request);
	client_stop(c);
}

/*
 * Returns whether the request has the message of PLAIN: either AUTH, or STEP after an AUTH
 * without one.
 */
static bool has_message(struct parsed *request, bool is_begun)
{
	return slice_equal(request->request.key, mechanism) &&
		(asked_of(request)->opcode == BINARY_SASL_STEP ? is_begun
							       : request->request.data.n > 0);
}

static bool begins(struct parsed *request)
{
	return asked_of(request)->opcode == BINARY_SASL_AUTH &&
		slice_equal(request->request.key, mechanism) && request->request.data.n == 0;
}

/* `waiting` is the number of bytes received after the request. */
static void authenticate_by_sasl(struct client *c, struct parsed *request, size_t waiting)
{
	if (begins(request)) {
		c->auth->is_begun = true;
		respond_text(c, request, BINARY_AUTH_CONTINUE, slice_of("", 0));
	} else if (has_message(request, c->auth->is_begun) && is_right(c, request->request.data)) {
		auth_succeed(c);
		succeed(c, request);
	} else {
		auth_fail(c);
		reply_auth_failure(c, request);
		auth_slow_down(c, waiting);
	}
}

static bool is_sasl(unsigned char opcode)
{
	return opcode >= BINARY_SASL_LIST && opcode <= BINARY_SASL_STEP;
}

/* Handles SASL requests of a client that is authenticated, or need not be. */
static void start_sasl(struct client *c, struct parsed *request)
{
	if (!client_config(c)->users)
		respond_text(c, request, BINARY_UNKNOWN, SLICE("Unknown command"));
	else if (asked_of(request)->opcode == BINARY_SASL_LIST)
		respond_text(c, request, BINARY_OK, mechanism);
	else if (has_message(request, false) && is_right(c, request->request.data))
		succeed(c, request);
	else
		fail_for_good(c, request);
}

/* Refuses a malformed request, as if the client were authenticated. */
static void refuse_before_login(
	struct client *c, struct parsed *request, enum request_status status)
{
	task_start_refused(client_host(c), &request->request, c);
	if (status == REQUEST_FATAL || request->request.skip.bytes > LOGIN_BLOCK_MAX)
		client_stop(c);
	else
		client_skip(c, &request->request);
}

static void carry_out_before_login(struct client *c, struct parsed *request, size_t waiting)
{
	if (asked_of(request)->opcode == BINARY_VERSION)
		client_binary_start(c, request);
	else if (asked_of(request)->opcode == BINARY_SASL_LIST)
		respond_text(c, request, BINARY_OK, mechanism);
	else
		authenticate_by_sasl(c, request, waiting);
}

size_t client_binary_authenticate(struct client *c, struct slice in)
{
	static const struct request_limits limits = { .max_value = LOGIN_BLOCK_MAX };
	struct parsed b;
	enum request_status status = client_binary_parse(in, &limits, &c->input.progress, &b);

	if (status == REQUEST_HANGUP) {
		client_stop(c);
		return in.n;
	}
	/* Refuse a forbidden opcode before its body arrives. */
	if (in.n >= BINARY_HEADER && !is_sasl((unsigned char)in.p[1]) &&
		in.p[1] != BINARY_VERSION) {
		client_count(c, COUNT_cmd_refused, 1);
		fail_for_good(c, &b);
		return in.n;
	}
	if (status == REQUEST_MORE)
		return 0;
	if (status == REQUEST_READY)
		carry_out_before_login(c, &b, in.n - b.request.consumed);
	else
		refuse_before_login(c, &b, status);
	auth_bound(c, in.n - b.request.consumed);
	request_progress_end(&c->input.progress);
	return b.request.consumed;
}

/* --- all --- */

/*
 * Returns why the key is refused, or NULL. A rule would put a key with spaces into text lines
 * for servers, where it is not valid.
 */
static const char *key_refusal(const struct host *host, const struct request *request)
{
	bool touches = request->command->id == COMMAND_GAT || request->command->id == COMMAND_TOUCH;

	if (request->extras.odd_key && request->target > TARGET_PART)
		return start_odd_key_refusal;
	if (touches && request->target == TARGET_PART)
		return args_part_refusal(request->key);
	if (touches && request->target == TARGET_COMMAND)
		return target_refusal(host->env.rules, request);
	return NULL;
}

/*
 * Returns whether the key is of a set or list in an adopted encoding, whose flags may be on
 * several items.
 */
static bool touches_adopted(struct client *c, const struct request *request)
{
	return !request->extras.odd_key &&
		rules_collection(client_host(c)->env.rules, request->key)->encoding !=
		ENCODING_OPLOG;
}

/*
 * Returns the command that carries out this request. A response to TOUCH has the flags and the
 * CAS id of the item, so it is a read; the response to a read of a command has the CAS id of a
 * set.
 */
static command_id choose_command(struct client *c, const struct request *r)
{
	if (r->command->id == COMMAND_GET && r->target == TARGET_COMMAND)
		return COMMAND_GETS;
	if (r->command->id == COMMAND_TOUCH && !touches_adopted(c, r))
		return COMMAND_GAT;
	return r->command->id;
}

static void start_other(struct client *c, const struct request *sent, command_id id)
{
	struct request request = *sent;
	struct request_reply reply = *sent->reply;

	reply.sent = sent;
	request.reply = &reply;
	request.command = command_get(id);
	if (id == COMMAND_GAT) {
		request.keys = 1;
		request.target = target_of_read(client_host(c)->env.rules, request.key);
	}
	client_start(c, &request);
}

void client_binary_start(struct client *c, struct parsed *parsed)
{
	struct request *request = &parsed->request;
	const char *refusal = key_refusal(client_host(c), request);
	unsigned char opcode = asked_of(parsed)->opcode;
	char level[NUM_U64_MAX];
	command_id id;

	if (is_sasl(opcode)) {
		start_sasl(c, parsed);
		return;
	}
	if (refusal) {
		task_refuse(client_host(c), request, c, refusal);
		return;
	}
	id = choose_command(c, request);
	if (id != request->command->id) {
		start_other(c, request, id);
		return;
	}
	if (opcode == BINARY_VERBOSITY)
		request->rest = slice_of(level, num_format_u64(level, request->number));
	client_start(c, request);
}
