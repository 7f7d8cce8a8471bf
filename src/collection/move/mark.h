/*
 * What a new server has of an item while that is moved: a claim, and then a copy. Both read as a missing item.
 *
 *     @claim.<check>
 *     @copy.<check>.<flags>.<cas>.<mover>.<bytes> value
 *
 * A space ends each. The check is that of the key. The flags of such an item are MARK_FLAGS; those of the value stand in the text,
 * the cas id that the item had on its former server, and a random number of the mover.
 * What others prepend or append meanwhile stands around it.
 *
 * A client may store an item with MARK_FLAGS: it is a mark only if its value is one, with the check of its key. No reply shows a mark to a
 * client. One that reads a mark from the server itself and stores it again has made one: then the moves end it, as any other, and that one
 * key is missing, or has the value and flags in the text.
 */
#ifndef COLLECTION_MOVE_MARK_H
#define COLLECTION_MOVE_MARK_H

#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/slice.h"

#define MARK_FLAGS UINT32_C(0xc0b1e5a7)

enum mark_kind {
	MARK_NONE, /* the item is no mark; `value` is all of it */
	MARK_CLAIM,
	MARK_COPY
};

struct mark {
	enum mark_kind kind;
	struct slice before, value, behind;
	uint32_t flags; /* of the value; of a claim 0 */
	uint64_t cas;   /* of a copy: of what was copied */
	uint64_t mover; /* of a copy: who made it */
};

/* Reads an item with these flags. The mark borrows `data`. */
struct mark mark_read(struct slice key, uint32_t flags, struct slice data);

/*
 * Whether an item with these flags is taken for a mark. Without its value the flags decide, unless the key is known to have an item that is
 * `imitated`: one with the flags of a mark, which is none.
 */
static inline bool mark_is_met(struct slice key, uint32_t flags, struct slice data, bool has_value, bool imitated)
{
	if (flags != MARK_FLAGS)
		return false;
	return has_value ? mark_read(key, flags, data).kind != MARK_NONE : !imitated;
}

/* Append a claim; a copy, up to its value. */
void mark_add_claim(struct buf *out, struct slice key);
void mark_add_copy(struct buf *out, struct slice key, uint32_t flags, uint64_t cas, uint64_t mover, size_t bytes);

#endif
