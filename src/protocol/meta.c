/*
 * The meta dialect reads with `mg`. memcached sends many replies to `mg` in one write, but one system call for each reply to
 * `get`; and only `mg` gives the time to live. Writes use the classic verbs where these can say it, since an `ms` that fails
 * deletes the item.
 */
#include "protocol/dialect.h"
#include "protocol/metaflags.h"
#include "protocol/metawrite.h"
#include "protocol/request.h"
#include "util/num.h"

/* The largest line without its key: "mg ", a time, all flags, and the line end. */
enum { MG_MAX = 3 + 2 + NUM_U64_MAX + 1 + 4 + 4 * 2 + 2 };

/* The reply would have the key as the item was stored, in base64 or not: it is not asked for. */
static void encode_with_encoded_key(const struct call *call, struct buf *out)
{
	BUF_ADD(out, "mg ");
	metaflags_encode_key(call->key, out);
	BUF_ADD(out, " b");
	if (call->verb == CALL_GAT) {
		BUF_ADD(out, " T");
		buf_add_i64(out, call->exptime);
	}
	BUF_ADD(out, " f c v\r\n");
}

static void meta_encode(const struct call *call, struct buf *out)
{
	char *start, *p;

	if (call_is_meta_write(call->verb, call->want)) {
		metawrite_encode(call, out);
		return;
	}
	if (call->verb != CALL_GET && call->verb != CALL_GAT) {
		dialect_classic.encode(call, out);
		return;
	}
	if (call->want & WANT_ENCODED) {
		encode_with_encoded_key(call, out);
		return;
	}
	start = p = buf_reserve(out, call->key.n + MG_MAX);
	p = slice_write(p, SLICE("mg "));
	p = slice_write(p, call->key);
	if (call->verb == CALL_GAT) {
		p = slice_write(p, SLICE(" T"));
		p += num_format_i64(p, call->exptime);
	}
	/* The reply names the key, so that it can be checked. */
	p = slice_write(p, SLICE(" k f"));
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

static bool parse_ttl(struct slice token, int64_t *ttl)
{
	if (slice_equal(token, SLICE("-1"))) {
		*ttl = TTL_NEVER;
		return true;
	}
	return num_parse_i64(token, ttl);
}

/* The flags of a reply, in any order. Unknown ones, of newer servers, are ignored. */
static bool parse_flags(struct slice flags, struct slice *key, bool *base64, bool *cas, struct result *out)
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
			good = parse_ttl(token, &out->ttl);
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

/* An item that was stored with a base64 key replies with a base64 key. */
static bool same_key(struct slice key, bool base64, const struct expect *expect)
{
	if (expect->want & WANT_ENCODED)
		return !key.p;
	return base64 ? same_decoded_key(key, expect) : slice_equal(key, expect->key);
}

static bool take(struct slice *s, struct slice text)
{
	if (!slice_starts(*s, text))
		return false;
	*s = slice_skip(*s, text.n);
	return true;
}

/*
 * A value as memcached gives it, with the flags in the order of the call: VA <bytes> k<key> f<flags> [c<cas>]. Gives 0 for all else,
 * which may be right, too.
 */
static ssize_t decode_plain(struct slice in, const struct expect *expect, struct result *out)
{
	struct slice rest = in;
	uint64_t n, flags;

	if (!take(&rest, SLICE("VA ")) || !num_take_u64(&rest, &n) || !take(&rest, SLICE(" k")) ||
		!take(&rest, expect->key))
		return 0;
	if (!take(&rest, SLICE(" f")) || !num_take_u64(&rest, &flags) || flags > UINT32_MAX)
		return 0;
	if (expect->want & WANT_CAS && (!take(&rest, SLICE(" c")) || !num_take_u64(&rest, &out->cas)))
		return 0;
	if (!take(&rest, SLICE("\r\n")))
		return 0;
	out->status = RESULT_HIT;
	out->flags = (uint32_t)flags;
	out->ttl = TTL_UNKNOWN;
	out->size = n;
	return dialect_block(in, in.n - rest.n, n, expect, &out->value);
}

static ssize_t meta_decode(struct slice in, const struct expect *expect, struct result *out)
{
	bool value = expect->want & WANT_VALUE, base64 = false, has_cas = false;
	struct slice line, rest, code, key = { NULL, 0 };
	uint64_t n = 0;
	size_t at;

	if (expect->verb == CALL_GET && (expect->want & ~(unsigned)WANT_CAS) == WANT_VALUE) {
		ssize_t taken = decode_plain(in, expect, out);
		if (taken)
			return taken;
	}
	if (call_is_meta_write(expect->verb, expect->want))
		return metawrite_decode(in, expect, out);
	if (expect->verb != CALL_GET && expect->verb != CALL_GAT)
		return dialect_classic.decode(in, expect, out);
	if (!dialect_line(in, &line, &at))
		return dialect_incomplete(in);
	rest = line;
	code = slice_token(&rest);
	if (slice_equal(code, SLICE("EN"))) {
		/* Only some versions of memcached name the key in a miss. */
		bool good =
			parse_flags(rest, &key, &base64, &has_cas, out) && (!key.p || same_key(key, base64, expect));
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

const struct dialect dialect_meta = { "meta", meta_encode, meta_decode };
