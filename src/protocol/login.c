#include "protocol/login.h"

#include "util/num.h"

const char login_unauthenticated[] = "CLIENT_ERROR unauthenticated";

static const struct request_limits limits = { LOGIN_LINE_MAX, LOGIN_BLOCK_MAX, LOGIN_LINE_MAX };
static const struct slice verb = { "set ", 4 };

/*
 * Refuses another request. Clears its command, since the refusal of some commands has an effect
 * on the server.
 */
static enum request_status refuse_unauthenticated(struct request *out, enum request_status status)
{
	bool is_fatal = status == REQUEST_FATAL || out->skip.bytes > LOGIN_BLOCK_MAX + 2;

	*out = (struct request){
		.error = status == REQUEST_FATAL ? out->error : login_unauthenticated,
		.noreply = out->noreply && !is_fatal,
		.consumed = out->consumed,
		.skip = out->skip,
	};
	return is_fatal ? REQUEST_FATAL : REQUEST_REFUSED;
}

static bool is_noreply(struct slice rest)
{
	struct slice token, last = SLICE("");

	while ((token = slice_token(&rest)).n)
		last = token;
	return slice_equal(last, SLICE("noreply"));
}

/* Like memcached, ignores the key, the flags, the time to live, and any text after the length. */
static enum request_status parse_line(
	struct slice in, struct request_progress *progress, struct request *out)
{
	struct slice rest = slice_of(in.p, out->consumed - 1), bytes;
	enum request_status status;
	uint64_t n;

	if (rest.n > 0 && rest.p[rest.n - 1] == '\r')
		rest.n--;
	for (int skipped = 0; skipped < 4; skipped++)
		(void)slice_token(&rest);
	bytes = slice_token(&rest);
	out->noreply = is_noreply(rest);
	if (bytes.n == 0)
		return refuse_unauthenticated(out, REQUEST_REFUSED);
	if (!num_parse_u64(bytes, &n) || n > LOGIN_BLOCK_MAX) {
		out->error = login_unauthenticated;
		return refuse_unauthenticated(out, REQUEST_FATAL);
	}
	status = request_parse_block(in, &limits, n, progress, out);
	return status == REQUEST_FATAL ? refuse_unauthenticated(out, status) : status;
}

enum request_status login_parse(
	struct slice in, struct request_progress *progress, struct request *out)
{
	enum request_status status;
	const char *end;

	*out = (struct request){ 0 };
	if (in.n < verb.n && slice_starts(verb, in))
		return REQUEST_MORE;
	if (!slice_starts(in, verb)) {
		status = request_parse(in, &limits, progress, out);
		return status == REQUEST_MORE || status == REQUEST_HANGUP
			? status
			: refuse_unauthenticated(out, status);
	}
	if (in.n < progress->needed)
		return REQUEST_MORE;
	end = memchr(in.p + progress->scanned, '\n', in.n - progress->scanned);
	progress->scanned = end ? (size_t)(end - in.p) : in.n;
	if (progress->scanned >= LOGIN_LINE_MAX) {
		out->error = "CLIENT_ERROR line too long";
		return refuse_unauthenticated(out, REQUEST_FATAL);
	}
	if (!end)
		return REQUEST_MORE;
	out->consumed = progress->scanned + 1;
	return parse_line(in, progress, out);
}

bool login_split(struct slice data, struct slice *user, struct slice *password)
{
	*user = slice_token(&data);
	*password = slice_token(&data);
	return password->n > 0;
}
