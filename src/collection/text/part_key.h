/*
 * The key of a part, <base>.<id>: see oplog.h. Only setlistd writes such items, so the key
 * itself identifies a part and its place, independent of the current rules: the server of its
 * base, or one of the next ones on the ring, depending on the id.
 *
 * A base that has two copies (copies/copy.h) has the second one under the key <base>.~copy. That of
 * a part is <base>.~copy.<id>, with the same id, so a second copy is a base with parts, too. Each
 * item of it is one server further on the ring than that of the first copy.
 */
#ifndef COLLECTION_TEXT_PART_KEY_H
#define COLLECTION_TEXT_PART_KEY_H

#include <stdbool.h>

#include "protocol/command.h"
#include "util/buf.h"
#include "util/slice.h"

/*
 * Number of places that an id can encode, one digit; and of all places, since a second copy is one
 * server further.
 */
enum { PART_PLACES = 10, PART_ALL_PLACES = PART_PLACES + 1 };

/* How much longer the key of a second copy is. */
enum { PART_SECOND_SIZE = SECOND_KEY_SIZE };

/*
 * Returns the key of the base if the key ends in the id of a part; else empty. For a part of a
 * second copy that is the base of this copy. Borrowed from the key.
 */
struct slice part_key_base(struct slice key);

/* Returns whether it is the key of a second copy, of a base or of a part. */
bool part_key_is_second(struct slice key);

/* Returns whether it is a key that clients must not write to: of a part, or of a second copy. */
bool part_key_is_reserved(struct slice key);

/* Appends the key of the second copy of a base or part, whose first copy has this key. */
void part_key_second(struct slice key, struct buf *out);
/* Writes it: key.n + PART_SECOND_SIZE bytes. Returns the end. */
char *part_key_write_second(char *to, struct slice key);

/*
 * Returns the key of the first copy's base: the one whose rule applies to the item. It is the key
 * itself unless that is of a part or a second copy. Borrowed from the key.
 */
struct slice part_key_first_base(struct slice key);

/*
 * Returns the key that determines the position on the ring: that of the first copy's base, or its
 * own. The item is on the `behind`-th server after that position, and `behind` is less than
 * PART_ALL_PLACES. Borrowed from the key.
 */
struct slice part_key_place(struct slice key, unsigned *behind);

/*
 * Returns whether it is the key of a part that is on the server of its base for any
 * list of servers.
 */
bool part_key_is_at_base(struct slice key);

#endif
