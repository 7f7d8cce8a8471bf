/*
 * The key of a part, <base>.<id>: see oplog.h. Only setlistd writes such items, so the key alone tells that it is a part, and where it
 * lies, whatever the rules say by now: on the server of its base, or on one of the next ones on the ring, as its id says.
 */
#ifndef COLLECTION_TEXT_PART_KEY_H
#define COLLECTION_TEXT_PART_KEY_H

#include <stdbool.h>

#include "util/slice.h"

/* The number of places that an id can tell: one digit. */
enum { PART_PLACES = 10 };

/* The key of the base, if the key ends in the id of a part; else empty. Borrowed from the key. */
struct slice part_key_base(struct slice key);

/*
 * The key whose place on the ring counts, that of the base or its own. The item lies on the `behind`-th server behind it. Borrowed from
 * the key.
 */
struct slice part_key_place(struct slice key, unsigned *behind);

/* Whether it is the key of a part that lies where its base does, whatever servers there are. */
bool part_key_is_at_base(struct slice key);

#endif
