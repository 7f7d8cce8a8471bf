/*
 * A borrowed view of bytes: it owns nothing, and is valid as long as the memory that it points
 * to.
 */
#ifndef UTIL_SLICE_H
#define UTIL_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "util/word.h"

struct slice {
	const char *p;
	size_t n;
};

/* A slice of a string literal. */
#define SLICE(literal) ((struct slice){ (literal), sizeof(literal) - 1 })

static inline struct slice slice_of(const char *p, size_t n)
{
	return (struct slice){ p, n };
}

static inline bool slice_equal(struct slice a, struct slice b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool slice_starts(struct slice s, struct slice prefix)
{
	return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

/* Returns the small letter of an ASCII letter; other bytes are unchanged. */
static inline char slice_lower(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* Returns the slice without its first `n` bytes; it must have as many. */
static inline struct slice slice_skip(struct slice s, size_t n)
{
	return (struct slice){ n ? s.p + n : s.p, s.n - n };
}

/* Copies `s` to `p`. Returns the end of the copy. */
static inline char *slice_write(char *p, struct slice s)
{
	if (s.n)
		memcpy(p, s.p, s.n);
	return p + s.n;
}

/* Returns the first occurrence of the byte in [p, end), or `end`. */
static inline const char *slice_find(const char *p, const char *end, char byte)
{
	for (; end - p >= WORD_BYTES; p += WORD_BYTES) {
		uint64_t found = word_equal(word_load(p), (unsigned char)byte);
		if (found)
			return p + word_first(found);
	}
	while (p < end && *p != byte)
		p++;
	return p;
}

/*
 * Removes the bytes before the next occurrence of `byte` from `rest`, and that byte too.
 * Returns them; without an occurrence, all of `rest`.
 */
static inline struct slice slice_cut(struct slice *rest, char byte)
{
	struct slice taken = *rest;

	if (rest->n == 0)
		return taken;
	taken.n = (size_t)(slice_find(rest->p, rest->p + rest->n, byte) - rest->p);
	*rest = slice_skip(*rest, taken.n < rest->n ? taken.n + 1 : taken.n);
	return taken;
}

/*
 * Removes a portion of at least `bytes` bytes from `rest`, up to and including the next `byte`.
 * Returns it; without an occurrence, all of `rest`.
 */
static inline struct slice slice_portion(struct slice *rest, size_t bytes, char byte)
{
	struct slice taken = *rest, after;

	if (rest->n > bytes) {
		after = slice_skip(*rest, bytes);
		taken.n = bytes + slice_cut(&after, byte).n;
		taken.n += taken.n < rest->n;
	}
	*rest = slice_skip(*rest, taken.n);
	return taken;
}

/*
 * Removes the next token from `rest` and returns it. Tokens are separated by one or more
 * spaces. Returns an empty slice if none is left.
 */
static inline struct slice slice_token(struct slice *rest)
{
	const char *p = rest->p, *end, *start;

	if (rest->n == 0)
		return *rest;
	end = p + rest->n;
	while (p < end && *p == ' ')
		p++;
	start = p;
	p = slice_find(p, end, ' ');
	*rest = slice_of(p, (size_t)(end - p));
	return slice_of(start, (size_t)(p - start));
}

#endif
