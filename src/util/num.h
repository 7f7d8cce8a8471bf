/* Decimal numbers: strict parsing, which refuses overflow, and formatting. */
#ifndef UTIL_NUM_H
#define UTIL_NUM_H

#include <stdbool.h>
#include <stdint.h>

#include "util/slice.h"

/* Digits of the largest u64, and as many as fit 64 bits whatever they are. */
enum { NUM_U64_MAX = 20, NUM_SAFE_DIGITS = 19 };

/* If the whole slice is one number in range, gives true and sets `*out`. Only digits are allowed; signed ones below 0 begin with '-'. */
bool num_parse_u64(struct slice s, uint64_t *out);
bool num_parse_u32(struct slice s, uint32_t *out);
bool num_parse_i64(struct slice s, int64_t *out);

/*
 * Parses an exptime. As in memcached, 2^31 to 2^32 - 1 wrap to negative 32-bit numbers: times in the past. Returns
 * true and sets `*out` on success, as the functions above.
 */
bool num_parse_exptime(struct slice s, int64_t *out);

/* Takes up to NUM_SAFE_DIGITS digits off the front of `s`. Gives false if there are none. */
bool num_take_u64(struct slice *s, uint64_t *out);

/* Writes `v` to `p`, which has room for NUM_U64_MAX bytes, without a terminator; gives the number of bytes. */
size_t num_format_u64(char *p, uint64_t v);
/* The same for signed numbers, which may need one byte more. */
size_t num_format_i64(char *p, int64_t v);

#endif
