/* Decimal numbers: strict parsing, which rejects overflow, and formatting. */
#ifndef UTIL_NUM_H
#define UTIL_NUM_H

#include <stdbool.h>
#include <stdint.h>

#include "util/slice.h"

/* Digits of the largest u64, and the number of digits that always fit in 64 bits. */
enum { NUM_U64_MAX = 20, NUM_SAFE_DIGITS = 19 };

/*
 * If the whole slice is one number in range, returns true and sets `*out`. Only digits are
 * allowed, and a leading '-' for negative signed numbers.
 */
bool num_parse_u64(struct slice s, uint64_t *out);
bool num_parse_u32(struct slice s, uint32_t *out);
bool num_parse_i64(struct slice s, int64_t *out);

/*
 * Parses an exptime. As in memcached, 2^31 to 2^32 - 1 wrap to negative 32-bit numbers: times
 * in the past. Returns true and sets `*out` on success, as the functions above.
 */
bool num_parse_exptime(struct slice s, int64_t *out);

/* Takes up to NUM_SAFE_DIGITS digits off the front of `s`. Returns false if there are none. */
bool num_take_u64(struct slice *s, uint64_t *out);

/*
 * Writes `v` to `p`, which has room for NUM_U64_MAX bytes, without a terminator. Returns the
 * number of bytes.
 */
size_t num_format_u64(char *p, uint64_t v);
/* As num_format_u64(), for signed numbers, which may need one byte more. */
size_t num_format_i64(char *p, int64_t v);

static inline bool num_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline uint64_t num_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline size_t num_least_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * num_parse_hex parses hexadecimal digits in lower case, at most 16; false if there is another
 * byte. num_write_hex writes 16 of them, and returns the end.
 */
bool num_parse_hex(struct slice digits, uint64_t *out);
char *num_write_hex(char *p, uint64_t n);
enum { NUM_HEX = 16 };

/* Returns the value of a hexadecimal digit, or -1. */
static inline int num_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = slice_lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#endif
