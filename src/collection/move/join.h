/*
 * What becomes of an item that two servers have, since a setlistd with another list of servers wrote to the former one. Nothing that
 * either says is lost, if both are sets, lists or counts. Of other items that of the former server stays.
 */
#ifndef COLLECTION_MOVE_JOIN_H
#define COLLECTION_MOVE_JOIN_H

#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"

struct join_item {
	struct slice value;
	uint32_t flags;
};

/* Appends the value of the joined item to `out`, and gives its flags. */
uint32_t join_items(struct slice key, struct join_item former, struct join_item here, struct buf *out);

/* Whether it is the base of a set or list that has parts. */
bool join_has_parts(struct slice value);

/*
 * Drops those words of the log of a set about whose members a table of the former server says something, as that is newer: a log has the
 * last word over the runs that it is joined with. Leaves alone what is no set.
 */
void join_drop_words(struct buf *here, struct slice table);

#endif
