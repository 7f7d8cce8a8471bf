/* A fast seeded hash of short byte strings for tables in memory; never stored, never sent. */
#ifndef UTIL_HASH_H
#define UTIL_HASH_H

#include <stdint.h>

#include "util/slice.h"

static inline uint64_t hash_load(const char *p, size_t n)
{
	uint64_t v = 0;

	memcpy(&v, p, n);
	return v;
}

__extension__ typedef unsigned __int128 hash_wide;

static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
	hash_wide m = (hash_wide)a * b;

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

/*
 * Hashes `s` under `seed`. Multiply-and-fold over 16 bytes a step, the construction of Wang Yi's wyhash (public domain),
 * written anew. The seed makes collisions unpredictable to whoever chooses the keys.
 */
static inline uint64_t hash_slice(struct slice s, uint64_t seed)
{
	const uint64_t k0 = 0x9e3779b97f4a7c15u, k1 = 0xd6e8feb86659fd93u;
	uint64_t h = seed ^ (s.n * k0), a, b;
	const char *p = s.p;
	size_t n = s.n;

	for (; n > 16; p += 16, n -= 16)
		h = hash_mix(hash_load(p, 8) ^ k0, hash_load(p + 8, 8) ^ h);
	if (n >= 8) {
		a = hash_load(p, 8);
		b = hash_load(p + n - 8, 8);
	} else if (n >= 4) {
		a = hash_load(p, 4);
		b = hash_load(p + n - 4, 4);
	} else if (n) {
		a = (uint64_t)(unsigned char)p[0] << 16 | (uint64_t)(unsigned char)p[n / 2] << 8 |
			(uint64_t)(unsigned char)p[n - 1];
		b = 0;
	} else {
		a = b = 0;
	}
	return hash_mix(k1 ^ h, hash_mix(a ^ k0, b ^ h));
}

#endif
