/*
 * The kinds of text in adopted encodings: signed words, `+1234+222-222`, where the sign is the
 * delimiter; and delimited members, `a,b,c,`, where each member is followed by a delimiter.
 */
#ifndef COLLECTION_ADOPTED_ENCODINGS_WORDS_H
#define COLLECTION_ADOPTED_ENCODINGS_WORDS_H

#include "collection/text/fold.h"

/* Folds signed words, which the fold borrows. Returns false if the text is malformed. */
bool signed_fold(struct fold *f, struct slice text) __attribute__((warn_unused_result));

/* Returns the size of `+member` for each live member, or with `all` also of `-member`. */
size_t signed_size(const struct fold *f, bool all);

/*
 * Removes the next member and its delimiter from a text. Returns false at the end, or if the
 * text is malformed: then bytes remain.
 */
bool delimited_next(struct slice *text, char delimiter, struct slice *member);

/* Appends the member and the delimiter `count` times; never if `count` is negative. */
void delimited_add(struct buf *out, struct slice member, char delimiter, int64_t count);

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

/* Returns additions minus removals of a member. */
int32_t counted_net(const struct counted *c, struct slice member);

/* --- texts that are read in portions --- */

struct words {
	struct slice text;
	enum words_kind {
		WORDS_SIGNED,
		WORDS_ADDED,   /* delimited, and counted as added */
		WORDS_REMOVED, /* the same as removed */
		WORDS_LOG      /* a log of additions; it is only copied */
	} kind;
	char delimiter;
};

/*
 * Reads the next portion of a text into `c`, about FOLD_STEPS steps of work, and removes it from
 * `words`. Returns false if it is malformed.
 */
bool words_fold(struct counted *c, struct words *words) __attribute__((warn_unused_result));

/*
 * Removes the next word, which has no sign, from a text that is not signed. Returns false at
 * its end.
 */
bool words_next(struct words *words, struct slice *member);

#endif
