/* The last answers from a view, for equal questions: as long as the set has not changed, nobody computes them again. */
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

/* All zeroes: none. */
struct set_memos {
	struct set_memo list[MEMOS];
	unsigned next; /* to be replaced */
	bool any;
	size_t memory; /* bytes of all of them */
};

/* Gives the answer to a request, if it is known: to its `number`, or to `shared`. */
bool memos_find(const struct set_memos *memos, struct set_request *request);

/* Remembers the answer of a request, which is a number or in `shared`. */
void memos_keep(struct set_memos *memos, const struct set_request *request);

/* The set has changed: forgets all. */
void memos_forget(struct set_memos *memos);

#endif
