/*
 * Sets as a reader of the documentation of their stored form has them: a base, runs, their indexes and tables. None of the code
 * that is tested is used to read them. Each rule of the form is checked: what breaks one is a violation.
 */
#ifndef SIM_STORED_SET_H
#define SIM_STORED_SET_H

#include "truth.h"
#include "util/buf.h"

struct world;

/* What the items of set `key` come to; false when one of them is not there, or breaks a rule, and is a violation then. */
bool stored_set_read(struct world *w, int key, bool members[SIM_MEMBERS]);

/* Appends the keys of all items that the base refers to, each ended by a space, in their order: an index is followed by its
 * tables, which are known only while it is there. */
void stored_set_items(struct world *w, int key, struct buf *out);

/* True when the base that is there now refers to the item, directly or by an index. */
bool stored_set_refers(struct world *w, struct slice item);

#endif
