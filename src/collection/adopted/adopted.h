/* The machine for the encodings beside oplog. machine.c drives it; operations.c, list.c and touch_delete.c are its operations. */
#ifndef COLLECTION_ADOPTED_ADOPTED_H
#define COLLECTION_ADOPTED_ADOPTED_H

#include "collection/adopted/encoding.h"
#include "collection/lane/lane.h"
#include "collection/rewrite/cas.h"
#include "protocol/failure.h"

/* Carries out the lane's batch, whose key has a rule with such an encoding. */
void adopted_start(struct lane *lane, enum op_kind kind);

/* --- its inside --- */

struct adopted;
typedef void adopted_next(struct adopted *c);

struct adopted {
	struct lane *lane;
	const struct encoding *encoding;
	enum op_kind kind;
	struct snapshot s;   /* what plans are made from */
	struct snapshot now; /* taken behind a plan, to check it */
	struct snapshot *taking;
	size_t pending; /* reads under way */
	unsigned looks; /* how often a snapshot was looked at again */
	struct plan plan;
	size_t step;           /* of the plan, under way */
	struct waiter waiter;  /* of the step */
	struct cas cas;        /* of a step that keeps a time to live */
	struct waiter backoff; /* before another attempt */
	adopted_next *next;    /* what comes when all is read, or the plan carried out */
	adopted_next *lost;    /* what comes when a step lost a race */
	struct fold change, all;
	struct buf text; /* what a pop takes, as removals */
	unsigned rounds;
	size_t reached; /* items, by a touch or delete */
	bool missing;   /* there is no collection, only what is left of one */
	bool full;      /* an append found no room */
	struct failure failure;
};

/* Takes a snapshot and goes on. Where a server fails, the operation ends. */
void adopted_read(struct adopted *c, struct snapshot *s, enum purpose purpose, adopted_next *next);

/* Carries out c->plan and goes on; with `lost` where one of its calls did not find what the plan was made for. */
void adopted_run(struct adopted *c, adopted_next *next, adopted_next *lost);

/* Ends the batch. `c` is gone. */
void adopted_end(struct adopted *c, enum outcome_status status);

/* Counts one more round; false when there have been too many, and then the batch was ended, with BUSY or TOO_LARGE. */
bool adopted_again(struct adopted *c);

/* The item whose flags and time to live are those of the collection; NULL when it was not read. */
const struct snapshot_item *adopted_main_item(const struct adopted *c);

/* What each kind of operation begins with. */
void adopted_change(struct adopted *c);
void adopted_view(struct adopted *c);
void adopted_replace(struct adopted *c);
void adopted_take(struct adopted *c);
void adopted_compact(struct adopted *c);
void adopted_touch_delete(struct adopted *c);

/* Lists; these take the csv encoding alone. */
void adopted_push(struct adopted *c);
void adopted_list(struct adopted *c);
/* Plans that the items of a log of additions are all there is. */
void adopted_write_list(const struct adopted *c, struct slice log, struct plan *plan);

#endif
