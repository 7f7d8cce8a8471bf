/*
 * One operation on one key, as a command asks for it. Operations on a key wait for one another in its lane; their owner keeps
 * them, with all that their slices point to, where they are until `done`, which is called once and never inside lanes_submit.
 */
#ifndef COLLECTION_OP_H
#define COLLECTION_OP_H

#include <sys/queue.h>

#include "protocol/call.h"

struct set_request;
struct list_request;

enum op_kind {
	OP_APPEND,  /* add or remove members, push items: `log` goes behind what is stored, or with `front` before it */
	OP_READ,    /* read a set, as `set` says */
	OP_REPLACE, /* the members of `log` take the place of all that is stored */
	OP_COUNT,   /* add `count` to a counter */
	OP_POP,     /* take `count` random members out: they are in the outcome's `log`, as removals */
	OP_COMPACT, /* fold the base, and with `all` merge all runs too */
	OP_COMMIT,  /* `log` takes the place of `prefix` at the head of the base */
	OP_LIST,    /* read or rewrite a list, as `list` says */
	OP_TOUCH,   /* give a collection and all its items the time to live `ttl` */
	OP_DELETE,  /* delete a collection and all its items */
	OP_CALL     /* a plain call that had to wait its turn */
};

enum outcome_status {
	OUTCOME_DONE,
	OUTCOME_MISSING,   /* there is no such collection */
	OUTCOME_CORRUPT,   /* what is stored is no collection */
	OUTCOME_NEWER,     /* it is stored in a form of a later version */
	OUTCOME_IS_SET,    /* LIST: it is a set in sorted tables, which have another order */
	OUTCOME_TOO_LARGE, /* it does not fit; what was there is still there */
	OUTCOME_BUSY,      /* others won every race */
	OUTCOME_PRESENT,   /* REPLACE_MISSING: there is one */
	OUTCOME_CHANGED,   /* REPLACE_SAME: it is another by now */
	OUTCOME_NO_CAS,    /* it cannot be rewritten: its server gives no CAS tokens */
	OUTCOME_RANGE,     /* LIST: there is no such index */
	OUTCOME_FAILED     /* see `result` */
};

enum list_verb {
	LIST_RANGE,     /* the items from `start` to `stop` */
	LIST_LENGTH,    /* how many there are */
	LIST_POSITION,  /* of the first `item`; MISSING when there is none */
	LIST_POP_FRONT, /* take out the first `count` */
	LIST_POP_BACK,  /* the last `count`, the very last first */
	LIST_REMOVE,    /* take out `item`, `start` times from the head, or when it is below 0 the tail; 0 for all */
	LIST_SET,       /* `item` takes the place of that at `start` */
	LIST_TRIM       /* keep those from `start` to `stop` */
};

/* What is asked of a list. Positions count from 0, below 0 from the end. */
struct list_request {
	enum list_verb verb;
	int64_t start, stop;
	uint64_t count;
	struct slice item;
	/* For the machine: what it came to, of the text of all that are answered together. */
	enum outcome_status status;
	size_t at, size;
	uint64_t number;
};

/* What an operation came to. All pointers are borrowed for the call of `done` alone. */
struct outcome {
	enum outcome_status status;
	const struct result *result; /* the failure; or of a READ or LIST, the reply about the base */
	struct slice log;            /* POP: what was taken out, as removals; LIST: items, joined by one space */
	uint64_t number;             /* COUNT: the counter's value with this delta and all before it; LIST: a number */
};

/* Under which condition a REPLACE replaces; where it does not hold, the outcome says so. */
enum replace_mode {
	REPLACE_ANY,
	REPLACE_MISSING, /* else OUTCOME_PRESENT */
	REPLACE_PRESENT, /* else OUTCOME_MISSING */
	REPLACE_SAME     /* only what was read with `cas` in its result: else OUTCOME_CHANGED or OUTCOME_MISSING */
};

struct op {
	STAILQ_ENTRY(op) link;
	enum op_kind kind;
	bool create;      /* APPEND: make the collection when it is missing */
	bool front;       /* APPEND: before what is stored */
	bool all;         /* COMPACT: whatever it gains, and all runs */
	bool merges_only; /* COMPACT: only see whether runs are to be merged */
	bool push;        /* APPEND: never to be done twice; and REPLACE: what it makes is a list */
	struct slice key;
	struct slice log; /* APPEND, REPLACE, COMMIT */
	struct slice prefix;
	uint64_t count;  /* COUNT, POP */
	unsigned rounds; /* COMPACT: merges that it waited for */
	int64_t ttl;     /* of what is newly made */
	uint32_t flags;  /* REPLACE: of the client, for what is newly made */
	uint64_t cas;    /* REPLACE_SAME */
	enum replace_mode mode;
	const void *client; /* whose operations must keep their order; only compared */
	struct list_request *list;
	struct set_request *set; /* READ: what is asked, and where what it comes to goes */
	void (*done)(struct op *op, const struct outcome *outcome);
	/*
	 * READ, for gather.c: an append behind it is carried out before it; one before it makes the set where there is none;
	 * the read of the same client before this one.
	 */
	bool early, made;
	struct op *before;
};

STAILQ_HEAD(op_queue, op);

#endif
