/*
 * Sets as a reader of the documentation of their stored form has them: a base, runs, their indexes and tables. None of the code
 * that is tested is used to read them. Each rule of the form is checked: what breaks one is a violation.
 */
#ifndef SIM_STORED_SET_H
#define SIM_STORED_SET_H

#include "truth.h"
#include "util/buf.h"

struct world;

enum stored_state {
	STORED_MISSING, /* there is no base, or something breaks a rule, and is a violation then */
	STORED_LOST,    /* an item is gone: that is what it was when it was there */
	STORED_WHOLE
};

/* What set `key` comes to. */
enum stored_state stored_set_read(struct world *w, int key, bool members[SIM_MEMBERS]);

/*
 * An item beside a base was written. It never changes, so what it held is known for ever: who has read it may go on with what
 * it says, also when it was evicted.
 */
void stored_set_written(struct world *w, struct slice item, struct slice value);
void stored_set_fini(struct world *w);

/* Appends the keys of all items that the base refers to, there or not, each ended by a space: an index is followed by its
 * tables. */
void stored_set_items(struct world *w, int key, struct buf *out);

/* True when the base that is there now refers to the item, directly or by an index. */
bool stored_set_refers(struct world *w, struct slice item);

#endif
