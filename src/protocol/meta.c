/*
 * The meta dialect reads with `mg`. memcached sends many replies to `mg` in one write, but
 * needs one system call for each reply to `get`; and only `mg` returns the time to live. Writes
 * use the classic verbs where possible, since an `ms` that fails deletes the item.
 */
#include "protocol/dialect.h"
#include "protocol/metaflags.h"
#include "protocol/request.h"
#include "util/num.h"

/* --- writes that need a meta command; see call_is_meta_write --- */

static bool is_arithmetic(enum call_verb verb)
{
	return verb == CALL_INCR || verb == CALL_DECR;
}

static const char *meta_command(enum call_verb verb)
{
	return call_stores(verb) ? "ms " : is_arithmetic(verb) ? "ma " : "md ";
}

static const char modes[][4] = {
	[CALL_ADD] = " ME",
	[CALL_REPLACE] = " MR",
	[CALL_APPEND] = " MA",
	[CALL_PREPEND] = " MP",
	[CALL_DECR] = " MD",
	[CALL_DELETE] = "",
};

static void add_flag(struct buf *out, const char *letter, uint64_t number)
{
	buf_add(out, letter, 2);
	buf_add_u64(out, number);
}

static void add_time(struct buf *out, const char *letter, int64_t seconds)
{
	buf_add(out, letter, 2);
	buf_add_i64(out, seconds);
}

static void add_arithmetic(const struct call *call, struct buf *out)
{
	add_flag(out, " D", call->number);
	if (call->vivifies) {
		add_time(out, " N", call->exptime);
		add_flag(out, " J", call->initial);
	}
	BUF_ADD(out, " v");
}

static void encode_write(const struct call *call, struct buf *out)
{
	bool stores = call_stores(call->verb);
	uint64_t compare = call->verb == CALL_CAS ? call->number : call->compare;

	buf_add(out, meta_command(call->verb), 3);
	if (call->want & WANT_ENCODED)
		metaflags_encode_key(call->key, out);
	else
		buf_add_slice(out, call->key);
	if (stores) {
		BUF_ADD(out, " ");
		buf_add_u64(out, call->value.n);
	}
	if (call->want & WANT_ENCODED)
		BUF_ADD(out, " b");
	buf_add(out, modes[call->verb], strlen(modes[call->verb]));
	if (stores && call->flags)
		add_flag(out, " F", call->flags);
	if (stores && call->exptime)
		add_time(out, " T", call->exptime);
	if (compare)
		add_flag(out, " C", compare);
	if (is_arithmetic(call->verb))
		add_arithmetic(call, out);
	if (call->verb != CALL_DELETE)
		BUF_ADD(out, " c");
	BUF_ADD(out, "\r\n");
	if (stores) {
		buf_add_slice(out, call->value);
		BUF_ADD(out, "\r\n");
	}
}

/* Servers before 1.6.10 do not return it. */
static bool take_cas(struct slice flags, struct result *out)
{
	struct slice flag;

	while ((flag = slice_token(&flags)).n) {
		if (flag.p[0] == 'c')
			return num_parse_u64(slice_skip(flag, 1), &out->cas);
	}
	return true;
}

static ssize_t decode_number(struct slice in, struct slice rest, size_t at, struct result *out)
{
	struct expect digits = { .value_max = NUM_U64_MAX };
	struct slice value = slice_of("", 0);
	uint64_t n;
	ssize_t taken;

	if (!num_parse_u64(slice_token(&rest), &n) || !take_cas(rest, out))
		return -1;
	taken = dialect_block(in, at, n, &digits, &value);
	if (taken > 0 && !num_parse_u64(value, &out->number))
		return -1;
	out->status = RESULT_NUMBER;
	return taken;
}

static ssize_t decode_write(struct slice in, const struct expect *expect, struct result *out)
{
	struct slice line, rest, code;
	size_t at;

	if (!dialect_line(in, &line, &at))
		return dialect_incomplete(in);
	rest = line;
	code = slice_token(&rest);
	if (is_arithmetic(expect->verb) && slice_equal(code, SLICE("VA")))
		return decode_number(in, rest, at, out);
	if (!is_arithmetic(expect->verb) && slice_equal(code, SLICE("HD"))) {
		out->status = RESULT_DONE;
		return take_cas(rest, out) ? (ssize_t)at : -1;
	}
	if (slice_equal(code, SLICE("NF")))
		out->status = RESULT_MISS;
	else if (slice_equal(code, SLICE("EX")))
		out->status = RESULT_EXISTS;
	else if (slice_equal(code, SLICE("NS")) && expect->verb != CALL_DELETE)
		out->status = RESULT_NOT_STORED;
	else
		return dialect_error(line, at, expect, out);
	return (ssize_t)at;
}

