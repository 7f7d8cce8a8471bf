/*
 * Eight bytes at a time, for searching short strings where a call of memchr costs more than it saves. A search flags the top
 * bit of each byte that it finds; bytes behind the first may be flagged wrongly, the first is right.
 */
#ifndef UTIL_WORD_H
#define UTIL_WORD_H

#include <stdint.h>
#include <string.h>

enum { WORD_BYTES = 8 };

#define WORD_EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* The first byte ends up lowest, whatever the machine's order. */
static inline uint64_t word_load(const char *p)
{
	uint64_t w;

	memcpy(&w, p, WORD_BYTES);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	w = __builtin_bswap64(w);
#endif
	return w;
}

/* The first eight bytes of `n`, padded with zeroes, as a number whose order is that of memcmp. */
static inline uint64_t word_rank(const char *p, size_t n)
{
	uint64_t rank = 0;

	if (n >= WORD_BYTES)
		return __builtin_bswap64(word_load(p));
	for (size_t i = 0; i < n; i++)
		rank = rank << 8 | (unsigned char)p[i];
	return n ? rank << (64 - 8 * n) : 0;
}

/* As memcmp. Members are short, and a call of memcmp costs more than comparing them. */
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

/* Flags the bytes below `n`, which is 128 at most. */
static inline uint64_t word_below(uint64_t w, unsigned char n)
{
	return (w - WORD_EACH(n)) & ~w & WORD_EACH(0x80);
}

static inline uint64_t word_equal(uint64_t w, unsigned char c)
{
	return word_below(w ^ WORD_EACH(c), 1);
}

/* Flags control bytes. */
static inline uint64_t word_control(uint64_t w)
{
	return word_below(w, 0x20) | word_equal(w, 0x7f);
}

/* The index of the first byte flagged; there must be one. */
static inline size_t word_first(uint64_t flags)
{
	return (size_t)__builtin_ctzll(flags) / 8;
}

#endif
