/*
 * The two kinds of text in adopted encodings: signed words, `+1234+222-222`, where the sign is the delimiter; and delimited
 * members, `a,b,c,`, where a delimiter follows each member.
 */
#ifndef COLLECTION_ADOPTED_ENCODINGS_WORDS_H
#define COLLECTION_ADOPTED_ENCODINGS_WORDS_H

#include "collection/text/fold.h"

/* Folds signed words, which the fold borrows; false when the text is malformed. */
bool signed_fold(struct fold *f, struct slice text) __attribute__((warn_unused_result));

/* Appends `+member` for each live member; with `all` also `-member` for each removed one. signed_size is its length. */
void signed_encode(const struct fold *f, bool all, struct buf *out);
size_t signed_size(const struct fold *f, bool all);

/* Removes the next member and its delimiter from a text. False at the end, or when the text is malformed: then bytes remain. */
bool delimited_next(struct slice *text, char delimiter, struct slice *member);

/* Appends the member and the delimiter `count` times; a negative count is 0. */
void delimited_add(struct buf *out, struct slice member, char delimiter, int64_t count);

/* Appends all live members. */
void delimited_encode(const struct fold *f, char delimiter, struct buf *out);

static inline struct slice member_of(const struct fold_member *m)
{
	return slice_of(m->p, m->n);
}

#endif
