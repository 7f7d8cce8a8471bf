#include "util/num.h"

#include <string.h>

/* A number of up to this many digits fits 64 bits. */
enum { SAFE_DIGITS = 19 };

bool num_parse_u64(struct slice s, uint64_t *out)
{
	uint64_t v = 0;

	if (s.n == 0)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		unsigned digit = (unsigned)(unsigned char)s.p[i] - '0';

		if (digit > 9 || (i >= SAFE_DIGITS && v > (UINT64_MAX - digit) / 10))
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
	if (v > (uint64_t)INT64_MAX + negative)
		return false;
	*out = negative ? (int64_t)(0 - v) : (int64_t)v;
	return true;
}

bool num_parse_i32(struct slice s, int32_t *out)
{
	int64_t v;

	if (!num_parse_i64(s, &v) || v < INT32_MIN || v > INT32_MAX)
		return false;
	*out = (int32_t)v;
	return true;
}

size_t num_format_u64(char *p, uint64_t v)
{
	size_t digits = 1;

	if (v < 10) {
		*p = (char)('0' + v);
		return 1;
	}
	for (uint64_t high = v; high >= 10; high /= 10)
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
