#include "protocol/request.h"

#include <limits.h>

#include "protocol/commands.h"
#include "protocol/element.h"
#include "protocol/hint.h"
#include "protocol/metaflags.h"
#include "protocol/quoted.h"
#include "util/num.h"

static const char control[] = "CLIENT_ERROR control character in line";

static enum request_status refuse_form(struct request *out, const char *error)
{
	out->error = error;
	return REQUEST_REFUSED;
}

static enum request_status fatal(struct request *out, const char *error)
{
	out->error = error;
	return REQUEST_FATAL;
}

/* Returns the error for too few words, too many words, or a word that is invalid in its place. */
static const char *bad_form(const struct request *out)
{
	return command_usage(out->command->id);
}

/* Returns the index of the first control byte, or s.n. */
static size_t first_control(struct slice s)
{
	return (size_t)(word_find_below(s.p, s.p + s.n, ' ') - s.p);
}

bool request_key_valid(struct slice key, size_t max)
{
	return key.n > 0 && key.n <= max && word_end(key.p, key.p + key.n) == key.p + key.n;
}

bool request_key_fits_line(struct slice key)
{
	return !memchr(key.p, ' ', key.n) && !memchr(key.p, '\n', key.n) &&
		!memchr(key.p, 0, key.n);
}

/*
 * Removes `noreply` from the end of the line. If the command has a key, and this is the first
 * token, it is the key.
 */
static void take_noreply(struct request *out)
{
	static const struct slice word = { "noreply", 7 };
	bool keyless = command_traits(out->command)->keys == KEYS_NONE;
	struct slice *rest = &out->rest, before;
	size_t n = rest->n;

	while (n > 0 && rest->p[n - 1] == ' ')
		n--;
	rest->n = n;
	if (n <= word.n || rest->p[n - word.n - 1] != ' ' ||
		!slice_equal(slice_skip(*rest, n - word.n), word))
		return;
	before = slice_of(rest->p, n - word.n);
	if (!keyless && slice_token(&before).n == 0)
		return;
	out->noreply = true;
	rest->n = n - word.n;
}

static bool no_more(struct slice rest)
{
	return slice_token(&rest).n == 0;
}

/* Takes the key. Sets the error and returns false if it is missing or too long. */
static inline bool take_request_key(struct request *out)
{
	out->key = slice_token(&out->rest);
	if (out->key.n == 0)
		out->error = bad_form(out);
	else if (out->key.n > command_traits(out->command)->key_max)
		out->error = "CLIENT_ERROR key too long";
	return out->error == NULL;
}

static enum request_status parse_these_keys(
	struct request *out, struct slice keys, const struct request_limits *limits)
{
	size_t key_max = command_traits(out->command)->key_max;
	struct slice key;

	out->key = slice_token(&keys);
	out->rest = keys;
	/* As in memcached, since tools depend on this line. */
	if (out->key.n == 0)
		return refuse_form(
			out, out->command->grammar == GRAMMAR_KEYS ? "ERROR" : bad_form(out));
	for (key = out->key; key.n; key = slice_token(&keys)) {
		if (key.n > key_max)
			return refuse_form(out, "CLIENT_ERROR key too long");
		if (++out->keys > limits->max_keys)
			return refuse_form(out, "CLIENT_ERROR too many keys");
	}
	return REQUEST_READY;
}

/*
 * Parses the data block. If the line has an error, in out->error, the block is not waited for:
 * its bytes are skipped as they arrive. Only after a line that ended with a bare line feed may
 * the block do so, too; otherwise a length that is one too large would be accepted.
 */
enum request_status request_parse_block(struct slice in, const struct request_limits *limits,
	uint64_t bytes, struct request_progress *progress, struct request *out)
{
	struct slice block = slice_skip(in, out->consumed);
	bool bare = out->consumed < 2 || in.p[out->consumed - 2] != '\r';

	if (!out->error && bytes > limits->max_value) {
		out->error = "SERVER_ERROR object too large for cache";
		out->too_large = true;
	}
	if (out->error) {
		out->skip.bytes = (size_t)bytes + (bare ? 0 : 2);
		out->skip.line_end = bare;
		return REQUEST_REFUSED;
	}
	/* One byte after the data shows which line end follows. */
	if (block.n < bytes + 1)
		return request_wait(progress, out->consumed + (size_t)bytes + 1);
	out->data = slice_of(block.p, (size_t)bytes);
	if (block.p[bytes] == '\n' && bare) {
		out->consumed += (size_t)bytes + 1;
		return REQUEST_READY;
	}
	if (block.p[bytes] == '\r' && block.n < bytes + 2)
		return request_wait(progress, out->consumed + (size_t)bytes + 2);
	if (block.p[bytes] != '\r' || block.p[bytes + 1] != '\n')
		return fatal(out, "CLIENT_ERROR bad data chunk");
	out->consumed += (size_t)bytes + 2;
	return REQUEST_READY;
}

