/*
 * The item on the new server while a move is in progress: first a claim, then a copy. Both read
 * as a missing item.
 *
 *     @claim.<check>
 *     @copy.<check>.<flags>.<cas>.<mover>.<bytes> value
 *
 * Each ends with a space. The check is that of the key. The flags of such an item are
 * MARK_FLAGS. The text contains the flags of the value, the cas id of the item on its former
 * server, and a random number of the mover. Text that others prepend or append meanwhile
 * precedes or follows the mark.
 *
 * A client may store an item with MARK_FLAGS: it is a mark only if its value has the form of
 * one, with the check of its key. No reply shows a mark to a client. A client that reads a mark
 * directly from the server and stores it again creates a mark: the moves complete it like any
 * other, and that one key is missing, or has the value and flags in the text.
 */
#ifndef COLLECTION_MOVE_MARK_H
#define COLLECTION_MOVE_MARK_H

#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/slice.h"

#define MARK_FLAGS UINT32_C(0xc0b1e5a7)

enum mark_kind {
	MARK_NONE, /* the item is not a mark; `value` is the whole item */
	MARK_CLAIM,
	MARK_COPY
};

struct mark {
	enum mark_kind kind;
	struct slice before, value, behind;
	uint32_t flags; /* of the value; 0 for a claim */
	uint64_t cas;   /* of a copy: cas id of the copied item */
	uint64_t mover; /* of a copy: random number of its mover */
};

/* Parses an item with these flags. The mark borrows `data`. */
struct mark mark_read(struct slice key, uint32_t flags, struct slice data);

/*
 * Returns whether an item with these flags must be treated as a mark. Without a value only the
 * flags decide, unless the key is known to have an `imitated` mark: an item with the flags of a
 * mark that is not one.
 */
static inline bool mark_is_met(
	struct slice key, uint32_t flags, struct slice data, bool has_value, bool imitated)
{
	if (flags != MARK_FLAGS)
		return false;
	return has_value ? mark_read(key, flags, data).kind != MARK_NONE : !imitated;
}

/* Append a claim, or a copy up to its value. */
void mark_add_claim(struct buf *out, struct slice key);
void mark_add_copy(struct buf *out, struct slice key, uint32_t flags, uint64_t cas, uint64_t mover,
	size_t bytes);

#endif
