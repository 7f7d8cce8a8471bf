/*
 * Folding: what a log of additions and removals comes to. A fold is fed slices of log and borrows them: they must stay where
 * they are for as long as it is read. The last word on a member wins; members keep the order in which they first came.
 */
#ifndef COLLECTION_FOLD_H
#define COLLECTION_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/slice.h"

struct fold_member {
	const char *p;
	uint32_t n;
	bool live;
};

struct fold {
	struct fold_member *members; /* live and removed ones */
	struct fold_slot *slots;     /* open addressing; their number is a power of two */
	size_t member_count, member_capacity, slot_count;
	size_t live;       /* members that are in */
	size_t all_bytes;  /* of the names of all, removed ones too */
	size_t live_bytes; /* of their names */
	size_t tokens;     /* that were read */
	size_t bytes;      /* that were read */
	uint64_t seed;     /* of the hash */
};

/* All zeroes but the seed is an empty fold. fold_reset empties it and keeps its memory, fold_free gives that back. */
void fold_reset(struct fold *f);
void fold_free(struct fold *f);

/*
 * Reads a log: tokens `+member ` and `-member `, each ended by one space. False when it is anything else; what was read until
 * then stays, so the fold is good for nothing but a reset.
 */
bool fold_log(struct fold *f, struct slice log) __attribute__((warn_unused_result));

/* Says that the bytes of all that was read were moved, from `from` to `to`. */
void fold_rebase(struct fold *f, const char *from, const char *to);

/* One addition or removal. */
void fold_add(struct fold *f, struct slice member);
void fold_remove(struct fold *f, struct slice member);

bool fold_contains(const struct fold *f, struct slice member);

/* Bytes of the members joined by one space, and those bytes. */
size_t fold_joined_size(const struct fold *f);
void fold_join(const struct fold *f, struct buf *out);

/* The shortest log that folds to the same: an addition for each member. */
size_t fold_log_size(const struct fold *f);
void fold_encode(const struct fold *f, struct buf *out);

/* The same for a log that lies over older ones: the last word on each member, a removal too. */
size_t fold_delta_size(const struct fold *f);
void fold_encode_delta(const struct fold *f, struct buf *out);

/* The place of a member in f->members; one that was not mentioned yet gets one, dead. fold_set says whether it is in. */
size_t fold_note(struct fold *f, struct slice member);
void fold_set(struct fold *f, size_t i, bool live);

/* Bytes of memory that it holds. */
size_t fold_memory(const struct fold *f);

/* The places of all members, in byte order of their names. The caller frees it. */
uint32_t *fold_sort(const struct fold *f);

/* True when the member was mentioned, and then its place. */
bool fold_find(const struct fold *f, struct slice member, size_t *i);

/* True when the log said anything of the member, and then in `live` what its last word was. */
bool fold_mentions(const struct fold *f, struct slice member, bool *live);

#endif