/* Takes the length of a data block. Without it the end of the request is unknown. */
static bool take_bytes(struct request *out, struct slice token, uint64_t *bytes)
{
	if (num_parse_u64(token, bytes) && *bytes <= INT_MAX - 2)
		return true;
	out->error = bad_form(out);
	return false;
}

/* Returns whether two spaces follow the verb, as sent by a client with an empty key. */
static bool has_gap(const struct request *out)
{
	return out->rest.n >= 2 && out->rest.p[0] == ' ' && out->rest.p[1] == ' ';
}

/*
 * Returns whether the last token is optional, so that a line with a gap and one token too few
 * can be read in two ways.
 */
static bool is_ambiguous(const struct request *out)
{
	struct slice rest = out->rest;
	uint32_t flags;

	if (slice_token(&rest).n)
		return false;
	return out->command->id == COMMAND_CAS ||
		(out->command->grammar == GRAMMAR_EVENT_DATA && num_parse_u32(out->key, &flags));
}

/*
 * Takes the optional or mandatory number at the end of a request with data. Returns false if
 * the rest is anything else.
 */
static bool take_last_number(struct request *out)
{
	bool cas = out->command->id == COMMAND_CAS;
	struct slice token = slice_token(&out->rest);

	out->has_number = token.n > 0;
	if (token.n == 0)
		return !cas;
	return (cas || out->command->grammar == GRAMMAR_EVENT_DATA) &&
		num_parse_u64(token, &out->number) && no_more(out->rest);
}

/* The words after the key are numbers, so only the key can have control bytes. */
static enum request_status parse_storage(struct slice in, const struct request_limits *limits,
	struct request_progress *progress, struct request *out)
{
	bool gap = has_gap(out);
	struct slice flags, exptime, token;
	uint64_t bytes;

	take_noreply(out);
	(void)take_request_key(out);
	flags = slice_token(&out->rest);
	exptime = slice_token(&out->rest);
	token = slice_token(&out->rest);
	if (gap && token.n && is_ambiguous(out))
		return fatal(out, bad_form(out));
	/*
	 * Without the key each token is one place too far to the front. The data must not be
	 * parsed as commands.
	 */
	if (gap && token.n == 0) {
		out->error = bad_form(out);
		token = exptime;
	}
	/* Without a length there is no data block, as in memcached. */
	if (token.n == 0)
		return refuse_form(out, bad_form(out));
	if (!take_bytes(out, token, &bytes))
		return REQUEST_FATAL;
	if (!num_parse_u32(flags, &out->flags) || !num_parse_exptime(exptime, &out->exptime))
		out->error = bad_form(out);
	if (!take_last_number(out))
		out->error = bad_form(out);
	return request_parse_block(in, limits, bytes, progress, out);
}

/* Returns the error of a base64 key, or NULL. The reply to `me` contains the decoded key. */
static const char *check_encoded_key(const struct request *out)
{
	char decoded[KEY_MAX];
	size_t n = metaflags_decode_key(out->key, decoded);

	if (n == 0)
		return "CLIENT_ERROR error decoding key";
	if (out->command->id == COMMAND_ME && !request_key_valid(slice_of(decoded, n), KEY_MAX))
		return "CLIENT_ERROR me takes no key with spaces or control characters";
	return NULL;
}

/* Returns the error of the line after the key and the length, or NULL. */
static const char *check_meta(struct request *out, bool clean, size_t line)
{
	const char *error;

	if (line > META_LINE_MAX)
		return "CLIENT_ERROR line too long";
	if (!clean && first_control(out->rest) < out->rest.n)
		return control;
	error = metaflags_parse(out->command->id, out->rest, &out->meta);
	return error || !metaflags_has(&out->meta, 'b') ? error : check_encoded_key(out);
}

