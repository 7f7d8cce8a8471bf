/*
 * The machine for adopted encodings, which are all except oplog: takes snapshots of a
 * collection, and carries out plans. The operations are in operations.c.
 */
#ifndef COLLECTION_ADOPTED_MACHINE_H
#define COLLECTION_ADOPTED_MACHINE_H

#include "collection/adopted/encoding.h"
#include "collection/lane/lane.h"
#include "collection/list/segmented_list.h"
#include "collection/rewrite/cas.h"
#include "collection/set/answer.h"
#include "protocol/failure.h"

struct adopted;
typedef void adopted_next(struct adopted *c);

struct adopted {
	struct lane *lane;
	const struct encoding *encoding;
	enum op_kind kind;
	const struct flow *flow; /* of the operation */
	struct snapshot s;       /* for making plans */
	struct snapshot now;     /* taken after a plan was carried out, to check it */
	struct snapshot *taking; /* the snapshot, one of these two, that is being read */
	size_t pending;          /* reads in progress */
	unsigned want;           /* the fields requested by these reads: WANT_... */
	adopted_next *replied;   /* called after all of them */
	unsigned looks;          /* checks of the snapshot so far */
	struct plan plan;
	size_t step;          /* index of the current step of the plan */
	struct waiter waiter; /* of the step; or of the timer before a retry */
	struct cas cas;       /* of a step that preserves the time to live */
	adopted_next *next;   /* called after a read, or after the plan was carried out */
	adopted_next *lost;   /* called after a step lost a race */
	adopted_next *resume; /* called in the next slice */
	struct fold change;
	adopted_next *then;         /* called when all logs are folded into `change` */
	const struct op *gathered;  /* the operation whose log is being folded into `change` */
	struct words unread;        /* the rest of that log, or of a list */
	struct set_view view;       /* a view of s.all while it is answered from */
	bool lends;                 /* the view is initialised */
	struct set_request sample;  /* the members that a pop takes */
	struct elements elements;   /* of a list that is being read */
	struct segmented_list list; /* the list that list requests read or change */
	bool changed;               /* the list */
	/*
	 * The answer: removals of the members that a pop takes; elements that list requests read.
	 */
	struct buf text;
	unsigned rounds;
	size_t reached; /* touch and delete: position in the order of items */
	/* Touch and delete: the collection is missing, but some of its items may exist. */
	bool missing;
	bool full; /* an append exceeded the server's item size limit */
	struct failure failure;
};

/* Starts the work on the lane's batch. The rule of its key must have an adopted encoding. */
struct adopted *adopted_create(struct lane *lane, enum op_kind kind);

/* Charges the memory of the work to the client of the batch's first operation. */
void adopted_count(const struct adopted *c);

/* Takes a snapshot and calls `next`. If a server fails, ends the batch instead. */
void adopted_read(struct adopted *c, struct snapshot *s, enum purpose purpose, adopted_next *next);

/*
 * Carries out c->plan and calls `next`; or `lost` if a call found an item in a different state
 * than the plan expects.
 */
void adopted_run(struct adopted *c, adopted_next *next, adopted_next *lost);

/* Calls `resume` in the next slice. */
void adopted_pause(struct adopted *c, adopted_next *resume);

/* Ends the batch and frees `c`. */
void adopted_end(struct adopted *c, enum outcome_status status);

/*
 * Counts a retry. After too many, ends the batch with OUTCOME_BUSY or OUTCOME_TOO_LARGE and
 * returns false.
 */
bool adopted_retry(struct adopted *c);

#endif
