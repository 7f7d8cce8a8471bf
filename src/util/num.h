/* Decimal numbers, in and out, with every digit and every overflow checked. */
#ifndef UTIL_NUM_H
#define UTIL_NUM_H

#include <stdbool.h>
#include <stdint.h>

#include "util/slice.h"

enum { NUM_U64_MAX = 20 }; /* digits of the largest u64 */

/* True, with the value in `*out`, when the whole slice is one number in range: digits only, a '-' in front for the signed ones. */
bool num_parse_u64(struct slice s, uint64_t *out);
bool num_parse_u32(struct slice s, uint32_t *out);
bool num_parse_i64(struct slice s, int64_t *out);
bool num_parse_i32(struct slice s, int32_t *out);

/* Writes `v` to `p`, which has room for NUM_U64_MAX bytes, without a terminator; gives the number of bytes. */
size_t num_format_u64(char *p, uint64_t v);
/* As above, with a sign in front of what is below 0: one byte more. */
size_t num_format_i64(char *p, int64_t v);

#endif
