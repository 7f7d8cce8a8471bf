/*
 * An operation on one key, submitted by a command. Its owner keeps it, and all that its slices point to, unmoved
 * until `done`. `done` is called exactly once, and never inside lanes_submit.
 */
#ifndef COLLECTION_OP_H
#define COLLECTION_OP_H

#include <sys/queue.h>

#include "protocol/call.h"

struct account;
struct set_request;
struct list_request;

enum op_kind {
	OP_APPEND, /* add or remove members, push elements: put `log` behind the stored value, or before it if `front` */
	OP_READ,   /* read a set, as `set` says */
	OP_REPLACE, /* replace the whole collection by the members of `log` */
	OP_COUNT,   /* add `count` to a counter */
	OP_POP,     /* remove `count` random members, and give them in the outcome's `log` */
	OP_COMPACT, /* fold the base; if `all`, merge all runs too */
	OP_COMMIT,  /* replace `prefix` at the head of the base by `log` */
	OP_LIST,    /* read or rewrite a list, as `list` says */
	OP_CLAIM,   /* add the member of `log`; the outcome's `number` is 1 for the one that adds it, else 0 */
	OP_LEASE,   /* take the lease of a missing set or list, for `count` seconds; its token is the outcome's `log` */
	OP_LOAD,    /* add what is in `log` to what was loaded with the lease `token`; if `all`, that completes it */
	OP_TOUCH,   /* set the time to live of a collection and all its parts to `ttl` */
	OP_DELETE,  /* delete a collection and all its parts */
	OP_CALL     /* a plain call, queued behind operations on its key */
};

enum outcome_status {
	OUTCOME_DONE,
	OUTCOME_MISSING,   /* the key is missing */
	OUTCOME_CORRUPT,   /* the item is no collection */
	OUTCOME_NEWER,     /* the item is in a form of a later version */
	OUTCOME_IS_SET,    /* LIST: the key holds a set in sorted tables, which keep no order of insertion */
	OUTCOME_TOO_LARGE, /* the item would be too large; it was not changed */
	OUTCOME_OVERFLOW,  /* the answer would have more bytes than result_max */
	OUTCOME_BUSY,      /* every attempt lost a race to another writer */
	OUTCOME_PRESENT,   /* REPLACE_MISSING, LEASE: the key is present */
	OUTCOME_LOADING,   /* LEASE: somebody loads it */
	OUTCOME_CHANGED,   /* REPLACE_SAME: the CAS token has changed */
	OUTCOME_NO_CAS,    /* no rewrite is possible: the server gives no CAS tokens */
	OUTCOME_RANGE,     /* LIST: there is no element at this index */
	OUTCOME_FAILED     /* a call failed: see `result` */
};

enum list_verb {
	LIST_RANGE,     /* the elements from `start` to `stop` */
	LIST_LENGTH,    /* the number of elements */
	LIST_POSITION,  /* the index of an `item`, as `find` says; MISSING if there is none */
	LIST_POP_FRONT, /* remove and give the first `count` elements */
	LIST_POP_BACK,  /* remove and give the last `count` elements, the last one first */
	LIST_REMOVE,    /* remove the first `start` elements equal to `item`; from the tail if negative; all if 0 */
	LIST_SET,       /* replace the element at index `start` by `item` */
	LIST_TRIM,      /* remove all elements outside of `start` to `stop` */
	LIST_INSERT, /* add `item` before the first `pivot`, or behind it if `start` is 1; MISSING if there is none */
	LIST_TAKE,   /* remove the element at index `start`, 0 or -1, if it is `item`; else CHANGED */
	LIST_ROTATE  /* move the element at index `start`, 0 or -1, to index `stop`, the same; and give it */
};

/* Whether such a request may change the list. */
static inline bool list_verb_writes(enum list_verb verb)
{
	return verb != LIST_RANGE && verb != LIST_LENGTH && verb != LIST_POSITION;
}

/* Which positions of an element a POSITION finds. */
struct list_find {
	int64_t rank;   /* the first of them is that of the nth such element, from the tail if negative; never 0 */
	uint64_t count; /* of positions; 0 for all */
	uint64_t most;  /* elements to look at; 0 for all */
	bool many;      /* the answer is the positions, joined by one space, perhaps none; not one position */
};

/* A request to a list. Indexes count from 0; negative ones count from the end, -1 being the last element. */
struct list_request {
	enum list_verb verb;
	int64_t start, stop;
	uint64_t count;
	struct slice item, pivot; /* elements */
	struct list_find find;
	/* How far a read has come, for the machine: elements of a RANGE, pieces of a POSITION. */
	size_t done;
	uint64_t looked, found; /* elements of a POSITION, and how many of these are the item */
	/* Set by the machine: the outcome. `at` and `size` are a part of the text of all requests of the batch. */
	enum outcome_status status;
	size_t at, size;
	uint64_t number;
};

/* The outcome of an operation. All pointers are borrowed for the call of `done`. */
struct outcome {
	enum outcome_status status;
	const struct result *result; /* FAILED: the failure; READ and LIST: the reply about the base */
	struct slice
		log; /* POP: removed members, each as `-member `; LIST: elements, joined by one space; LEASE: the token */
	uint64_t
		number; /* COUNT: the counter's value after this operation; LIST: a length or index; CLAIM: see there */
};

/* The condition of a REPLACE. If it does not hold, the outcome is the one that is named here. */
enum replace_mode {
	REPLACE_ANY,
	REPLACE_MISSING, /* else OUTCOME_PRESENT */
	REPLACE_PRESENT, /* else OUTCOME_MISSING */
	REPLACE_SAME     /* the CAS token must be `cas`; else OUTCOME_CHANGED or OUTCOME_MISSING */
};

struct op {
	STAILQ_ENTRY(op) link;
	enum op_kind kind;
	bool create;      /* APPEND: create the collection if it is missing */
	bool front;       /* APPEND: put the log before what is stored */
	bool all;         /* COMPACT: fold however little that gains, and merge all runs; LOAD: that is all */
	bool anywhere;    /* COMMIT: `prefix` stands anywhere in the base */
	bool merges_only; /* COMPACT: do not fold, only start a merge if one is due */
	bool built;       /* REPLACE: `log` is the base of a set, whose run is written */
	bool push; /* APPEND: elements of a list, which must not be added twice; REPLACE, LEASE, LOAD: of a list */
	struct slice key;
	struct slice log; /* APPEND, REPLACE, COMMIT, LOAD; CLAIM: one token */
	struct slice prefix;
	struct slice token; /* LOAD */
	uint64_t count;     /* COUNT, POP, LEASE */
	unsigned rounds;    /* COMPACT: merges that this operation has waited for, and races that it has lost */
	int64_t ttl;        /* seconds, of a collection that is created */
	uint32_t flags;     /* REPLACE: the client's flags */
	uint64_t cas;       /* REPLACE_SAME */
	enum replace_mode mode;
	struct account *account; /* of the client, whose operations keep their order; NULL: no client waits */
	struct list_request *list;
	struct set_request *set; /* READ: the request, which receives the answer */
	void (*done)(struct op *op, const struct outcome *outcome);
	/*
	 * READ, set by gather.c. `early`: an append that the client sent later is carried out before this read.
	 * `made`: an append that creates a missing set was gathered before this read. `before`: the previous read of
	 * this client.
	 */
	bool early, made;
	struct op *before;
};

STAILQ_HEAD(op_queue, op);

#endif
