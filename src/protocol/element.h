/*
 * An element, a member of a set or an element of a list, is any bytes. On servers, and
 * everywhere inside setlistd, it is a word without spaces, so that a text of words is split at
 * its spaces:
 *
 *     bytes 0x00 to 0x20       0x01 and a byte from 0x22 to 0x42
 *     the empty element        0x01 0x21
 *     all other bytes          as they are
 *
 * Words have the order of their elements, byte by byte: an escape is below every other byte,
 * and escapes have the order of the bytes that they stand for. Each element has exactly one
 * word.
 */
#ifndef PROTOCOL_ELEMENT_H
#define PROTOCOL_ELEMENT_H

#include <stdbool.h>

#include "util/buf.h"
#include "util/slice.h"

/* Limits of elements and of their words, in bytes. */
enum {
	MEMBER_MAX = 1000,   /* A member of a set. */
	ELEMENT_MAX = 65536, /* An element of a list. */
	MEMBER_WORD_MAX = 2 * MEMBER_MAX,
	ELEMENT_WORD_MAX = 2 * ELEMENT_MAX
};

enum { ELEMENT_ESCAPE = 0x01 };

/* In "", a backslash and the n-th letter are the n-th of these bytes; see quoted.h. */
#define ELEMENT_LETTERS "nrtba"
#define ELEMENT_LETTER_BYTES "\n\r\t\b\a"

/* Returns the first byte from `p` on that is not as it is in a word; `end` if there is none. */
static inline const char *element_special(const char *p, const char *end)
{
	for (; end - p >= WORD_BYTES; p += WORD_BYTES) {
		uint64_t found = word_below(word_load(p), ' ' + 1);
		if (found)
			return p + word_first(found);
	}
	while (p < end && (unsigned char)*p > ' ')
		p++;
	return p;
}

/* element_word_end for a word with special bytes. */
const char *element_word_rest(const char *p, const char *end);

/*
 * Returns the end of the word at `p`: the first space, or `end`. NULL if there is none, or a
 * byte before it cannot be in a word.
 */
static inline const char *element_word_end(const char *p, const char *end)
{
	const char *special = element_special(p, end);

	if (special == end || *special == ' ')
		return special == p ? NULL : special;
	return element_word_rest(p, end);
}

/* Returns whether these bytes are the word of an element. */
static inline bool element_is_word(struct slice word)
{
	return word.n && element_word_end(word.p, word.p + word.n) == word.p + word.n;
}

/* Returns whether the element is its own word. */
static inline bool element_is_plain(struct slice element)
{
	return element.n &&
		element_special(element.p, element.p + element.n) == element.p + element.n;
}

/* Returns whether a word is not its element; or one of several words, with spaces between them. */
static inline bool element_has_escapes(struct slice words)
{
	const char *end = words.p + words.n;

	return slice_find(words.p, end, ELEMENT_ESCAPE) != end;
}

/* Returns whether an argument that begins with this byte is in quotes; see quoted.h. */
static inline bool element_is_quote(char c)
{
	return c == '"' || c == '\'';
}

/* Returns whether an argument is the size of a literal: a number in braces. */
bool element_is_literal(struct slice argument, uint64_t *size);

/* Returns whether the element of a word contains this byte. */
bool element_contains(struct slice word, char byte);

/* Returns the size of the element of a word, and that of the word of an element. */
size_t element_size(struct slice word);
size_t element_word_size(struct slice element);

/*
 * Writes the word of an element to `at`, which has room for twice its size, and at least two
 * bytes. Returns the end of the word.
 */
char *element_write_word(char *at, struct slice element);

/* Writes the element of a word to `at`, which has room for word.n bytes. Returns its end. */
char *element_write(char *at, struct slice word);

#endif
