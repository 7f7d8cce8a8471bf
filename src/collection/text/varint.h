/*
 * Numbers in tables and indexes: varints with 7 bits per byte, lowest first, and fixed-size
 * little-endian numbers.
 */
#ifndef COLLECTION_TEXT_VARINT_H
#define COLLECTION_TEXT_VARINT_H

#include <stdbool.h>
#include <stdint.h>

enum { VARINT_MAX = 5 }; /* bytes of a 32-bit varint */

/*
 * Reads a varint of at most 32 bits and moves `p` past it. Returns false if it does not end
 * before `end`, or is larger.
 */
static inline bool varint_take(const char **p, const char *end, uint32_t *out)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 7 * VARINT_MAX && *p < end; shift += 7) {
		unsigned char byte = (unsigned char)*(*p)++;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*out = (uint32_t)value;
			return value <= UINT32_MAX;
		}
	}
	return false;
}

/* Writes a varint and returns its end. */
static inline char *varint_write(char *p, uint32_t value)
{
	for (; value >= 0x80; value >>= 7)
		*p++ = (char)(value | 0x80);
	*p++ = (char)value;
	return p;
}

static inline uint64_t little_load(const char *p, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = bytes; i-- > 0;)
		value = value << 8 | (unsigned char)p[i];
	return value;
}

static inline char *little_write(char *p, uint64_t value, unsigned bytes)
{
	for (; bytes-- > 0; value >>= 8)
		*p++ = (char)value;
	return p;
}

#endif
