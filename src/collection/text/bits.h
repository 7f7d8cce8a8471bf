/* Streams of bits, the lowest bit of each byte first. */
#ifndef COLLECTION_TEXT_BITS_H
#define COLLECTION_TEXT_BITS_H

#include <stdbool.h>
#include <stdint.h>

#include "collection/text/varint.h"
#include "util/word.h"

enum { BITS_MAX = 32 /* of one call */, BITS_WINDOW = 64, BITS_FILLED = 56 };

struct bits_reader {
	const char *p, *end; /* the bytes that are not in `window`, or not all of their bits */
	uint64_t window;     /* the next `have` bits; higher bits are zero, or are read again */
	unsigned have;
	bool over; /* more bits were read than there are */
};

/* Fills the window with 56 bits at least, or with all that are left. */
static inline void bits_fill(struct bits_reader *b)
{
	if (b->end - b->p >= WORD_BYTES) {
		b->window |= word_load(b->p) << b->have;
		b->p += (BITS_WINDOW - 1 - b->have) / 8;
		b->have |= BITS_FILLED;
		return;
	}
	for (; b->have <= BITS_FILLED && b->p < b->end; b->have += 8)
		b->window |= (uint64_t)(unsigned char)*b->p++ << b->have;
}

/* Reads up to BITS_MAX bits, or as many as bits_fill was called for. 0 if there are fewer. */
static inline uint32_t bits_take(struct bits_reader *b, unsigned n)
{
	uint64_t value = b->window & ((UINT64_C(1) << n) - 1);

	if (b->have < n) {
		b->over = true;
		return 0;
	}
	b->window >>= n;
	b->have -= n;
	return (uint32_t)value;
}

/* Returns the number of ones before the next zero, and reads both. */
static inline unsigned bits_take_ones(struct bits_reader *b, unsigned most)
{
	unsigned ones = 0;

	for (;; ones += BITS_MAX) {
		unsigned more;

		bits_fill(b);
		more = (unsigned)__builtin_ctzll(~b->window | UINT64_C(1) << BITS_MAX);
		if (more < BITS_MAX) {
			bits_take(b, more + 1);
			return ones + more;
		}
		bits_take(b, BITS_MAX);
		if (ones > most || b->over)
			return ones;
	}
}

/* `p` has room for all bits and WORD_BYTES more. */
struct bits_writer {
	char *p;
	uint64_t window;
	unsigned have; /* below 8 */
};

/* Writes the lowest `n` bits, up to BITS_MAX + 1; the higher ones are zero. */
static inline void bits_put(struct bits_writer *b, uint64_t value, unsigned n)
{
	b->window |= value << b->have;
	word_store(b->p, b->window);
	b->have += n;
	b->p += b->have / 8;
	b->window >>= b->have & ~7u;
	b->have &= 7;
}

#endif
