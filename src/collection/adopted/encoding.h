/*
 * The interface of adopted encodings: the formats in which applications already keep sets and
 * lists in memcached. An encoding does no I/O: it defines the items of a collection, how they
 * fold, and the calls that change them. The machine reads the items, gets a plan from the
 * encoding, makes its calls one by one, and retries when a call loses a race.
 *
 * A collection may have a million members, so work on all of them is done in slices. A function
 * that returns ADOPTED_PAUSED must be called again, with the same arguments, in the next slice;
 * until then its progress is in the snapshot.
 */
#ifndef COLLECTION_ADOPTED_ENCODING_H
#define COLLECTION_ADOPTED_ENCODING_H

#include "collection/adopted/snapshot.h"
#include "protocol/call.h"

/* A call on an item. A stored item has flags and time to live of `like`, NULL: the operation. */
struct plan_step {
	enum call_verb verb; /* ADD, APPEND, PREPEND, CAS, DELETE */
	struct snapshot_item *item;
	const struct snapshot_item *like;
	bool expire;   /* CAS: remove the item */
	bool optional; /* if the item is not as the plan expects it, the plan continues */
	struct buf value;
	struct members_text rest[2]; /* of the value, which is written before the call */
};

enum { PLAN_STEPS_MAX = 24 };

struct plan {
	struct plan_step *steps; /* PLAN_STEPS_MAX of them; NULL while there are none. */
	size_t count;
	bool again; /* after these steps, take a new snapshot and plan again */
	bool check; /* after these steps, check that they went to the right place */
	bool must;  /* touch and delete: each step must find the item as the plan expects it */
};

struct encoding {
	const char *name;
	const char *reserved; /* bytes that no member may have */
	bool delimited;       /* the delimiter of the rule is not allowed in members either */
	char guard;           /* only this byte is not a member: its removal marks a text */
	/* Adds the items to read next; none if the snapshot is complete. */
	void (*name_items)(struct snapshot *s);
	/* Returns the status of a snapshot before its words are read. */
	enum adopted_status (*state)(const struct snapshot *s);
	/*
	 * Stores the i-th text to fold, if the status is OK or MISSING. Returns false if there
	 * is none.
	 */
	bool (*text)(const struct snapshot *s, size_t i, struct words *text);
	/* Returns the item with flags and time to live of the collection. NULL: that of the key. */
	const struct snapshot_item *(*main_item)(const struct snapshot *s);
	/*
	 * Returns the item without which there is no collection. A delete removes it first, by
	 * CAS. If NULL, that is the main item, which is deleted unconditionally.
	 */
	struct snapshot_item *(*vital_item)(const struct snapshot *s);
	/* Plans s->change, perhaps nothing; only `create` creates a missing collection. */
	enum adopted_status (*change)(struct snapshot *s, bool create, struct plan *plan);
	/*
	 * FOR_REWRITE, folded. Plan to replace the collection by the live members of `members`;
	 * to remove the members of `taken` by one CAS; or a step of a compaction, but none when it
	 * would save too little.
	 */
	enum adopted_status (*replace)(
		struct snapshot *s, const struct fold *members, struct plan *plan);
	enum adopted_status (*take)(
		struct snapshot *s, const struct fold *taken, struct plan *plan);
	enum adopted_status (*compact)(struct snapshot *s, struct plan *plan);
	/* Plans to remove the other items of an ADOPTED_LOST collection. NULL if not needed. */
	void (*clear)(const struct snapshot *s, struct plan *plan);
	/*
	 * Returns ADOPTED_OK if a snapshot FOR_CHECK shows that the plan went right, else
	 * ADOPTED_LOST. NULL if it always does.
	 */
	enum adopted_status (*check)(struct snapshot *s, struct snapshot *now);
};

/*
 * Folds all texts of a snapshot into s->all, and sets s->status. Returns false if the slice is
 * over: then it must be called again.
 */
bool snapshot_fold(struct snapshot *s) __attribute__((warn_unused_result));

/* Adds a step. The caller appends the value to the returned buffer. */
struct buf *plan_add(struct plan *plan, enum call_verb verb, struct snapshot_item *item,
	const struct snapshot_item *like);
/* Adds a CAS or ADD of a whole value with the flags and time to live of the operation. */
struct buf *plan_store(struct plan *plan, struct snapshot_item *item);
/* Adds a CAS of a whole value that keeps flags and time to live. */
struct buf *plan_rewrite(struct plan *plan, struct snapshot_item *item);
/* Adds a text to the end of the last step's value. It is written before the call. */
void plan_write(struct plan *plan, struct members_text text);
/* Writes these texts. Returns false if the slice is over: then it must be called again. */
bool plan_step_write(struct snapshot *s, struct plan_step *step)
	__attribute__((warn_unused_result));
/* Adds a step that removes an unchanged item. With plan_drop the plan continues otherwise. */
void plan_expire(struct plan *plan, struct snapshot_item *item);
void plan_drop(struct plan *plan, struct snapshot_item *item);
void plan_free(struct plan *plan);

/* Returns whether writing `size` bytes instead of `now` saves a tenth or, if forced, anything. */
bool worth_rewriting(const struct snapshot *s, size_t now, size_t size);

#endif