/* --- reads --- */

/* Maximum size of the rest of the line after the key: a time, all flags, and the line end. */
enum { MG_MAX = 2 + NUM_U64_MAX + 1 + 4 + 4 * 2 + 2 };

static void meta_encode(const struct call *call, struct buf *out)
{
	char *start, *p;

	if (call_is_meta_write(call->verb, call->want)) {
		encode_write(call, out);
		return;
	}
	if (call->verb != CALL_GET && call->verb != CALL_GAT) {
		dialect_classic.encode(call, out);
		return;
	}
	BUF_ADD(out, "mg ");
	if (call->want & WANT_ENCODED) {
		metaflags_encode_key(call->key, out);
		BUF_ADD(out, " b");
	}
	start = p = buf_reserve(out, call->key.n + MG_MAX);
	if (!(call->want & WANT_ENCODED))
		p = slice_write(p, call->key);
	if (call->verb == CALL_GAT) {
		p = slice_write(p, SLICE(" T"));
		p += num_format_i64(p, call->exptime);
	}
	/*
	 * The reply contains the key, so that it can be checked. A key that was sent in base64
	 * is left out: it is returned in the form in which it was stored, in base64 or not.
	 */
	p = slice_write(p, call->want & WANT_ENCODED ? SLICE(" f") : SLICE(" k f"));
	if (call->want & WANT_CAS)
		p = slice_write(p, SLICE(" c"));
	if (call->want & WANT_TTL)
		p = slice_write(p, SLICE(" t"));
	if (call->want & WANT_SIZE)
		p = slice_write(p, SLICE(" s"));
	if (call->want & WANT_VALUE)
		p = slice_write(p, SLICE(" v"));
	p = slice_write(p, SLICE("\r\n"));
	buf_commit(out, (size_t)(p - start));
}

/* Parses the flags of a reply, in any order. Ignores unknown flags of newer servers. */
static bool parse_flags(
	struct slice flags, struct slice *key, bool *base64, bool *cas, struct result *out)
{
	struct slice flag;
	bool good = true;

	out->ttl = TTL_UNKNOWN;
	while (good && (flag = slice_token(&flags)).n) {
		struct slice token = slice_skip(flag, 1);

		switch (flag.p[0]) {
		case 'k':
			*key = token;
			break;
		case 'b':
			*base64 = true;
			break;
		case 'f':
			good = num_parse_u32(token, &out->flags);
			break;
		case 'c':
			good = *cas = num_parse_u64(token, &out->cas);
			break;
		case 't':
			out->ttl = TTL_NEVER; /* This is -1, the usual value. */
			good = slice_equal(token, SLICE("-1")) || num_parse_i64(token, &out->ttl);
			break;
		case 's':
			good = num_parse_u64(token, &out->size);
			break;
		}
	}
	return good;
}

static bool same_decoded_key(struct slice key, const struct expect *expect)
{
	char decoded[KEY_MAX + 4];

	return key.n <= sizeof(decoded) / 3 * 4 &&
		slice_equal(slice_of(decoded, metaflags_decode_key(key, decoded)), expect->key);
}

/* Compares the key. The reply for an item that was stored with a base64 key has a base64 key. */
static bool same_key(struct slice key, bool base64, const struct expect *expect)
{
	if (expect->want & WANT_ENCODED)
		return !key.p;
	return base64 ? same_decoded_key(key, expect) : slice_equal(key, expect->key);
}

/*
 * The following functions parse the bytes between `*at` and `end`, and advance `*at`. Two
 * pointers are several times faster here than a slice, as only a few bytes are parsed at a
 * time.
 */
static inline bool take_literal(const char **at, const char *end, struct slice text)
{
	if ((size_t)(end - *at) < text.n || memcmp(*at, text.p, text.n) != 0)
		return false;
	*at += text.n;
	return true;
}

static inline bool take_expected_key(const char **at, const char *end, struct slice key)
{
	if ((size_t)(end - *at) < key.n || word_compare(*at, key.p, key.n) != 0)
		return false;
	*at += key.n;
	return true;
}

/* Parses a number. Leaves some of the digits if there are more than are safe. */
static inline bool take_digits(const char **at, const char *end, uint64_t *out)
{
	const char *p = *at, *start = p;
	uint64_t v = 0;

	if (end - p > NUM_SAFE_DIGITS)
		end = p + NUM_SAFE_DIGITS;
	for (; p < end && *p >= '0' && *p <= '9'; p++)
		v = v * 10 + (uint64_t)(*p - '0');
	*out = v;
	*at = p;
	return p > start;
}

