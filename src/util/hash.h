/*
 * Seeded hashes of short byte strings, for hash tables in memory. Hashes are never stored or
 * sent. Clients choose the strings, so the seed is secret. hash_slice() and hash_member(),
 * which is faster for short strings, are for tables of any size; hash_key() is for tables that
 * a client cannot make large.
 */
#ifndef UTIL_HASH_H
#define UTIL_HASH_H

#include <stdint.h>

#include "util/slice.h"
#include "util/word.h"

/* Loads up to eight bytes, little-endian on all machines. */
static inline uint64_t hash_load(const char *p, size_t n)
{
	return __builtin_bswap64(word_rank(p, n));
}

__extension__ typedef unsigned __int128 hash_wide;

static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
	hash_wide m = (hash_wide)a * b;

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static inline uint64_t hash_rotate(uint64_t v, int bits)
{
	return v << bits | v >> (64 - bits);
}

static inline void hash_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = hash_rotate(v[1], 13) ^ v[0];
	v[3] = hash_rotate(v[3], 16) ^ v[2];
	v[0] = hash_rotate(v[0], 32) + v[3];
	v[2] += v[1];
	v[1] = hash_rotate(v[1], 17) ^ v[2];
	v[3] = hash_rotate(v[3], 21) ^ v[0];
	v[2] = hash_rotate(v[2], 32);
}

/*
 * SipHash-1-3 with the key k0, k1: Aumasson and Bernstein, "SipHash: a fast short-input PRF",
 * 2012.
 */
static inline uint64_t hash_sip(struct slice s, uint64_t k0, uint64_t k1)
{
	uint64_t v[4] = { k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du,
		k0 ^ 0x6c7967656e657261u, k1 ^ 0x7465646279746573u };
	uint64_t last = (uint64_t)s.n << 56, block;
	const char *p = s.p;
	size_t n = s.n;

	for (; n >= 8; p += 8, n -= 8) {
		block = hash_load(p, 8);
		v[3] ^= block;
		hash_round(v);
		v[0] ^= block;
	}
	last |= hash_load(p, n);
	v[3] ^= last;
	hash_round(v);
	v[0] ^= last;
	v[2] ^= 0xff;
	hash_round(v);
	hash_round(v);
	hash_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* Hashes `s` with SipHash. Both halves of its key are derived from `seed`. */
static inline uint64_t hash_slice(struct slice s, uint64_t seed)
{
	return hash_sip(s, seed, hash_mix(seed ^ 0x9e3779b97f4a7c15u, 0xd6e8feb86659fd93u));
}

/*
 * Hashes `s` by multiply and fold, 16 bytes a step, after Wang Yi's wyhash (public domain). The
 * seed masks each factor, so a client without the seed cannot make a product zero.
 */
static inline uint64_t hash_key(struct slice s, uint64_t seed)
{
	const uint64_t other = seed * 0x9e3779b97f4a7c15u;
	uint64_t h = seed ^ s.n, a, b;
	const char *p = s.p;
	size_t n = s.n;

	for (; n > 16; p += 16, n -= 16)
		h = hash_mix(hash_load(p, 8) ^ other, hash_load(p + 8, 8) ^ h);
	if (n >= 8) {
		a = hash_load(p, 8);
		b = hash_load(p + n - 8, 8);
	} else {
		a = hash_load(p, n);
		b = 0;
	}
	return hash_mix(seed ^ 0xd6e8feb86659fd93u, hash_mix(a ^ other, b ^ h));
}

/* The secret of hash_member(), derived from a seed. */
struct hash_secret {
	uint64_t words[4];
};

static inline struct hash_secret hash_secret_of(uint64_t seed)
{
	return (struct hash_secret){ {
		hash_mix(seed ^ 0x243f6a8885a308d3u, 0xd6e8feb86659fd93u),
		hash_mix(seed ^ 0x13198a2e03707344u, 0xa0761d6478bd642fu),
		hash_mix(seed ^ 0xa4093822299f31d0u, 0xe7037ed1a0b428dbu),
		hash_mix(seed ^ 0x082efa98ec4e6c89u, 0x8ebc6af09c88c6e3u),
	} };
}

/*
 * Hashes `s`. A string of up to 16 bytes is loaded as two overlapping words, which are hashed
 * as in NH: Black and others, "UMAC: Fast and Secure Message Authentication", 1999. For any two
 * strings of a client, the products are equal with probability 2^-64. The second round mixes
 * the bits and distinguishes lengths. Longer strings are hashed with SipHash.
 */
static inline uint64_t hash_member(struct slice s, const struct hash_secret *secret)
{
	const uint64_t *k = secret->words;
	hash_wide m;

	if (s.n > 16)
		return hash_sip(s, k[0], k[1]);
	if (s.n >= 8)
		m = (hash_wide)(word_load(s.p) + k[0]) * (word_load(s.p + s.n - 8) + k[1]);
	else
		m = (hash_wide)(hash_load(s.p, s.n) + k[0]) * k[1];
	return hash_mix((uint64_t)m + s.n + k[2], (uint64_t)(m >> 64) + k[3]);
}

#endif
