/*
 * An operation on one key, submitted by a command. The caller owns it, and must keep the
 * operation and everything that its slices point to in place until `done`. `done` is called
 * exactly once, and never from within lanes_submit.
 */
#ifndef COLLECTION_OP_H
#define COLLECTION_OP_H

#include <sys/queue.h>

#include "collection/rules.h"
#include "protocol/call.h"

struct account;
struct set_request;
struct list_request;

enum op_kind {
	OP_APPEND,  /* append `log`, or prepend it if `front`: additions, removals, elements */
	OP_READ,    /* read a set: see `set` */
	OP_REPLACE, /* replace the whole collection by the members of `log` */
	OP_COUNT,   /* add `count` to a counter */
	OP_POP,     /* remove `count` random members; they are the outcome's `log` */
	OP_COMPACT, /* fold the base; if `all`, merge all runs too */
	OP_COMMIT,  /* replace `prefix` at the head of the base by `log` */
	OP_LIST,    /* read or rewrite a list: see `list` */
	OP_CLAIM,   /* add the member of `log`; the `number` is 1 if it was added, else 0 */
	OP_LEASE,   /* take the lease of a missing set or list for `count` seconds */
	OP_LOAD,    /* add `log` to the load with the lease `token`; if it `completes`, complete it */
	OP_TOUCH,   /* set the time to live of a collection and all its parts to `ttl` */
	OP_DELETE,  /* delete a collection and all its parts */
	OP_CALL     /* a plain call, queued after earlier operations on its key */
};

enum outcome_status {
	OUTCOME_DONE,
	OUTCOME_MISSING,   /* the key is missing */
	OUTCOME_CORRUPT,   /* the item is not a collection */
	OUTCOME_NEWER,     /* the item has the format of a later version */
	OUTCOME_IS_SET,    /* LIST: the key holds a set in sorted tables, which has no order */
	OUTCOME_TOO_LARGE, /* the item would be too large; it was not changed */
	OUTCOME_OVERFLOW,  /* the answer would be larger than result_max */
	OUTCOME_BUSY,      /* every attempt lost a race to another writer */
	OUTCOME_PRESENT,   /* REPLACE_MISSING, LEASE: the key is present */
	OUTCOME_LOADING,   /* LEASE: another client is loading the key */
	OUTCOME_CHANGED,   /* REPLACE_SAME: the CAS token has changed */
	OUTCOME_NO_CAS,    /* a rewrite is not possible: the server does not support CAS */
	OUTCOME_RANGE,     /* LIST: there is no element at this index */
	OUTCOME_FAILED     /* a call failed: see `result` */
};

enum list_verb {
	LIST_RANGE,     /* the elements from `start` to `stop` */
	LIST_LENGTH,    /* the number of elements */
	LIST_POSITION,  /* the index of an `item`, as selected by `find`, or MISSING */
	LIST_POP_FRONT, /* remove and return the first `count` elements */
	LIST_POP_BACK,  /* remove and return the last `count` elements, the last one first */
	LIST_REMOVE,    /* remove `start` elements equal to `item`; negative: from the tail; 0: all */
	LIST_SET,       /* replace the element at index `start` by `item` */
	LIST_TRIM,      /* remove all elements outside of `start` to `stop` */
	LIST_INSERT,    /* insert `item` before the first `pivot`, after it if `start`; or MISSING */
	LIST_TAKE,      /* if `item` is the element at `start`, 0 or -1, remove it; else CHANGED */
	LIST_ROTATE     /* move the element at `start`, 0 or -1, to `stop`, 0 or -1; return it */
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
	/* Progress of a read, used by the machine: elements of a RANGE, pieces of a POSITION. */
	size_t done;
	/* POSITION: elements compared so far, and how many of them matched. */
	uint64_t looked, found;
	/* The outcome, set by the machine. The batch's text has `size` bytes of it from `at` on. */
	enum outcome_status status;
	size_t at, size;
	uint64_t number;
};

/* The outcome of an operation. All pointers are borrowed until `done` returns. */
struct outcome {
	enum outcome_status status;
	/* FAILED: the failure; READ and LIST: the reply about the base */
	const struct result *result;
	struct slice log; /* POP: removals; LIST: elements, joined by spaces; LEASE: the token */
	uint64_t number;  /* COUNT: the new value; LIST: a length or index; CLAIM: see there */
};

/* The condition of a REPLACE, and its outcome if the condition does not hold. */
enum replace_mode {
	REPLACE_ANY,
	REPLACE_MISSING, /* else OUTCOME_PRESENT */
	REPLACE_PRESENT, /* else OUTCOME_MISSING */
	REPLACE_SAME     /* the CAS token must be `cas`; else OUTCOME_CHANGED or OUTCOME_MISSING */
};

/* The fields in the union belong to operations of the kinds that are named there. */
struct op {
	STAILQ_ENTRY(op) link;
	enum op_kind kind;
	/* APPEND, REPLACE, LEASE, LOAD: elements of a LIST are added at most once. */
	enum collection_type type;
	bool whole; /* It is all that its request does; see queue_drops. */
	struct slice key;
	struct slice log;        /* APPEND, REPLACE, COMMIT, LOAD; CLAIM: one token */
	int64_t ttl;             /* seconds to live of a collection that is created */
	struct account *account; /* whose operations keep their order; NULL: no client */
	void (*done)(struct op *op, const struct outcome *outcome);
	union {
		struct {             /* APPEND */
			bool create; /* create the collection if it is missing */
			bool front;  /* prepend the log to the stored value */
		};
		struct {                         /* READ; the last three are set by gather.c */
			struct set_request *set; /* receives the answer */
			bool early;              /* an append of the client after this read is carried out before it */
			bool made;               /* an append that creates a missing set was gathered before it */
			struct op *before;       /* the previous read of this client */
		};
		struct { /* REPLACE */
			enum replace_mode mode;
			bool built;     /* `log` is the base of a set whose run is already written */
			uint32_t flags; /* the client's flags */
			uint64_t cas;   /* for REPLACE_SAME */
		};
		struct {                  /* COMPACT */
			bool all;         /* fold for any gain, merge all runs */
			bool merges_only; /* do not fold, only start a merge if one is due */
			unsigned rounds;  /* merges it was queued for, and races it lost */
		};
		struct { /* COMMIT */
			struct slice prefix;
			bool anywhere; /* `prefix` may be anywhere in the base */
		};
		struct {                    /* LOAD */
			struct slice token; /* of the lease */
			bool completes;     /* the load is complete after `log` */
		};
		struct list_request *list; /* LIST */
		uint64_t count;            /* COUNT, POP, LEASE */
	};
};

STAILQ_HEAD(op_queue, op);

/* Returns whether such an operation is one on a list. */
static inline bool op_is_list(const struct op *op)
{
	return op->type == COLLECTION_LIST;
}

/* Returns whether an operation changes nothing, and is done only for its outcome. */
static inline bool op_only_reads(const struct op *op)
{
	return op->kind == OP_READ || (op->kind == OP_LIST && !list_verb_writes(op->list->verb));
}

/* Returns whether an operation may rewrite items, which costs more than a read or one call. */
static inline bool op_rewrites(const struct op *op)
{
	return !op_only_reads(op) && op->kind != OP_APPEND && op->kind != OP_COUNT && op->kind != OP_CALL;
}

#endif