/* Parses a space, the letter of a flag, and its number. */
static inline bool take_number_flag(const char **at, const char *end, char letter, uint64_t *number)
{
	if (end - *at < 2 || (*at)[0] != ' ' || (*at)[1] != letter)
		return false;
	*at += 2;
	return take_digits(at, end, number);
}

static inline bool take_ttl(const char **at, const char *end, int64_t *ttl)
{
	uint64_t seconds;

	if (take_literal(at, end, SLICE(" t-1"))) {
		*ttl = TTL_NEVER;
		return true;
	}
	if (!take_number_flag(at, end, 't', &seconds) || seconds > INT64_MAX)
		return false;
	*ttl = (int64_t)seconds;
	return true;
}

/*
 * Decodes a hit in the form that memcached sends, with the flags in the order of the call: VA
 * <bytes>, or HD without a value, followed by k<key> f<flags> [c<cas>] [t<seconds>] [s<size>].
 * Returns 0 for anything else, which may be valid, too.
 */
static ssize_t decode_plain(struct slice in, const struct expect *expect, struct result *out)
{
	const char *at = in.p, *end = in.p + in.n;
	bool value = expect->want & WANT_VALUE;
	uint64_t n = 0, flags;

	if (value ? !take_literal(&at, end, SLICE("VA ")) || !take_digits(&at, end, &n)
		  : !take_literal(&at, end, SLICE("HD")))
		return 0;
	if (!take_literal(&at, end, SLICE(" k")) || !take_expected_key(&at, end, expect->key))
		return 0;
	if (!take_number_flag(&at, end, 'f', &flags) || flags > UINT32_MAX)
		return 0;
	if (expect->want & WANT_CAS && !take_number_flag(&at, end, 'c', &out->cas))
		return 0;
	out->ttl = TTL_UNKNOWN;
	if (expect->want & WANT_TTL && !take_ttl(&at, end, &out->ttl))
		return 0;
	out->size = n;
	if (expect->want & WANT_SIZE && !take_number_flag(&at, end, 's', &out->size))
		return 0;
	if (!take_literal(&at, end, SLICE("\r\n")))
		return 0;
	out->status = RESULT_HIT;
	out->flags = (uint32_t)flags;
	return value ? dialect_block(in, (size_t)(at - in.p), n, expect, &out->value)
		     : (ssize_t)(at - in.p);
}

/* Not inline, as few replies need it. */
static __attribute__((noinline)) ssize_t decode_any(
	struct slice in, const struct expect *expect, struct result *out)
{
	bool value = expect->want & WANT_VALUE, base64 = false, has_cas = false;
	struct slice line, rest, code, key = { NULL, 0 };
	uint64_t n = 0;
	size_t at;

	if (!dialect_line(in, &line, &at))
		return dialect_incomplete(in);
	rest = line;
	code = slice_token(&rest);
	if (slice_equal(code, SLICE("EN"))) {
		/* Only some versions of memcached return the key in a miss. */
		bool good = parse_flags(rest, &key, &base64, &has_cas, out) &&
			(!key.p || same_key(key, base64, expect));
		out->status = RESULT_MISS;
		return good ? (ssize_t)at : -1;
	}
	if (!slice_equal(code, value ? SLICE("VA") : SLICE("HD")))
		return dialect_error(line, at, expect, out);
	if (value && !num_parse_u64(slice_token(&rest), &n))
		return -1;
	if (!parse_flags(rest, &key, &base64, &has_cas, out) || !same_key(key, base64, expect))
		return -1;
	if ((expect->want & WANT_CAS) && !has_cas)
		return -1;
	out->status = RESULT_HIT;
	if (!value)
		return (ssize_t)at;
	out->size = n;
	return dialect_block(in, at, n, expect, &out->value);
}

static ssize_t meta_decode(struct slice in, const struct expect *expect, struct result *out)
{
	ssize_t taken = 0;

	if (call_is_meta_write(expect->verb, expect->want))
		return decode_write(in, expect, out);
	if (expect->verb != CALL_GET && expect->verb != CALL_GAT)
		return dialect_classic.decode(in, expect, out);
	if (!(expect->want & WANT_ENCODED))
		taken = decode_plain(in, expect, out);
	return taken ? taken : decode_any(in, expect, out);
}

const struct dialect dialect_meta = { "meta", meta_encode, meta_decode };
