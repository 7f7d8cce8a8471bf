#include "protocol/element.h"

#include <assert.h>

#include "util/num.h"

/* The byte after an escape: of the empty element; of the byte 0x00. */
enum { EMPTY = ' ' + 1, ZERO };

const char *element_word_rest(const char *p, const char *end)
{
	const char *start = p;

	for (;;) {
		unsigned char escaped;
		p = element_special(p, end);
		if (p == end || *p == ' ')
			return p;
		if (*p != ELEMENT_ESCAPE || end - p < 2)
			return NULL;
		escaped = (unsigned char)p[1];
		if (escaped == EMPTY)
			return p == start && (end - p == 2 || p[2] == ' ') ? p + 2 : NULL;
		if (escaped < ZERO || escaped > ZERO + ' ')
			return NULL;
		p += 2;
	}
}

bool element_is_literal(struct slice argument, uint64_t *size)
{
	return argument.n > 2 && argument.p[0] == '{' && argument.p[argument.n - 1] == '}' &&
		num_parse_u64(slice_of(argument.p + 1, argument.n - 2), size);
}

bool element_contains(struct slice word, char byte)
{
	const char *p = word.p, *end = word.p + word.n;

	/* Bytes up to the space are in words only as escapes. */
	for (; p < end; p++) {
		if (*p != ELEMENT_ESCAPE ? *p == byte : *++p != EMPTY && (char)(*p - ZERO) == byte)
			return true;
	}
	return false;
}

size_t element_size(struct slice word)
{
	const char *p = word.p, *end = word.p + word.n;
	size_t n = word.n;

	if (word.n == 2 && p[0] == ELEMENT_ESCAPE && p[1] == EMPTY)
		return 0;
	for (; (p = slice_find(p, end, ELEMENT_ESCAPE)) < end; p += 2)
		n--;
	return n;
}

size_t element_word_size(struct slice element)
{
	const char *p = element.p, *end = element.p + element.n;
	size_t n = element.n ? element.n : 2;

	for (; (p = element_special(p, end)) < end; p++)
		n++;
	return n;
}

char *element_write_word(char *at, struct slice element)
{
	const char *p = element.p, *end = element.p + element.n;

	if (p == end) {
		*at++ = ELEMENT_ESCAPE;
		*at++ = EMPTY;
	}
	while (p < end) {
		const char *special = element_special(p, end);
		at = slice_write(at, slice_of(p, (size_t)(special - p)));
		for (p = special; p < end && (unsigned char)*p <= ' '; p++) {
			*at++ = ELEMENT_ESCAPE;
			*at++ = (char)(ZERO + *p);
		}
	}
	return at;
}

char *element_write(char *at, struct slice word)
{
	const char *p = word.p, *end = word.p + word.n;

	while (p < end) {
		const char *escape = slice_find(p, end, ELEMENT_ESCAPE);
		at = slice_write(at, slice_of(p, (size_t)(escape - p)));
		p = escape;
		if (p == end)
			break;
		assert(end - p >= 2);
		if (p[1] != EMPTY)
			*at++ = (char)(p[1] - ZERO);
		p += 2;
	}
	return at;
}
