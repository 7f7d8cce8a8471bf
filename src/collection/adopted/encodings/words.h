/*
 * The kinds of text in adopted encodings: signed words, `+1234+222-222`, where the sign is the
 * delimiter; and delimited members, `a,b,c,`, where each member is followed by a delimiter.
 */
#ifndef COLLECTION_ADOPTED_ENCODINGS_WORDS_H
#define COLLECTION_ADOPTED_ENCODINGS_WORDS_H

#include "collection/text/fold.h"

/* Folds signed words, which the fold borrows. Returns false if the text is malformed. */
bool signed_fold(struct fold *f, struct slice text) __attribute__((warn_unused_result));

/*
 * signed_encode appends `+member` for each live member; with `all` also `-member` for each
 * removed one. signed_size returns its size.
 */
void signed_encode(const struct fold *f, bool all, struct buf *out);
size_t signed_size(const struct fold *f, bool all);

/*
 * Removes the next member and its delimiter from a text. Returns false at the end, or if the
 * text is malformed: then bytes remain.
 */
bool delimited_next(struct slice *text, char delimiter, struct slice *member);

/* Appends the member and the delimiter `count` times; never if `count` is negative. */
void delimited_add(struct buf *out, struct slice member, char delimiter, int64_t count);

/* Appends all live members. */
void delimited_encode(const struct fold *f, char delimiter, struct buf *out);

static inline struct slice member_of(const struct fold_member *m)
{
	return slice_of(m->p, m->n);
}

/*
 * Counted members: a text may add and remove a member several times. The member is in the set
 * if it was added more often than removed. A change reads the counts first, and adds or removes
 * a member as often as needed.
 */
struct counted {
	struct fold fold;       /* a member is live while it is in the set */
	struct counted_member { /* in the order of the fold */
		int32_t added, removed;
	} * members;
	size_t capacity;
};

/* All zeroes except fold.seed is empty. */
void counted_free(struct counted *c);

/*
 * Counts the members of a delimited text, as added or as removed. Returns false if it
 * is malformed.
 */
bool counted_read(struct counted *c, struct slice text, char delimiter, bool removed)
	__attribute__((warn_unused_result));

/* Returns the counts of a member. */
struct counted_member counted_find(const struct counted *c, struct slice member);

/* Moves the members to `out`, which is emptied first, and drops the counts. */
void counted_to_fold(struct counted *c, struct fold *out);

/* Returns additions minus removals of a member. */
int32_t counted_net(const struct counted *c, struct slice member);

/*
 * Appends the additions and removals, as delimited texts, that carry out `change`. Returns false
 * if a member would have to be repeated too often: then the items should be rewritten first.
 */
bool counted_change(
	const struct counted *c, const struct fold *change, char delimiter, struct buf *added, struct buf *removed);

#endif
