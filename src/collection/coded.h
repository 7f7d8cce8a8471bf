/* The inside of the machine for encodings beside oplog; coded.c drives, coded_ops.c says what each operation is. */
#ifndef COLLECTION_CODED_H
#define COLLECTION_CODED_H

#include "collection/encoding.h"
#include "collection/lane.h"

struct coded;
typedef void coded_next(struct coded *c);

struct coded {
	struct lane *lane;
	const struct encoding *encoding;
	enum op_kind kind;
	struct snapshot s;   /* what plans are made from */
	struct snapshot now; /* taken behind a plan, to check it */
	struct snapshot *taking;
	size_t pending; /* reads under way */
	unsigned looks; /* how often a snapshot was looked at again */
	struct plan plan;
	size_t step;          /* of the plan, under way */
	int64_t exptime;      /* that was sent with it */
	struct waiter waiter; /* of the step */
	struct waiter rest;   /* before another attempt */
	struct waiter look;   /* at the time to live, right before a CAS */
	struct result looked;
	coded_next *next; /* what comes when all is read, or the plan carried out */
	coded_next *lost; /* what comes when a step lost a race */
	struct fold change, all;
	struct buf text; /* what a pop takes, as removals */
	unsigned rounds;
	size_t swept; /* items that a touch or delete has reached */
	bool missing; /* there is no collection, only what is left of one */
	bool full;    /* an append found no room */
	bool failed;
	struct result failure;
	struct buf failure_line;
};

/* Takes a snapshot and goes on. Where a server fails, the operation ends. */
void coded_read(struct coded *c, struct snapshot *s, enum purpose purpose, coded_next *next);

/* Carries out c->plan and goes on; with `lost` where one of its calls did not find what the plan was made for. */
void coded_run(struct coded *c, coded_next *next, coded_next *lost);

/* Ends the batch. `c` is gone. */
void coded_end(struct coded *c, enum outcome_status status);

/* Counts one more round; false when there have been too many, and then the batch was ended, with BUSY or TOO_LARGE. */
bool coded_again(struct coded *c);

/* The item whose flags and time to live are those of the collection; NULL when it was not read. */
const struct piece *coded_main_piece(const struct coded *c);

/* What each kind of operation begins with. */
void coded_change(struct coded *c);
void coded_view(struct coded *c);
void coded_replace(struct coded *c);
void coded_take(struct coded *c);
void coded_compact(struct coded *c);
void coded_sweep(struct coded *c);

/* Lists; these take the csv encoding alone. */
void coded_push(struct coded *c);
void coded_list(struct coded *c);
/* Plans that the items of a log of additions are all there is. */
void coded_write_list(const struct coded *c, struct slice log, struct plan *plan);

#endif
