/* Suggests names for a misspelled word. Upper and lower case are equivalent. */
#ifndef UTIL_NEAR_H
#define UTIL_NEAR_H

#include <stdbool.h>

#include "util/slice.h"

/* Names in a hint; maximum bytes of a name, longer ones are never near; bytes of a hint. */
enum { NEAR_NAMES = 3, NEAR_BYTES = 32, NEAR_HINT = 32 + NEAR_NAMES * (NEAR_BYTES + 4) };

/* Must be initialized with the word; all other members are zero. */
struct near {
	struct slice word;
	struct slice names[NEAR_NAMES]; /* The nearest first. */
	size_t distances[NEAR_NAMES], count;
};

/* Returns whether the names are equal, ignoring case. */
bool near_same(struct slice a, struct slice b);

/* Adds a name, which must outlive `near`, if it is among the nearest to the word. */
void near_offer(struct near *near, struct slice name);

/* Writes "; did you mean a, b or c?" to `text`, or "" if no name is near. */
void near_hint(const struct near *near, char text[NEAR_HINT]);

#endif
