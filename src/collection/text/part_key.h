/*
 * The key of a part, <base>.<id>: see oplog.h. Only setlistd writes such items, so the key alone tells that it is a part, and where
 * it lies: at the place of its base. So a large set or list is on one server.
 */
#ifndef COLLECTION_TEXT_PART_KEY_H
#define COLLECTION_TEXT_PART_KEY_H

#include "util/slice.h"

/* The key of the base, if the key ends in the id of a part; else empty. Borrowed from the key. */
struct slice part_key_base(struct slice key);

/*
 * The key whose place on the ring the item has: that of the base, or its own. Borrowed from the key.
 */
struct slice part_key_place(struct slice key);

/* Whether it is the key of a part that lies where its base does, whatever servers there are. */
static inline bool part_key_is_at_base(struct slice key)
{
	return part_key_place(key).n < key.n;
}

#endif
