/*
 * A reader of sets in oplog, written from the documentation of the stored form: a base, runs, their indexes and tables. It uses
 * none of the code under test. It checks each rule of the form: bytes that break one are a violation.
 */
#ifndef SIM_STORED_SET_H
#define SIM_STORED_SET_H

#include "truth.h"
#include "util/buf.h"

struct world;

enum { STORED_TOKEN = 8 };

enum stored_state {
	STORED_MISSING, /* there is no base, or it breaks a rule, which is a violation */
	STORED_LOADING, /* somebody loads it */
	STORED_LOST,    /* an item is gone: these are the members that the set had with it */
	STORED_WHOLE
};

/* Takes this character and the number behind it, which has no digits that it does not need. */
bool stored_number(struct slice *rest, char mark, uint64_t *out);

/* Takes a dot and the digits of a check. */
bool stored_check(struct slice *rest, uint64_t *out);

/* The references in a base, each with the space behind it; none if somebody loads it. */
struct slice stored_set_refs(struct slice base);

/* What a base says that somebody loads: the last word on each member, 1 or -1, or 0 for none; and what was loaded. */
struct stored_lease {
	char token[STORED_TOKEN];
	uint64_t deadline;
	signed char words[SIM_MEMBERS];
	bool loaded[SIM_MEMBERS];
};

/* Whether such a base has the key; whether this is one. */
bool stored_set_lease(struct world *w, int key, struct stored_lease *out);
bool stored_lease_is(struct slice base);

/* The members of set `key`. */
enum stored_state stored_set_read(struct world *w, int key, bool members[SIM_MEMBERS]);

/*
 * To be called when an item other than a base was written. It never changes, so a proxy that has read it may use it even after
 * it was evicted.
 */
void stored_set_written(struct world *w, struct slice item, struct slice value);
void stored_set_fini(struct world *w);

/* Appends the keys of all items that the base refers to, there or not, each ended by a space: an index is followed by its
 * tables. */
void stored_set_items(struct world *w, int key, struct buf *out);

/* True when the base that is there now refers to the item, directly or by an index. */
bool stored_set_refers(struct world *w, struct slice item);

#endif
