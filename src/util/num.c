#include "util/num.h"

#include <string.h>

static inline unsigned digit_of(char c)
{
	return (unsigned)(unsigned char)c - '0';
}

/* Returns the number of leading digits, at most NUM_SAFE_DIGITS. */
static inline size_t read_digits(struct slice s, uint64_t *out)
{
	size_t most = s.n < NUM_SAFE_DIGITS ? s.n : NUM_SAFE_DIGITS, i;
	uint64_t v = 0;

	for (i = 0; i < most && digit_of(s.p[i]) <= 9; i++)
		v = v * 10 + digit_of(s.p[i]);
	*out = v;
	return i;
}

bool num_take_u64(struct slice *s, uint64_t *out)
{
	size_t n = read_digits(*s, out);

	*s = slice_skip(*s, n);
	return n > 0;
}

bool num_parse_u64(struct slice s, uint64_t *out)
{
	uint64_t v;
	size_t n = read_digits(s, &v);

	if (n == 0)
		return false;
	for (; n < s.n; n++) {
		unsigned digit = digit_of(s.p[n]);
		if (digit > 9 || v > (UINT64_MAX - digit) / 10)
			return false;
		v = v * 10 + digit;
	}
	*out = v;
	return true;
}

bool num_parse_u32(struct slice s, uint32_t *out)
{
	uint64_t v;

	if (!num_parse_u64(s, &v) || v > UINT32_MAX)
		return false;
	*out = (uint32_t)v;
	return true;
}

bool num_parse_i64(struct slice s, int64_t *out)
{
	bool negative = s.n > 0 && s.p[0] == '-';
	uint64_t v;

	if (!num_parse_u64(negative ? slice_skip(s, 1) : s, &v))
		return false;
	/* "-0" is rejected, so that zero has only one form. */
	if (v > (uint64_t)INT64_MAX + negative || (negative && v == 0))
		return false;
	*out = negative ? (int64_t)(0 - v) : (int64_t)v;
	return true;
}

bool num_parse_exptime(struct slice s, int64_t *out)
{
	int64_t v;

	if (!num_parse_i64(s, &v) || v < INT32_MIN || v > UINT32_MAX)
		return false;
	*out = v > INT32_MAX ? v - UINT32_MAX - 1 : v;
	return true;
}

size_t num_format_u64(char *p, uint64_t v)
{
	size_t digits = 1;

	if (v < 10) {
		*p = (char)('0' + v);
		return 1;
	}
	for (uint64_t power = 10; digits < NUM_U64_MAX && v >= power; power *= 10)
		digits++;
	for (size_t i = digits; i-- > 0; v /= 10)
		p[i] = (char)('0' + v % 10);
	return digits;
}

size_t num_format_i64(char *p, int64_t v)
{
	if (v >= 0)
		return num_format_u64(p, (uint64_t)v);
	*p = '-';
	return 1 + num_format_u64(p + 1, -(uint64_t)v);
}

static const char hex[] = "0123456789abcdef";

bool num_parse_hex(struct slice digits, uint64_t *out)
{
	*out = 0;
	for (size_t i = 0; i < digits.n; i++) {
		const char *digit = memchr(hex, digits.p[i], sizeof(hex) - 1);
		if (!digit)
			return false;
		*out = *out << 4 | (uint64_t)(digit - hex);
	}
	return digits.n <= NUM_HEX;
}

char *num_write_hex(char *p, uint64_t n)
{
	for (int shift = 4 * (NUM_HEX - 1); shift >= 0; shift -= 4)
		*p++ = hex[n >> shift & 15];
	return p;
}
