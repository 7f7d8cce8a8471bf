/*
 * The checksum of stored content: XXH64 with seed 0, from libxxhash. It is part of the stored
 * form and must never change.
 */
#ifndef UTIL_CHECK_H
#define UTIL_CHECK_H

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "util/slice.h"

static inline uint64_t check_of(struct slice s)
{
	return XXH64(s.p, s.n, 0);
}

#endif
