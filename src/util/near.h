/* Names that a misspelled word may stand for. Upper and lower case are the same here. */
#ifndef UTIL_NEAR_H
#define UTIL_NEAR_H

#include <stdbool.h>

#include "util/slice.h"

/* Names in a hint; bytes of a name, longer ones are near to none; bytes of the hint of such names. */
enum { NEAR_NAMES = 3, NEAR_BYTES = 32, NEAR_HINT = 32 + NEAR_NAMES * (NEAR_BYTES + 4) };

/* Initialize it with the word alone. */
struct near {
	struct slice word;
	struct slice names[NEAR_NAMES]; /* the nearest first */
	size_t distances[NEAR_NAMES], count;
};

/* Whether the names are the same. */
bool near_same(struct slice a, struct slice b);

/* Keeps the name, which must outlive `near`, if it is one of those nearest to the word. */
void near_offer(struct near *near, struct slice name);

/* Writes "; did you mean a, b or c?", or "" if no name is near. */
void near_hint(const struct near *near, char text[NEAR_HINT]);

#endif
