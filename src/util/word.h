/*
 * Searches, compares and copies short strings eight bytes at a time, which is faster than a
 * call of the C library. A search sets the top bit of each byte found. Only the first such byte
 * is certain: borrows may flag bytes after it. Source: Sean Anderson, Bit Twiddling Hacks.
 */
#ifndef UTIL_WORD_H
#define UTIL_WORD_H

#include <stdint.h>
#include <string.h>

enum { WORD_BYTES = 8 };

#define WORD_EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Loads eight bytes, little-endian on all machines. */
static inline uint64_t word_load(const char *p)
{
	uint64_t w;

	memcpy(&w, p, WORD_BYTES);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	w = __builtin_bswap64(w);
#endif
	return w;
}

/* Stores what word_load has loaded. */
static inline void word_store(char *p, uint64_t w)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	w = __builtin_bswap64(w);
#endif
	memcpy(p, &w, WORD_BYTES);
}

/* Loads four bytes, big-endian on all machines. */
static inline uint32_t word_load_half(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/*
 * Returns the first eight of `n` bytes, padded with zeroes, as a number. Numbers are ordered as
 * memcmp() orders the bytes.
 */
static inline uint64_t word_rank(const char *p, size_t n)
{
	const unsigned char *u = (const unsigned char *)p;

	if (n >= WORD_BYTES)
		return __builtin_bswap64(word_load(p));
	if (n == 0)
		return 0;
	/* The two loads may overlap; a common byte has the same place in both. */
	if (n >= 4)
		return (uint64_t)word_load_half(u) << 32 |
			(uint64_t)word_load_half(u + n - 4) << (64 - 8 * n);
	return (uint64_t)u[0] << 56 | (uint64_t)u[n / 2] << (56 - 8 * (n / 2)) |
		(uint64_t)u[n - 1] << (64 - 8 * n);
}

/* As memcmp(), but inline and thus faster for short strings. */
static inline int word_compare(const char *a, const char *b, size_t n)
{
	uint64_t x, y;

	if (n < WORD_BYTES)
		return n ? memcmp(a, b, n) : 0;
	for (size_t i = 0;; i = n - i < 2 * WORD_BYTES ? n - WORD_BYTES : i + WORD_BYTES) {
		x = word_load(a + i);
		y = word_load(b + i);
		if (x != y)
			return __builtin_bswap64(x) < __builtin_bswap64(y) ? -1 : 1;
		if (i + WORD_BYTES == n)
			return 0;
	}
}

/* As memcpy(), but inline and thus faster for short strings. The two copies may overlap. */
static inline void word_copy(char *to, const char *from, size_t n)
{
	uint64_t first, last;
	uint32_t head, tail;

	if (n > 2 * WORD_BYTES) {
		memcpy(to, from, n);
	} else if (n >= WORD_BYTES) {
		memcpy(&first, from, WORD_BYTES);
		memcpy(&last, from + n - WORD_BYTES, WORD_BYTES);
		memcpy(to, &first, WORD_BYTES);
		memcpy(to + n - WORD_BYTES, &last, WORD_BYTES);
	} else if (n >= sizeof(head)) {
		memcpy(&head, from, sizeof(head));
		memcpy(&tail, from + n - sizeof(tail), sizeof(tail));
		memcpy(to, &head, sizeof(head));
		memcpy(to + n - sizeof(tail), &tail, sizeof(tail));
	} else if (n > 0) {
		to[0] = from[0];
		to[n / 2] = from[n / 2];
		to[n - 1] = from[n - 1];
	}
}

/* Flags the bytes less than `n`, which is at most 128. */
static inline uint64_t word_below(uint64_t w, unsigned char n)
{
	return (w - WORD_EACH(n)) & ~w & WORD_EACH(0x80);
}

static inline uint64_t word_equal(uint64_t w, unsigned char c)
{
	return word_below(w ^ WORD_EACH(c), 1);
}

/* Returns the index of the first flagged byte; there must be one. */
static inline size_t word_first(uint64_t flags)
{
	return (size_t)__builtin_ctzll(flags) / 8;
}

/*
 * Returns the first control byte from `p` on, or the first byte less than `n`, which is from
 * 0x20 to 128; `end` if there is none.
 */
static inline const char *word_find_below(const char *p, const char *end, unsigned char n)
{
	for (; end - p >= WORD_BYTES; p += WORD_BYTES) {
		uint64_t word = word_load(p), found = word_below(word, n) | word_equal(word, 0x7f);
		if (found)
			return p + word_first(found);
	}
	while (p < end && (unsigned char)*p >= n && *p != 0x7f)
		p++;
	return p;
}

/* Returns the first space or control byte from `p` on; `end` if there is none. */
static inline const char *word_end(const char *p, const char *end)
{
	return word_find_below(p, end, ' ' + 1);
}

#endif
