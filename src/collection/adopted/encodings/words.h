/*
 * The two texts that the encodings are made of: signed words, `+1234+222-222`, where the operator is the delimiter, and
 * delimited ones, `a,b,c,`, each ended by the delimiter.
 */
#ifndef COLLECTION_ENCODINGS_WORDS_H
#define COLLECTION_ENCODINGS_WORDS_H

#include "collection/text/fold.h"

/* Reads signed words into a fold, which borrows them; false when the text is anything else. */
bool signed_fold(struct fold *f, struct slice text) __attribute__((warn_unused_result));

/* Writes `+member` for each live member, or with `all` the last word on each. */
void signed_encode(const struct fold *f, bool all, struct buf *out);
size_t signed_size(const struct fold *f, bool all);

/* Takes the next member off a delimited text, the delimiter with it; false at its end, or where it is anything else. */
bool delimited_next(struct slice *rest, char delimiter, struct slice *member);

/* Writes `count` times the member and the delimiter. */
void delimited_add(struct buf *out, struct slice member, char delimiter, int64_t count);

/* Writes all live members. */
void delimited_encode(const struct fold *f, char delimiter, struct buf *out);

static inline struct slice member_of(const struct fold_member *m)
{
	return slice_of(m->p, m->n);
}

#endif
