/*
 * The join of two copies of a set: the closed part of the larger horizon; of both logs the words
 * after it; for each member the one that counts. It is idempotent, commutative and associative, so
 * any proxy may write it to either server at any time.
 *
 *     create -> step, until all words are read, sorted and written -> the base in `out`
 *
 * The new base has its words in the order of their stamps, one group for each stamp, so that equal
 * copies are equal bytes. It may also be closed further: words up to a later horizon are then in
 * the closed part, as in a base with one copy.
 */
#ifndef COLLECTION_COPIES_JOIN_H
#define COLLECTION_COPIES_JOIN_H

#include "collection/copies/copy.h"
#include "util/buf.h"

struct copy_words;

struct copy_join {
	struct copy copy; /* of the result; `log` is not used */
	bool exists;      /* the set is not missing; known when `out` is */
	struct buf out;   /* the base */
	struct copy_words *words;
};

/*
 * Begins a join, whose bases are borrowed until copy_join_free. `b` may be NULL: then the
 * result is `a` in order. Words up to `horizon` become closed, unless the set is gone and not
 * created up to there; 0 for none. `fill` is that of the new base. The seed is of the hash.
 */
void copy_join_begin(struct copy_join *join, const struct copy *a, const struct copy *b,
	uint64_t horizon, uint64_t fill, uint64_t seed);

/* Does a portion of the work. COPY_WORD: there is more. At COPY_MALFORMED there is no result. */
enum copy_read copy_join_step(struct copy_join *join) __attribute__((warn_unused_result));
enum { COPY_JOIN_STEPS = 1024 };

void copy_join_free(struct copy_join *join);

#endif
