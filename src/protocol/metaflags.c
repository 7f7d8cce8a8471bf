#include "protocol/metaflags.h"

#include "protocol/commands.h"
#include "util/num.h"

/*
 * memcached accepts 20 tokens, including flags. On an `ms` with more it gets out of sync: it
 * parses the data block as commands.
 */
enum { FLAGS_MAX = 16 };

static bool is_one_of(const char *letters, char c)
{
	return c && strchr(letters, c);
}

/* Returns whether M may have this argument. */
static bool is_mode(command_id command, struct slice mode)
{
	const char *known = command == COMMAND_MS ? "EeAaPpRrSs"
		: command == COMMAND_MA           ? "IiDd+-"
						  : NULL;

	return known ? mode.n == 1 && is_one_of(known, mode.p[0]) : mode.n > 0;
}

/*
 * memcached checks the flags of the four commands in the same way, and each command ignores
 * flags without a meaning to it. P and L are reserved for proxies: servers ignore them.
 */
static const char *check_flag(command_id command, struct slice flag)
{
	static const char bad_token[] = "CLIENT_ERROR bad token in command line format";
	struct slice token = slice_skip(flag, 1);
	uint64_t number;
	uint32_t flags;
	int64_t seconds;

	if (is_one_of("cfhklqstuvxILP", flag.p[0]))
		return NULL;
	if (is_one_of("CDEJ", flag.p[0]))
		return num_parse_u64(token, &number) ? NULL : bad_token;
	if (is_one_of("NRT", flag.p[0]))
		return num_parse_exptime(token, &seconds) ? NULL : bad_token;
	switch (flag.p[0]) {
	case 'b':
		return token.n ? "CLIENT_ERROR invalid flag" : NULL;
	case 'F':
		return num_parse_u32(token, &flags) ? NULL : bad_token;
	case 'M':
		return is_mode(command, token) ? NULL : "CLIENT_ERROR invalid mode";
	case 'O':
		return token.n > OPAQUE_MAX ? "CLIENT_ERROR opaque token too long" : NULL;
	default:
		return "CLIENT_ERROR invalid flag";
	}
}

const char *metaflags_parse(command_id command, struct slice flags, struct metaflags *out)
{
	struct slice flag;
	int count = 0;

	*out = (struct metaflags){ 0 };
	/* Of the flags of `me`, memcached checks only the first one, and only for b. */
	if (command == COMMAND_ME) {
		out->letters =
			slice_equal(slice_token(&flags), SLICE("b")) ? metaflags_bit('b') : 0;
		return NULL;
	}
	while ((flag = slice_token(&flags)).n) {
		const char *error = check_flag(command, flag);
		uint64_t bit = metaflags_bit(flag.p[0]);

		if (error)
			return error;
		if (++count > FLAGS_MAX)
			return "CLIENT_ERROR options flags too long";
		if (out->letters & bit)
			return "CLIENT_ERROR duplicate flag";
		if (flag.p[0] == 'k')
			out->before_key = out->letters;
		out->letters |= bit;
	}
	return NULL;
}

bool metaflags_name_item(const struct metaflags *flags, struct slice line)
{
	struct slice flag;

	if (!metaflags_has(flags, 'P'))
		return false;
	while ((flag = slice_token(&line)).n && flag.p[0] != 'P')
		continue;
	return slice_equal(flag, SLICE("Pitem"));
}

bool metaflags_decrements(struct slice flags)
{
	struct slice flag;

	while ((flag = slice_token(&flags)).n && flag.p[0] != 'M')
		continue;
	return flag.n > 1 && is_one_of("Dd-", flag.p[1]);
}

bool metaflags_hide(const struct metaflags *flags, command_id command, struct slice code)
{
	if (!metaflags_has(flags, 'q'))
		return false;
	if (command == COMMAND_MG)
		return slice_equal(code, SLICE("EN"));
	return slice_equal(code, SLICE("HD")) ||
		(command == COMMAND_MA && slice_equal(code, SLICE("VA")));
}

size_t metaflags_copy(struct slice flags, const char *without, char *to)
{
	struct slice flag;
	size_t n = 0;

	while ((flag = slice_token(&flags)).n) {
		if (is_one_of(without, flag.p[0]))
			continue;
		to[n++] = ' ';
		memcpy(to + n, flag.p, flag.n);
		n += flag.n;
	}
	return n;
}

void metaflags_copy_with_key(struct slice line, uint64_t before, struct slice key, struct buf *out)
{
	struct slice rest = line, behind;

	if (slice_equal(slice_token(&rest), SLICE("VA")))
		(void)slice_token(&rest);
	behind = rest;
	for (struct slice flag = slice_token(&behind); flag.n && metaflags_bit(flag.p[0]) & before;
		flag = slice_token(&behind))
		rest = behind;
	buf_add(out, line.p, (size_t)(rest.p - line.p));
	BUF_ADD(out, " k");
	buf_add_slice(out, key);
	BUF_ADD(out, " b");
	buf_commit(out, metaflags_copy(rest, "", buf_reserve(out, rest.n + 1)));
}

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t metaflags_decode_key(struct slice in, char *out)
{
	size_t n = 0, padding = 0;

	if (in.n == 0 || in.n % 4)
		return 0;
	while (padding < 2 && in.p[in.n - 1 - padding] == '=')
		padding++;
	for (size_t i = 0; i < in.n; i += 4) {
		uint32_t bits = 0;
		for (size_t j = i; j < i + 4; j++) {
			const char *digit =
				j < in.n - padding ? memchr(digits, in.p[j], 64) : digits;
			if (!digit)
				return 0;
			bits = bits << 6 | (uint32_t)(digit - digits);
		}
		out[n++] = (char)(bits >> 16);
		out[n++] = (char)(bits >> 8);
		out[n++] = (char)bits;
	}
	return n - padding;
}

void metaflags_encode_key(struct slice key, struct buf *out)
{
	for (size_t i = 0; i < key.n; i += 3) {
		size_t n = key.n - i < 3 ? key.n - i : 3;
		uint32_t bits = 0;
		for (size_t j = 0; j < 3; j++)
			bits = bits << 8 | (j < n ? (unsigned char)key.p[i + j] : 0);
		for (size_t j = 0; j < 4; j++)
			buf_add(out, j <= n ? &digits[bits >> (18 - 6 * j) & 63] : "=", 1);
	}
}
