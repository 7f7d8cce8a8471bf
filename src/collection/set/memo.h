/* Memoized answers of a view: while the set is unchanged, equal requests are not computed again. */
#ifndef COLLECTION_SET_MEMO_H
#define COLLECTION_SET_MEMO_H

#include "collection/set_request.h"

enum { MEMOS = 4 };

struct set_memo {
	bool known;
	enum set_verb verb;
	bool after, has_to, more;
	uint64_t count, number;
	struct buf bounds; /* `from` and `to`, joined */
	size_t from_size;
	struct shared *text;
};

/* All zeroes is empty. */
struct set_memos {
	struct set_memo list[MEMOS];
	unsigned next; /* the one to replace next */
	bool any;
	size_t memory; /* bytes of all of them */
};

/*
 * Returns whether the answer to a request is memoized, and stores it in `number` or
 * `shared` of the request.
 */
bool memos_find(const struct set_memos *memos, struct set_request *request);

/* Memoizes the answer to a request, which is a number or in `shared`. */
void memos_keep(struct set_memos *memos, const struct set_request *request);

/* Drops all answers, because the set has changed. */
void memos_forget(struct set_memos *memos);

#endif
