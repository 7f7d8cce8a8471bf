/*
 * A reader of sets in oplog, written from the documentation of the stored form: a base, runs,
 * their indexes and tables. It shares no code with the code under test. It checks each rule of the
 * form: bytes that break one are a violation.
 */
#ifndef SIM_STORED_SET_H
#define SIM_STORED_SET_H

#include "truth.h"
#include "util/buf.h"

struct world;

enum { STORED_TOKEN = 8 };

enum stored_state {
	STORED_MISSING, /* there is no base, or it breaks a rule, which is a violation */
	STORED_LOADING, /* a client is loading it */
	STORED_LOST,    /* an item is missing: these are the members that the set had with it */
	STORED_WHOLE
};

/* Reads this character and the number that follows it, which must have no unnecessary digits. */
bool stored_number(struct slice *rest, char mark, uint64_t *out);

/* Reads a dot and the digits of a check. */
bool stored_check(struct slice *rest, uint64_t *out);

/*
 * Returns the references in a base, each with the space that follows it; none if the set is being
 * loaded.
 */
struct slice stored_set_refs(struct slice base);

/*
 * The state of a set that is being loaded, by its base: the last word on each member, 1 or -1, or
 * 0 for none; the loaded members; and the dates of both, 0 for none.
 */
struct stored_lease {
	char token[STORED_TOKEN];
	uint64_t deadline;
	signed char words[SIM_MEMBERS];
	bool loaded[SIM_MEMBERS];
	uint32_t word_dates[SIM_MEMBERS], loaded_dates[SIM_MEMBERS];
};

/* Return whether such a base has the key; whether this is one. */
bool stored_set_lease(struct world *w, int key, struct stored_lease *out);
bool stored_lease_is(struct slice base);

/* Removes the date, and its mark, from the end of a word. Returns 0 if it has none. */
uint32_t stored_take_date(struct slice *word);

/* Stores the members of set `key`, whether they have expired or not, and their dates or 0. */
enum stored_state stored_set_read(
	struct world *w, int key, bool members[SIM_MEMBERS], uint32_t dates[SIM_MEMBERS]);

/*
 * Called after an item other than a base was written. It never changes, so a proxy that has read
 * it may use it even after it was evicted.
 */
void stored_set_written(struct world *w, struct slice item, struct slice value);
void stored_set_fini(struct world *w);

/*
 * Appends the keys of all items that the base refers to, existing or not, each followed by a
 * space: an index is followed by its tables.
 */
void stored_set_items(struct world *w, int key, struct buf *out);

/* Returns whether the current base refers to the item, directly or by an index. */
bool stored_set_refers(struct world *w, struct slice item);

#endif