static enum request_status parse_meta(struct slice in, const struct request_limits *limits,
	bool clean, size_t line, struct request_progress *progress, struct request *out)
{
	bool data = command_traits(out->command)->has_data, gap = has_gap(out);
	struct slice token;
	uint64_t bytes = 0;

	(void)take_request_key(out);
	if (data) {
		token = slice_token(&out->rest);
		/* The key is empty: its token is the length. */
		if (gap && !num_parse_u64(token, &bytes) && num_parse_u64(out->key, &bytes)) {
			out->error = bad_form(out);
			token = out->key;
		}
		if (token.n == 0)
			return refuse_form(out, bad_form(out));
		if (!take_bytes(out, token, &bytes))
			return REQUEST_FATAL;
	}
	if (!out->error)
		out->error = check_meta(out, clean, line);
	if (data)
		return request_parse_block(in, limits, bytes, progress, out);
	return out->error ? REQUEST_REFUSED : REQUEST_READY;
}

static enum request_status parse_exptime(struct request *out, struct slice token)
{
	return num_parse_exptime(token, &out->exptime)
		? REQUEST_READY
		: refuse_form(out, "CLIENT_ERROR invalid exptime argument");
}

/* Takes a key, and the word that must be the rest of the line. */
static bool take_key_word(struct request *out, struct slice *word)
{
	if (!take_request_key(out))
		return false;
	*word = slice_token(&out->rest);
	if (word->n == 0 || !no_more(out->rest))
		out->error = bad_form(out);
	return out->error == NULL;
}

static enum request_status request_parse_arithmetic(
	struct request *out, const struct request_limits *limits)
{
	struct slice delta;

	(void)limits;
	if (!take_key_word(out, &delta))
		return REQUEST_REFUSED;
	if (!num_parse_u64(delta, &out->number))
		return refuse_form(out, "CLIENT_ERROR invalid numeric delta argument");
	return REQUEST_READY;
}

static enum request_status request_parse_touch(
	struct request *out, const struct request_limits *limits)
{
	struct slice time;

	(void)limits;
	return take_key_word(out, &time) ? parse_exptime(out, time) : REQUEST_REFUSED;
}

/* Old clients send a time of 0; memcached refuses all other times. */
static enum request_status request_parse_delete(
	struct request *out, const struct request_limits *limits)
{
	struct slice time;

	(void)limits;
	if (!take_request_key(out))
		return REQUEST_REFUSED;
	time = slice_token(&out->rest);
	if (no_more(out->rest) && (time.n == 0 || slice_equal(time, SLICE("0"))))
		return REQUEST_READY;
	return refuse_form(out, bad_form(out));
}

static enum request_status request_parse_key(
	struct request *out, const struct request_limits *limits)
{
	(void)limits;
	return take_request_key(out) ? REQUEST_READY : REQUEST_REFUSED;
}

static enum request_status request_parse_nothing(
	struct request *out, const struct request_limits *limits)
{
	(void)out;
	(void)limits;
	return REQUEST_READY;
}

static enum request_status request_parse_keys(
	struct request *out, const struct request_limits *limits)
{
	return parse_these_keys(out, out->rest, limits);
}

static enum request_status request_parse_touch_keys(
	struct request *out, const struct request_limits *limits)
{
	struct slice time = slice_token(&out->rest);

	if (no_more(out->rest))
		return refuse_form(out, bad_form(out));
	return parse_exptime(out, time) == REQUEST_READY ? request_parse_keys(out, limits)
							 : REQUEST_REFUSED;
}

/*
 * Takes `count` words off the front of `rest`. Returns them with the spaces between them, or an
 * empty slice if there are too few.
 */
static struct slice take_counted_words(struct slice *rest, uint64_t count)
{
	struct slice all = *rest;

	for (uint64_t i = 0; i < count; i++) {
		if (slice_token(rest).n == 0)
			return slice_of(all.p, 0);
	}
	return slice_of(all.p, all.n - rest->n);
}

/* The number of keys determines which words are keys. */
static enum request_status request_parse_counted_keys(
	struct request *out, const struct request_limits *limits)
{
	struct slice count = slice_token(&out->rest), keys, word, limit;
	uint64_t n;

	if (no_more(out->rest))
		return refuse_form(out, bad_form(out));
	if (!num_parse_u64(count, &n))
		return refuse_form(out, "CLIENT_ERROR invalid count");
	keys = take_counted_words(&out->rest, n);
	word = slice_token(&out->rest);
	limit = slice_token(&out->rest);
	if (keys.n == 0 || !no_more(out->rest))
		return refuse_form(out, bad_form(out));
	if (word.n && (limit.n == 0 || !slice_equal(word, SLICE("limit"))))
		return refuse_form(out, bad_form(out));
	if (word.n && !num_parse_u64(limit, &out->number))
		return refuse_form(out, "CLIENT_ERROR invalid limit");
	return parse_these_keys(out, keys, limits);
}

