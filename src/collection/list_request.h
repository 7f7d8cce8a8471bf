/* A request to a list, and its outcome, in an operation of the kind LIST. */
#ifndef COLLECTION_LIST_REQUEST_H
#define COLLECTION_LIST_REQUEST_H

#include "collection/op.h"

enum list_verb {
	LIST_RANGE,     /* the elements from `start` to `stop` */
	LIST_LENGTH,    /* the number of elements; sets `held` and `due` */
	LIST_POSITION,  /* the index of an `item`, as selected by `find`, or MISSING */
	LIST_POP_FRONT, /* remove and return the first `count` elements */
	LIST_POP_BACK,  /* remove and return the last `count` elements, the last one first */
	LIST_REMOVE, /* remove `start` elements equal to `item`; negative: from the tail; 0: all */
	LIST_SET,    /* replace the element at index `start` by `item` */
	LIST_TRIM,   /* remove all elements outside of `start` to `stop` */
	LIST_INSERT, /* insert `item` before the first `pivot`, after it if `start`; or MISSING */
	LIST_TAKE,   /* if `item` is the element at `start`, 0 or -1, remove it; else CHANGED */
	LIST_ROTATE, /* move the element at `start`, 0 or -1, to `stop`, 0 or -1; return it */
	/*
	 * Take the element at `start`, 0 or -1, and hold it with the ticket `item` for `stop`
	 * seconds; return its ticket, deliveries and word. FULL: too many are held. If it was
	 * delivered more than `count` times, and `count` is not 0, it is held to be moved away.
	 */
	LIST_HOLD,
	LIST_ACK, /* remove the held element with the ticket `item`, or MISSING */
	LIST_FAIL /* give it back to the end from which it was not taken, or MISSING */
};

/* Returns whether such a request may change the list. */
static inline bool list_verb_writes(enum list_verb verb)
{
	return verb != LIST_RANGE && verb != LIST_LENGTH && verb != LIST_POSITION;
}

/* The positions that a LIST_POSITION returns. */
struct list_find {
	int64_t rank;   /* begin with the nth match; from the tail if negative; never 0 */
	uint64_t count; /* maximum number of positions; 0 for all */
	uint64_t most;  /* maximum number of elements to compare; 0 for all */
	bool many;      /* return all positions, perhaps none, joined by spaces; not one */
};

/* A request to a list. Indexes count from 0; negative ones from the end, -1 is the last element. */
struct list_request {
	enum list_verb verb;
	int64_t start, stop;
	uint64_t count;
	struct slice item, pivot; /* elements */
	struct list_find find;
	/* Progress of a read, used by the machine: elements returned by a RANGE or compared. */
	size_t done;
	uint64_t found; /* POSITION: how many of them matched */
	/* The outcome, set by the machine. The batch's text has `size` bytes of it from `at` on. */
	enum outcome_status status;
	size_t at, size;
	uint64_t number;
	size_t held; /* LENGTH: the number of held elements; 0 in an adopted encoding */
	int64_t due; /* when the first of them is to be given back, by the server's clock */
};

#endif
