/*
 * Elements of a list that clients hold until they acknowledge them. They are tokens of the log:
 *
 *     ~h<date>.<ticket>.<deliveries>.<l or r>.<word>
 *     ~d<deliveries>.<hash>
 *
 * A held element is not an element of the list. From the date on, by the clock of the base's
 * server, it is to be given back to the end from which it was taken: left or right. The second
 * token counts the deliveries of an element that was given back; the hash is check_of its word.
 * Versions that cannot read these tokens refuse the base.
 */
#ifndef COLLECTION_TEXT_HELD_H
#define COLLECTION_TEXT_HELD_H

#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/slice.h"

/*
 * The limits of held elements in one list: their number, and their bytes in the base. As many
 * counts of deliveries are kept.
 */
enum { HELD_MAX = 1000, HELD_BYTES = 256 * 1024, HELD_SECONDS_MAX = 30 * 24 * 60 * 60 };
enum { HELD_TICKET = 12 };

struct held_element {
	int64_t date;
	uint32_t deliveries;
	bool right;
	struct slice ticket, word; /* borrowed */
};

/* The deliveries of an element that is in the list again. */
struct held_count {
	uint32_t deliveries;
	uint64_t hash;
};

/* All zeroes has none. Both are in the order in which they were added. */
struct held {
	struct held_element *list;
	struct held_count *counts;
	size_t count, capacity, bytes;
	size_t count_count, count_capacity;
};

void held_free(struct held *held);

/* Returns the end of the token at `p`, after its space; NULL if it is none of these tokens. */
const char *held_end(const char *p, const char *end);

/*
 * Reads the tokens of a base; `held`, all zeroes before, borrows the base. Returns the base without
 * these tokens: itself, or if it has any, a copy in `out`.
 */
struct slice held_read(struct slice base, struct held *held, struct buf *out);

/* Returns whether there is a token to write; held_write appends all of them. */
static inline bool held_any(const struct held *held)
{
	return held->count || held->count_count;
}
void held_write(const struct held *held, struct buf *out);

/* Appends the tokens of a base, and nothing else of it. */
void held_copy(struct slice base, struct buf *out);

/* Writes a new random ticket. */
void held_new_ticket(uint64_t *random, char ticket[HELD_TICKET]);

/* Returns whether one more element with this word is within the limits. */
bool held_has_room(const struct held *held, struct slice word);
void held_add(struct held *held, const struct held_element *element);

/* Returns whether an element has this ticket, and its place. */
bool held_find(const struct held *held, struct slice ticket, size_t *i);
void held_remove(struct held *held, size_t i);

/* Keeps only the first `kept` elements, among which those to keep were moved. */
void held_forget(struct held *held, size_t kept);

/* Returns the earliest date; INT64_MAX if no element is held. */
int64_t held_next(const struct held *held);

/* Keeps the deliveries of an element that is given back. Drops the oldest if there are too many. */
void held_count_keep(struct held *held, const struct held_element *element);

/* Removes the deliveries of an element that leaves the list, and returns them; 0 if it has none. */
uint32_t held_count_take(struct held *held, struct slice word);

#endif