/* Converts seconds, with up to three decimals, to milliseconds. */
static bool parse_seconds(struct slice word, uint64_t *out)
{
	enum { SECONDS_MAX = 1000000000 };
	uint64_t seconds, unit = 1000;
	struct slice rest = word;

	if (!num_take_u64(&rest, &seconds) || seconds > SECONDS_MAX)
		return false;
	*out = seconds * unit;
	if (rest.n == 0)
		return true;
	if (*rest.p != '.' || rest.n < 2 || rest.n > 4)
		return false;
	for (size_t i = 1; i < rest.n; i++) {
		if (rest.p[i] < '0' || rest.p[i] > '9')
			return false;
		unit /= 10;
		*out += (uint64_t)(rest.p[i] - '0') * unit;
	}
	return true;
}

/* Takes a timeout, which a word must follow. Sets the error and returns false if it is invalid. */
static bool take_timeout(struct request *out)
{
	struct slice seconds = slice_token(&out->rest);

	if (no_more(out->rest))
		out->error = bad_form(out);
	else if (!parse_seconds(seconds, &out->number))
		out->error = "CLIENT_ERROR invalid timeout";
	return out->error == NULL;
}

static enum request_status parse_few_keys(struct request *out, const struct request_limits *limits)
{
	struct request_limits few = *limits;

	if (few.max_keys > WAIT_KEYS_MAX)
		few.max_keys = WAIT_KEYS_MAX;
	return request_parse_keys(out, &few);
}

static enum request_status request_parse_wait_keys(
	struct request *out, const struct request_limits *limits)
{
	return take_timeout(out) ? parse_few_keys(out, limits) : REQUEST_REFUSED;
}

static enum request_status request_parse_wait_key(
	struct request *out, const struct request_limits *limits)
{
	return take_timeout(out) ? request_parse_key(out, limits) : REQUEST_REFUSED;
}

/*
 * Takes a number of elements and an end of lists, which a word must follow. Sets the error and
 * returns false if one is invalid.
 */
static bool take_count_and_end(struct request *out, uint64_t *number)
{
	struct slice count = slice_token(&out->rest), end = slice_token(&out->rest);

	out->flags = slice_equal(end, SLICE("right"));
	if ((!out->flags && !slice_equal(end, SLICE("left"))) || no_more(out->rest))
		out->error = bad_form(out);
	else if (!num_parse_u64(count, number))
		out->error = "CLIENT_ERROR invalid count";
	return out->error == NULL;
}

static enum request_status request_parse_pop_keys(
	struct request *out, const struct request_limits *limits)
{
	return take_count_and_end(out, &out->number) ? request_parse_keys(out, limits)
						     : REQUEST_REFUSED;
}

/* With a count of 0, no element would end the wait. */
static enum request_status request_parse_wait_pop_keys(
	struct request *out, const struct request_limits *limits)
{
	if (!take_timeout(out) || !take_count_and_end(out, &out->extras.count))
		return REQUEST_REFUSED;
	if (out->extras.count == 0)
		return refuse_form(out, "CLIENT_ERROR invalid count");
	return parse_few_keys(out, limits);
}

static enum request_status request_parse_flush(
	struct request *out, const struct request_limits *limits)
{
	struct slice delay = slice_token(&out->rest);

	(void)limits;
	if (!no_more(out->rest))
		return refuse_form(out, bad_form(out));
	return delay.n ? parse_exptime(out, delay) : REQUEST_READY;
}

/* Parses the words of a command whose data block, flags and exptime are known. */
static enum request_status request_parse_storage_words(
	struct request *out, const struct request_limits *limits)
{
	(void)limits;
	if (take_request_key(out) && !take_last_number(out))
		out->error = bad_form(out);
	return out->error ? REQUEST_REFUSED : REQUEST_READY;
}

static enum request_status request_parse_meta_words(
	struct request *out, const struct request_limits *limits)
{
	size_t line = out->rest.n;

	(void)limits;
	if (take_request_key(out))
		out->error = check_meta(out, true, line);
	return out->error ? REQUEST_REFUSED : REQUEST_READY;
}

typedef enum request_status parse_words(struct request *out, const struct request_limits *limits);

static parse_words *const parsers[] = {
#define GRAMMAR(id, keys, before, subject, data, words) [GRAMMAR_##id] = request_parse_##words,
#define ARGS_GRAMMAR(id, ...) [GRAMMAR_##id] = request_parse_key,
#include "protocol/grammars.def"
};

enum request_status request_parse_words(const struct request_limits *limits, struct request *out)
{
	return parsers[out->command->grammar](out, limits);
}

