/*
 * What a new server has of an item while that is moved: a claim, and then a copy. Both read as a missing item.
 *
 *     @claim.<check>
 *     @copy.<check>.<flags>.<cas>.<mover>.<bytes> value
 *
 * A space ends each. The check is that of the key. The flags of such an item are MARK_FLAGS; those of the value stand in the text,
 * the cas id that the item had on its former server, and a random number of the mover.
 * What others prepend or append meanwhile stands around it.
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

/* Append a claim; a copy, up to its value. */
void mark_add_claim(struct buf *out, struct slice key);
void mark_add_copy(struct buf *out, struct slice key, uint32_t flags, uint64_t cas, uint64_t mover, size_t bytes);

#endif
