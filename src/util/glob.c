#include "util/glob.h"

#include <assert.h>
#include <string.h>

#include "util/alloc.h"

/* A set of bytes. */
struct class
{
	bool has[256];
};

static void add_range(struct class *class, unsigned char from, unsigned char to)
{
	unsigned least = from < to ? from : to, most = from < to ? to : from;

	memset(class->has + least, true, most - least + 1);
}

/* Takes a class from after its [ through its ]. */
static void take_class(struct slice *rest, struct class *class)
{
	bool inverts = rest->n && *rest->p == '^';

	*rest = slice_skip(*rest, inverts);
	while (rest->n && *rest->p != ']') {
		const unsigned char *p = (const unsigned char *)rest->p;
		bool quoted = rest->n >= 2 && p[0] == '\\', range = rest->n >= 3 && p[1] == '-';
		if (quoted)
			add_range(class, p[1], p[1]);
		else
			add_range(class, p[0], p[range ? 2 : 0]);
		*rest = slice_skip(*rest, quoted ? 2 : range ? 3 : 1);
	}
	*rest = slice_skip(*rest, rest->n > 0);
	for (unsigned byte = 0; inverts && byte < 256; byte++)
		class->has[byte] = !class->has[byte];
}

/*
 * Takes the next part of a pattern, which is not a *. Returns its byte, or -1 if it is a class,
 * or a ?, and stores that.
 */
static int take_part(struct slice *rest, struct class *class)
{
	char first = *rest->p;

	*rest = slice_skip(*rest, 1);
	if (first == '[' || first == '?') {
		*class = (struct class){ 0 };
		if (first == '[')
			take_class(rest, class);
		else
			add_range(class, 0, UINT8_MAX);
		return -1;
	}
	if (first == '\\' && rest->n) {
		first = *rest->p;
		*rest = slice_skip(*rest, 1);
	}
	return (unsigned char)first;
}

/* Counts the parts that are not a *. */
static unsigned count_parts(struct slice pattern)
{
	struct class class;
	unsigned count = 0;

	while (pattern.n) {
		if (*pattern.p == '*') {
			pattern = slice_skip(pattern, 1);
			continue;
		}
		(void)take_part(&pattern, &class);
		count++;
	}
	return count;
}

/* Lets the byte, or if it is -1 each byte of the class, advance a state. */
static void advance(struct glob *g, unsigned state, int byte, const struct class *class)
{
	uint64_t bit = UINT64_C(1) << state % 64, *advances = g->advances + state / 64;

	if (byte >= 0)
		advances[(unsigned)byte * g->words] |= bit;
	for (unsigned i = 0; byte < 0 && i < 256; i++)
		advances[i * g->words] |= class->has[i] ? bit : 0;
}

struct glob *glob_compile(struct slice pattern)
{
	struct glob empty = { .end = count_parts(pattern) }, *g;
	struct class class;
	unsigned state = 0;
	int byte;

	assert(pattern.n <= GLOB_MAX);
	empty.words = empty.end / 64 + 1;
	g = xcalloc(1, glob_memory(&empty));
	*g = empty;
	while (pattern.n) {
		if (*pattern.p == '*') {
			g->stays[state / 64] |= UINT64_C(1) << state % 64;
			pattern = slice_skip(pattern, 1);
			continue;
		}
		byte = take_part(&pattern, &class);
		advance(g, state++, byte, &class);
	}
	return g;
}

bool glob_matches(const struct glob *g, struct slice text)
{
	uint64_t states[GLOB_WORDS] = { 1 }, end = UINT64_C(1) << g->end % 64;
	unsigned last = g->words - 1;
	/* After a * at the end of the pattern, no other byte matters. */
	uint64_t accepts = end & g->stays[last];

	for (size_t i = 0; i < text.n && !(states[last] & accepts); i++) {
		const uint64_t *advances = g->advances + (unsigned char)text.p[i] * g->words;
		uint64_t carry = 0, any = 0;
		for (unsigned word = 0; word <= last; word++) {
			uint64_t moved = states[word] & advances[word];
			states[word] = (states[word] & g->stays[word]) | moved << 1 | carry;
			carry = moved >> 63;
			any |= states[word];
		}
		if (!any)
			return false;
	}
	return states[last] & end;
}

size_t glob_prefix(struct slice pattern, char *prefix)
{
	size_t n = 0;

	while (pattern.n && !memchr("*?[", *pattern.p, 3)) {
		pattern = slice_skip(pattern, *pattern.p == '\\' && pattern.n > 1);
		prefix[n++] = *pattern.p;
		pattern = slice_skip(pattern, 1);
	}
	return n;
}
