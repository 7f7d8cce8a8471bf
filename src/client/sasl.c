#include "client/sasl.h"

#include "client/auth.h"
#include "client/binary.h"
#include "config/users.h"
#include "protocol/login.h"
#include "util/log.h"

static const struct slice mechanism = { "PLAIN", 5 };

static struct slice take_until_zero(struct slice *rest)
{
	const char *end = rest->n ? memchr(rest->p, 0, rest->n) : NULL;
	struct slice taken = slice_of(rest->p, end ? (size_t)(end - rest->p) : rest->n);

	*rest = slice_skip(*rest, taken.n + (end ? 1 : 0));
	return taken;
}

/* [authzid] NUL user NUL password (RFC 4616). authzid is ignored. */
static bool is_right(struct client *c, struct slice message)
{
	struct slice user;

	(void)take_until_zero(&message);
	user = take_until_zero(&message);
	return auth_is_right(c, user, message);
}

static void succeed(struct client *c, const struct binary_request *request)
{
	client_binary_reply(c, request, BINARY_OK, SLICE("Authenticated"));
}

static void fail(struct client *c, const struct binary_request *request)
{
	client_binary_reply(c, request, BINARY_AUTH_ERROR, SLICE("Auth failure."));
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
		client_binary_reply(c, request, BINARY_AUTH_CONTINUE, slice_of("", 0));
	} else if (has_message(request, c->auth->is_begun) && is_right(c, request->request.data)) {
		auth_succeed(c);
		succeed(c, request);
	} else {
		auth_fail(c);
		fail(c, request);
		auth_slow_down(c, waiting);
	}
}

void sasl_start(struct client *c, const struct binary_request *request)
{
	if (!client_config(c)->users)
		client_binary_reply(c, request, BINARY_UNKNOWN, SLICE("Unknown command"));
	else if (request->head.opcode == BINARY_SASL_LIST)
		client_binary_reply(c, request, BINARY_OK, mechanism);
	else if (has_message(request, false) && is_right(c, request->request.data))
		succeed(c, request);
	else
		fail_for_good(c, request);
}

static bool is_allowed(unsigned char opcode)
{
	return (opcode >= BINARY_SASL_LIST && opcode <= BINARY_SASL_STEP) || opcode == BINARY_VERSION;
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
		client_binary_reply(c, request, BINARY_OK, mechanism);
	else
		authenticate(c, request, waiting);
}

size_t sasl_take(struct client *c, struct slice in)
{
	static const struct request_limits limits = { .max_value = LOGIN_BLOCK_MAX };
	struct binary_request b;
	enum request_status status = binary_parse(in, &limits, &c->input.progress, &b);

	if (status == REQUEST_HANGUP) {
		c->closing = true;
		return in.n;
	}
	/* Refuse a forbidden opcode before its body arrives. */
	if (in.n >= BINARY_HEADER && !is_allowed((unsigned char)in.p[1])) {
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
