/*
 * Patterns of Redis: * stands for any bytes, ? for one byte, [ab0-9] for one of these bytes,
 * [^ab] for any other one; a backslash makes the next byte an ordinary one. As in Redis, a class
 * without its ] ends with the pattern, [] matches nothing, and a range may be written backwards.
 *
 * A pattern is a nondeterministic automaton with a bit for each of its states, of which one byte
 * of a text advances 64 at once. So a comparison takes at most GLOB_WORDS steps for each byte of
 * the text, whatever the pattern.
 */
#ifndef UTIL_GLOB_H
#define UTIL_GLOB_H

#include <stdbool.h>
#include <stdint.h>

#include "util/slice.h"

/* Maximum bytes of a pattern; its maximum number of words of states, which include the start. */
enum { GLOB_MAX = 250, GLOB_WORDS = GLOB_MAX / 64 + 1 };

struct glob {
	unsigned words, end; /* number of words that are used; the number of the last state */
	uint64_t stays[GLOB_WORDS]; /* states in which a * accepts any byte */
	uint64_t advances[];        /* For each byte, the states that it advances: `words` each. */
};

/* Return the steps of work, of about 50 ns each, to compile a pattern and to compare a text. */
static inline size_t glob_compile_steps(struct slice pattern)
{
	return 8 + 4 * pattern.n;
}

static inline size_t glob_steps(const struct glob *g, struct slice text)
{
	return text.n * g->words / 32;
}

/* Returns the bytes of memory of a compiled pattern. */
static inline size_t glob_memory(const struct glob *g)
{
	return sizeof(*g) + 256 * g->words * sizeof(g->advances[0]);
}

/* Compiles a pattern of at most GLOB_MAX bytes. The caller frees the result, by free(). */
struct glob *glob_compile(struct slice pattern);

/* Returns whether the pattern matches the whole text. */
bool glob_matches(const struct glob *g, struct slice text);

/*
 * Writes the bytes with which each text begins that the pattern matches to `prefix`, which has
 * room for pattern.n bytes. Returns their number.
 */
size_t glob_prefix(struct slice pattern, char *prefix);

#endif
