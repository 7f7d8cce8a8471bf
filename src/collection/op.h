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
	OP_TAKE,    /* remove all members, or a block of a large set: see `set`, a TAKE */
	OP_COMPACT, /* fold the base; if `all`, merge all runs too */
	OP_COMMIT,  /* replace `prefix` at the head of the base by `log` */
	OP_LIST,    /* read or rewrite a list: see `list` */
	OP_CLAIM,   /* add the member of `log`; the `number` is 1 if it was added, else 0 */
	OP_EXPIRE,  /* append the additions in `log`, a member once; the `number` is how many */
	OP_LEASE,   /* take the lease of a missing set or list for `count` seconds */
	OP_LOAD,  /* add `log` to the load with the lease `token`; if it `completes`, complete it */
	OP_TOUCH, /* set the time to live of a collection and all its parts to `ttl` */
	OP_DELETE, /* delete a collection and all its parts */
	OP_CALL    /* a plain call, queued after earlier operations on its key */
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
	OUTCOME_FULL,      /* LIST: too many elements are held */
	OUTCOME_FAILED     /* a call failed: see `result` */
};

/* The outcome of an operation. All pointers are borrowed until `done` returns. */
struct outcome {
	enum outcome_status status;
	/* FAILED: the failure; READ and LIST: the reply about the base */
	const struct result *result;
	/*
	 * POP: removals, and TAKE in an adopted encoding; LIST: elements, joined by spaces;
	 * LEASE: the token
	 */
	struct slice log;
	/* COUNT: the new value; LIST: a length or index; CLAIM, EXPIRE: see there */
	uint64_t number;
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
		struct {                         /* READ, TAKE; gather.c sets the last three */
			struct set_request *set; /* receives the answer */
			/* an append of the client after this read is carried out before it */
			bool early;
			bool made; /* an append that creates a missing set was gathered before it */
			struct op *before; /* the previous read of this client */
		};
		struct { /* REPLACE */
			enum replace_mode mode;
			bool built; /* `log` is the base of a set whose run is already written */
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
		struct {
			uint64_t count; /* COUNT, POP, LEASE */
			bool copied;    /* COUNT: see call.copied */
		};
	};
};

STAILQ_HEAD(op_queue, op);

/* Returns whether such an operation is one on a list. */
static inline bool op_is_list(const struct op *op)
{
	return op->type == COLLECTION_LIST;
}

#endif
