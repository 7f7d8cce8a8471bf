/*
 * The key of a part, <base>.<id>: see oplog.h. Only setlistd writes such items, so the key
 * itself identifies a part and its place, independent of the current rules: the server of its
 * base, or one of the next ones on the ring, depending on the id.
 */
#ifndef COLLECTION_TEXT_PART_KEY_H
#define COLLECTION_TEXT_PART_KEY_H

#include <stdbool.h>

#include "util/slice.h"

/* Number of places that an id can encode: one digit. */
enum { PART_PLACES = 10 };

/*
 * Returns the key of the base if the key ends in the id of a part; else empty.
 * Borrowed from the key.
 */
struct slice part_key_base(struct slice key);

/*
 * Returns the key that determines the position on the ring: that of the base, or its own. The
 * item is on the `behind`-th server after that position. Borrowed from the key.
 */
struct slice part_key_place(struct slice key, unsigned *behind);

/*
 * Returns whether it is the key of a part that is on the server of its base for any
 * list of servers.
 */
bool part_key_is_at_base(struct slice key);

#endif
