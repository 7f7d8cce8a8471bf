#include "protocol/request.h"

#include <limits.h>

#include "protocol/commands.h"
#include "protocol/hint.h"
#include "protocol/metaflags.h"
#include "util/num.h"

static const char control[] = "CLIENT_ERROR control character in line";

static enum request_status refuse(struct request *out, const char *error)
{
	out->error = error;
	return REQUEST_REFUSED;
}

static enum request_status fatal(struct request *out, const char *error)
{
	out->error = error;
	return REQUEST_FATAL;
}

/* Too few words, too many, or another than the form of the command has at its place. */
static const char *bad_form(const struct request *out)
{
	return command_usage(out->command->id);
}

/* The index of the first control byte, or s.n. */
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
	return !memchr(key.p, ' ', key.n) && !memchr(key.p, '\n', key.n) && !memchr(key.p, 0, key.n);
}

/* Removes `noreply` from the end of the line. If the command has a key, and this is the first token, it is the key. */
static void take_noreply(struct request *out)
{
	static const struct slice word = { "noreply", 7 };
	bool keyless = out->command->grammar == GRAMMAR_FLUSH || out->command->grammar == GRAMMAR_ARGS;
	struct slice *rest = &out->rest, before;
	size_t n = rest->n;

	while (n > 0 && rest->p[n - 1] == ' ')
		n--;
	rest->n = n;
	if (n <= word.n || rest->p[n - word.n - 1] != ' ' || !slice_equal(slice_skip(*rest, n - word.n), word))
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

/* Takes the key; sets the error, and gives false, if it is missing or too long. */
static inline bool take_key(struct request *out, size_t max)
{
	out->key = slice_token(&out->rest);
	if (out->key.n == 0)
		out->error = bad_form(out);
	else if (out->key.n > max)
		out->error = "CLIENT_ERROR key too long";
	return out->error == NULL;
}

static enum request_status parse_keys(
	struct request *out, struct slice keys, size_t key_max, const struct request_limits *limits)
{
	struct slice key;

	out->key = slice_token(&keys);
	out->rest = keys;
	/* As memcached: tools look for just this. */
	if (out->key.n == 0)
		return refuse(out, out->command->grammar == GRAMMAR_KEYS ? "ERROR" : bad_form(out));
	for (key = out->key; key.n; key = slice_token(&keys)) {
		if (key.n > key_max)
			return refuse(out, "CLIENT_ERROR key too long");
		if (++out->keys > limits->max_keys)
			return refuse(out, "CLIENT_ERROR too many keys");
	}
	return REQUEST_READY;
}

/*
 * The data block. If the line has an error, in out->error, the block is not awaited: the client skips it as it comes. A block may
 * end with a line feed alone only if the line did: else a length that is one too large would pass.
 */
enum request_status request_parse_block(struct slice in, const struct request_limits *limits, uint64_t bytes,
	struct request_progress *progress, struct request *out)
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
	/* One byte behind the data shows which line end comes. */
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

/* The length of a data block. Without it the end of the request is unknown. */
static bool take_bytes(struct request *out, struct slice token, uint64_t *bytes)
{
	if (num_parse_u64(token, bytes) && *bytes <= INT_MAX - 2)
		return true;
	out->error = bad_form(out);
	return false;
}

/* Two spaces behind the verb: a client with an empty key writes them. */
static bool has_gap(const struct request *out)
{
	return out->rest.n >= 2 && out->rest.p[0] == ' ' && out->rest.p[1] == ' ';
}

/* If the last token may be missing, a line with a gap and one token too few has two readings. */
static bool is_ambiguous(const struct request *out)
{
	struct slice rest = out->rest;
	uint32_t flags;

	if (slice_token(&rest).n)
		return false;
	return out->command->id == COMMAND_CAS ||
		(out->command->grammar == GRAMMAR_EVENT_DATA && num_parse_u32(out->key, &flags));
}

/* Takes the number that may end a request with data, or must. Gives false if the rest is anything else. */
static bool take_last_number(struct request *out)
{
	bool cas = out->command->id == COMMAND_CAS;
	struct slice token = slice_token(&out->rest);

	out->has_number = token.n > 0;
	if (token.n == 0)
		return !cas;
	return (cas || out->command->grammar == GRAMMAR_EVENT_DATA) && num_parse_u64(token, &out->number) &&
		no_more(out->rest);
}

/* The words after the key are numbers, so only the key can have control bytes. */
static enum request_status parse_storage(
	struct slice in, const struct request_limits *limits, struct request_progress *progress, struct request *out)
{
	bool gap = has_gap(out);
	struct slice flags, exptime, token;
	uint64_t bytes;

	take_noreply(out);
	(void)take_key(out, KEY_MAX);
	flags = slice_token(&out->rest);
	exptime = slice_token(&out->rest);
	token = slice_token(&out->rest);
	if (gap && token.n && is_ambiguous(out))
		return fatal(out, bad_form(out));
	/* Without the key each token is one place too far to the front. The data must not run as commands. */
	if (gap && token.n == 0) {
		out->error = bad_form(out);
		token = exptime;
	}
	/* Without a length there is no data block, as in memcached. */
	if (token.n == 0)
		return refuse(out, bad_form(out));
	if (!take_bytes(out, token, &bytes))
		return REQUEST_FATAL;
	if (!num_parse_u32(flags, &out->flags) || !num_parse_exptime(exptime, &out->exptime))
		out->error = bad_form(out);
	if (!take_last_number(out))
		out->error = bad_form(out);
	return request_parse_block(in, limits, bytes, progress, out);
}

/* The fault of a base64 key, or NULL. The reply to `me` has the decoded key in it. */
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

/* The fault of the line behind the key and the length, or NULL. */
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

static enum request_status parse_meta(struct slice in, const struct request_limits *limits, bool clean, size_t line,
	struct request_progress *progress, struct request *out)
{
	bool data = out->command->grammar == GRAMMAR_META_DATA, gap = has_gap(out);
	struct slice token;
	uint64_t bytes = 0;

	(void)take_key(out, KEY_MAX);
	if (data) {
		token = slice_token(&out->rest);
		/* The key is empty: its token is the length. */
		if (gap && !num_parse_u64(token, &bytes) && num_parse_u64(out->key, &bytes)) {
			out->error = bad_form(out);
			token = out->key;
		}
		if (token.n == 0)
			return refuse(out, bad_form(out));
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
	return num_parse_exptime(token, &out->exptime) ? REQUEST_READY
						       : refuse(out, "CLIENT_ERROR invalid exptime argument");
}

/* A key and the word behind it: of arithmetic, delete and touch. */
static enum request_status parse_key_word(struct request *out)
{
	enum grammar grammar = out->command->grammar;
	struct slice word;

	if (!take_key(out, KEY_MAX))
		return REQUEST_REFUSED;
	word = slice_token(&out->rest);
	if (grammar == GRAMMAR_DELETE) {
		/* Old clients send a time of 0; memcached refuses all others. */
		bool good = no_more(out->rest) && (word.n == 0 || slice_equal(word, SLICE("0")));
		return good ? REQUEST_READY : refuse(out, bad_form(out));
	}
	if (word.n == 0 || !no_more(out->rest))
		return refuse(out, bad_form(out));
	if (grammar == GRAMMAR_TOUCH)
		return parse_exptime(out, word);
	if (!num_parse_u64(word, &out->number))
		return refuse(out, "CLIENT_ERROR invalid numeric delta argument");
	return REQUEST_READY;
}

static enum request_status parse_touch_keys(struct request *out, const struct request_limits *limits)
{
	struct slice time = slice_token(&out->rest), rest = out->rest;

	if (slice_token(&rest).n == 0)
		return refuse(out, bad_form(out));
	if (parse_exptime(out, time) != REQUEST_READY)
		return REQUEST_REFUSED;
	return parse_keys(out, out->rest, KEY_MAX, limits);
}

/*
 * Takes `count` words off the front of `rest`. Returns them with the spaces between them, or an empty slice if there
 * are too few.
 */
static struct slice take_words(struct slice *rest, uint64_t count)
{
	struct slice all = *rest;

	for (uint64_t i = 0; i < count; i++) {
		if (slice_token(rest).n == 0)
			return slice_of(all.p, 0);
	}
	return slice_of(all.p, all.n - rest->n);
}

/* The number of keys shows which of the words are keys. */
static enum request_status parse_counted_keys(struct request *out, const struct request_limits *limits)
{
	struct slice count = slice_token(&out->rest), keys, word, limit;
	uint64_t n;

	if (no_more(out->rest))
		return refuse(out, bad_form(out));
	if (!num_parse_u64(count, &n))
		return refuse(out, "CLIENT_ERROR invalid count");
	keys = take_words(&out->rest, n);
	word = slice_token(&out->rest);
	limit = slice_token(&out->rest);
	if (keys.n == 0 || !no_more(out->rest))
		return refuse(out, bad_form(out));
	if (word.n && (limit.n == 0 || !slice_equal(word, SLICE("limit"))))
		return refuse(out, bad_form(out));
	if (word.n && !num_parse_u64(limit, &out->number))
		return refuse(out, "CLIENT_ERROR invalid limit");
	return parse_keys(out, keys, COLLECTION_KEY_MAX, limits);
}

/* Seconds, with up to three decimals, to milliseconds. */
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

static enum request_status parse_wait_keys(struct request *out, const struct request_limits *limits)
{
	struct slice seconds = slice_token(&out->rest), rest = out->rest;

	if (slice_token(&rest).n == 0)
		return refuse(out, bad_form(out));
	if (!parse_seconds(seconds, &out->number))
		return refuse(out, "CLIENT_ERROR invalid timeout");
	if (out->command->grammar == GRAMMAR_WAIT_MOVE)
		return take_key(out, COLLECTION_KEY_MAX) ? REQUEST_READY : REQUEST_REFUSED;
	return parse_keys(out, out->rest, COLLECTION_KEY_MAX, limits);
}

static enum request_status parse_pop_keys(struct request *out, const struct request_limits *limits)
{
	struct slice count = slice_token(&out->rest), end = slice_token(&out->rest), rest = out->rest;

	out->flags = slice_equal(end, SLICE("right"));
	if ((!out->flags && !slice_equal(end, SLICE("left"))) || slice_token(&rest).n == 0)
		return refuse(out, bad_form(out));
	if (!num_parse_u64(count, &out->number))
		return refuse(out, "CLIENT_ERROR invalid count");
	return parse_keys(out, out->rest, COLLECTION_KEY_MAX, limits);
}

static enum request_status parse_flush(struct request *out)
{
	struct slice delay = slice_token(&out->rest);

	if (!no_more(out->rest))
		return refuse(out, bad_form(out));
	return delay.n ? parse_exptime(out, delay) : REQUEST_READY;
}

/* Parses the words of a line without a data block. */
static enum request_status parse_words(struct request *out, const struct request_limits *limits)
{
	size_t max = COLLECTION_KEY_MAX;

	switch (out->command->grammar) {
	case GRAMMAR_KEYS:
		return parse_keys(out, out->rest, KEY_MAX, limits);
	case GRAMMAR_TOUCH_KEYS:
		return parse_touch_keys(out, limits);
	case GRAMMAR_ARITHMETIC:
	case GRAMMAR_DELETE:
	case GRAMMAR_TOUCH:
		return parse_key_word(out);
	case GRAMMAR_FLUSH:
		return parse_flush(out);
	case GRAMMAR_COLLECTION_KEYS:
		return parse_keys(out, out->rest, COLLECTION_KEY_MAX, limits);
	case GRAMMAR_COUNTED_KEYS:
		return parse_counted_keys(out, limits);
	case GRAMMAR_WAIT_KEYS:
	case GRAMMAR_WAIT_MOVE:
		return parse_wait_keys(out, limits);
	case GRAMMAR_POP_KEYS:
		return parse_pop_keys(out, limits);
	case GRAMMAR_KEY_ARGS:
		max = KEY_MAX;
		break;
	case GRAMMAR_ARGS:
	case GRAMMAR_BARE:
		return REQUEST_READY;
	default:
		break;
	}
	return take_key(out, max) ? REQUEST_READY : REQUEST_REFUSED;
}

enum request_status request_parse_words(const struct request_limits *limits, struct request *out)
{
	size_t line = out->rest.n;

	switch (out->command->grammar) {
	case GRAMMAR_STORAGE:
	case GRAMMAR_EVENT_DATA:
		if (take_key(out, KEY_MAX) && !take_last_number(out))
			out->error = bad_form(out);
		return out->error ? REQUEST_REFUSED : REQUEST_READY;
	case GRAMMAR_META:
	case GRAMMAR_META_DATA:
		if (take_key(out, KEY_MAX))
			out->error = check_meta(out, true, line);
		return out->error ? REQUEST_REFUSED : REQUEST_READY;
	default:
		return parse_words(out, limits);
	}
}

/* An unknown verb. HTTP is closed at once, so that the body of a POST is not read as commands. */
static enum request_status unknown(struct slice line, struct request *out)
{
	return memmem(line.p, line.n, "HTTP/", 5) ? REQUEST_HANGUP : refuse(out, hint_unknown(slice_token(&line)));
}

/* Whether the keys of a command may have control bytes, as in memcached: its lines have nothing else that could have them. */
static bool takes_any_key(const struct command *command)
{
	switch (command->grammar) {
	case GRAMMAR_STORAGE:
	case GRAMMAR_ARITHMETIC:
	case GRAMMAR_DELETE:
	case GRAMMAR_TOUCH:
	case GRAMMAR_KEYS:
	case GRAMMAR_TOUCH_KEYS:
	case GRAMMAR_META:
	case GRAMMAR_META_DATA:
		return true;
	default:
		return false;
	}
}

/* The first byte of memcached's binary protocol, TLS, or Redis's protocol. */
static bool is_foreign(struct slice in)
{
	unsigned char first = (unsigned char)in.p[0];

	return first == 0x80 || first == 0x16 || first == '*';
}

/*
 * Gives the line's length without its end, or SIZE_MAX if the end has not come; `clean`: it has no control bytes. If the first
 * control byte is the line's end, as in most lines, one pass finds both.
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
	return request->too_large && (request->command->id == COMMAND_SET || request->command->id == COMMAND_MS);
}

enum request_status request_parse(
	struct slice in, const struct request_limits *limits, struct request_progress *progress, struct request *out)
{
	struct slice line;
	bool clean = false;
	size_t n;

	*out = (struct request){ 0 };
	if (in.n == 0 || in.n < progress->needed)
		return REQUEST_MORE;
	if (is_foreign(in))
		return fatal(out, "CLIENT_ERROR only the protocols of memcached are spoken here");
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
	/* memcached ends a line at a zero byte. */
	if (!clean && (!takes_any_key(out->command) || memchr(line.p, 0, line.n)))
		out->error = control;
	switch (out->command->grammar) {
	case GRAMMAR_STORAGE:
	case GRAMMAR_EVENT_DATA:
		return parse_storage(in, limits, progress, out);
	case GRAMMAR_META:
	case GRAMMAR_META_DATA:
		return parse_meta(in, limits, clean, n, progress, out);
	default:
		if (out->command->noreply)
			take_noreply(out);
		return out->error ? REQUEST_REFUSED : parse_words(out, limits);
	}
}