/*
 * Handles an unknown verb. HTTP is closed at once, so that the body of a POST is not parsed as
 * commands.
 */
static enum request_status unknown(struct slice line, struct request *out)
{
	return memmem(line.p, line.n, "HTTP/", 5)
		? REQUEST_HANGUP
		: refuse_form(out, hint_unknown(slice_token(&line)));
}

/*
 * Returns whether keys of the command may have control bytes, as in memcached. Its lines have
 * no other words that could.
 */
static bool takes_any_key(const struct command *command)
{
	uint8_t subject = command_traits(command)->subject;

	return subject == SUBJECT_ITEM || subject == SUBJECT_META;
}

/*
 * Returns whether this is the first byte of memcached's binary protocol, TLS, or Redis's
 * protocol.
 */
static bool is_foreign(struct slice in)
{
	unsigned char first = (unsigned char)in.p[0];

	return first == 0x80 || first == 0x16 || first == '*';
}

/*
 * Returns the line's length without its end, or SIZE_MAX if the end was not received yet.
 * `clean`: it has no control bytes. If the first control byte is the line's end, as in most
 * lines, one pass finds both.
 */
static size_t find_line(struct slice in, size_t *scanned, bool *clean)
{
	const char *end;
	size_t n;

	if (*scanned == 0) {
		size_t at = n = first_control(in);
		if (at < in.n && in.p[at] == '\r')
			at++;
		if (at < in.n && in.p[at] == '\n') {
			*scanned = at;
			*clean = true;
			return n;
		}
	}
	end = memchr(in.p + *scanned, '\n', in.n - *scanned);
	if (!end) {
		*scanned = in.n;
		return SIZE_MAX;
	}
	*scanned = (size_t)(end - in.p);
	n = *scanned > 0 && end[-1] == '\r' ? *scanned - 1 : *scanned;
	*clean = first_control(slice_of(in.p, n)) == n;
	return n;
}

bool request_discards(const struct request *request)
{
	return request->too_large &&
		(request->command->id == COMMAND_SET || request->command->id == COMMAND_MS);
}

/* Parses a command on a set or list whose elements may be in quotes, or literals. */
static __attribute__((noinline)) enum request_status request_parse_quoted(struct slice in,
	const struct request_limits *limits, struct request_progress *progress, struct request *out)
{
	struct quoted_arguments arguments = {
		.rest = out->rest,
		.may_have_noreply = out->command->noreply,
		.consumed = out->consumed,
	};
	enum request_status status = quoted_parse(in, limits, progress, &arguments);

	out->rest = arguments.rest;
	out->consumed = arguments.consumed;
	out->noreply = arguments.noreply;
	out->error = arguments.error;
	if (status != REQUEST_READY)
		return status;
	status = request_parse_words(limits, out);
	if (status != REQUEST_READY || request_key_valid(out->key, out->key.n))
		return status;
	return refuse_form(out, "CLIENT_ERROR a key is a word");
}

enum request_status request_parse(struct slice in, const struct request_limits *limits,
	struct request_progress *progress, struct request *out)
{
	const struct grammar_traits *traits;
	struct slice line;
	bool clean = false;
	size_t n;

	*out = (struct request){ 0 };
	if (in.n == 0 || in.n < progress->needed)
		return REQUEST_MORE;
	if (is_foreign(in))
		return fatal(out, "CLIENT_ERROR only the memcached protocols are supported here");
	n = find_line(in, &progress->scanned, &clean);
	if (n == SIZE_MAX ? in.n >= limits->max_line : progress->scanned + 1 > limits->max_line)
		return fatal(out, "CLIENT_ERROR line too long");
	if (n == SIZE_MAX)
		return REQUEST_MORE;

	line = slice_of(in.p, n);
	out->consumed = progress->scanned + 1;
	out->rest = line;
	out->command = command_lookup(slice_token(&out->rest));
	if (!out->command)
		return unknown(line, out);
	traits = command_traits(out->command);
	if (traits->takes_args && quoted_is_possible(out->rest))
		return request_parse_quoted(in, limits, progress, out);
	/* memcached ends a line at a zero byte. */
	if (!clean && (!takes_any_key(out->command) || memchr(line.p, 0, line.n)))
		out->error = control;
	if (traits->subject == SUBJECT_META)
		return parse_meta(in, limits, clean, n, progress, out);
	if (traits->has_data)
		return parse_storage(in, limits, progress, out);
	if (out->command->noreply)
		take_noreply(out);
	return out->error ? REQUEST_REFUSED : request_parse_words(limits, out);
}
