/*
 * The interface of adopted encodings: the formats in which applications already keep sets and
 * lists in memcached. An encoding does no I/O: it defines the items of a collection, how they
 * fold, and the calls that change them. The machine reads the items, gets a plan from the
 * encoding, makes its calls one by one, and retries when a call loses a race.
 */
#ifndef COLLECTION_ADOPTED_ENCODING_H
#define COLLECTION_ADOPTED_ENCODING_H

#include "collection/env.h"
#include "collection/text/fold.h"
#include "protocol/call.h"
#include "protocol/request.h"

/*
 * The purpose of a snapshot. Several items are checked after the reads, so that all values are
 * from one moment. They may have been appended to since, except FOR_REWRITE.
 */
enum purpose {
	FOR_WRITE,   /* adding and removing members: the items that the encoding needs for that */
	FOR_ALL,     /* all items */
	FOR_REWRITE, /* all items, unchanged since they were read */
	FOR_CHECK    /* the items that show whether a write went to the right place */
};

/* An item of a collection, as it was read. */
struct snapshot_item {
	struct waiter waiter; /* waiter.key is the key of the item */
	void *owner;          /* the machine */
	int role;             /* defined by the encoding */
	bool asked;           /* it was read, or does not need to be read */
	bool pivot;           /* it names the other items: if it changes, all are read again */
	bool read;            /* used by the machine, like the next two */
	bool changed, grown;  /* since it was read; grown: only appended to */
	bool there;
	struct result reply; /* the last reply that had the item, without its slices */
	struct buf value;
	char key[KEY_MAX];
};

struct snapshot {
	const struct collection_rule *rule;
	const struct collection_options *options;
	struct slice key;
	uint64_t seed; /* for folds */
	enum purpose purpose;
	const struct fold *change; /* FOR_WRITE: the members to add and remove; else NULL */
	unsigned attempt;          /* lost races so far */
	uint64_t *random;          /* state of random_next; borrowed */
	struct preparation {
		bool done;
		uint64_t cas;  /* cas id of the item that names the others, when it was prepared */
		int64_t apart; /* seconds between their times to live before that */
	} prepared;            /* for the encoding: an item was prepared to replace another one */
	bool forced;           /* A client requested this compaction: rewrite for any gain. */
	struct snapshot_item **items;
	size_t count;
};

enum adopted_status {
	ADOPTED_OK,
	ADOPTED_MISSING,  /* the collection does not exist */
	ADOPTED_CORRUPT,  /* an item is malformed */
	ADOPTED_LOST,     /* an item of the collection is missing */
	ADOPTED_NEEDS_ALL /* the change needs a snapshot FOR_ALL */
};

/* A call on an item. A stored item has flags and time to live of `like`, NULL: the operation. */
struct plan_step {
	enum call_verb verb; /* ADD, APPEND, PREPEND, CAS, DELETE */
	struct snapshot_item *item;
	const struct snapshot_item *like;
	bool expire;   /* CAS: remove the item */
	bool optional; /* if the item is not as the plan expects it, the plan continues */
	struct buf value;
};

enum { PLAN_STEPS_MAX = 24 };

struct plan {
	struct plan_step steps[PLAN_STEPS_MAX];
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
	/* Folds a snapshot FOR_ALL or FOR_REWRITE. */
	enum adopted_status (*fold)(const struct snapshot *s, struct fold *out);
	/* Returns the item with flags and time to live of the collection. NULL: that of the key. */
	const struct snapshot_item *(*main_item)(const struct snapshot *s);
	/*
	 * Returns the item without which there is no collection. A delete removes it first, by
	 * CAS. If NULL, that is the main item, which is deleted unconditionally.
	 */
	struct snapshot_item *(*vital_item)(const struct snapshot *s);
	/* Plans s->change, perhaps nothing; only `create` creates a missing collection. */
	enum adopted_status (*change)(struct snapshot *s, bool create, struct plan *plan);
	/* FOR_REWRITE: plans to replace the collection by the live members of `members`. */
	enum adopted_status (*replace)(struct snapshot *s, const struct fold *members, struct plan *plan);
	/* FOR_REWRITE: plans to remove the members of `taken` by one CAS. `all` is the fold. */
	void (*take)(const struct snapshot *s, const struct fold *all, const struct fold *taken, struct plan *plan);
	/* FOR_REWRITE: plans a step of a compaction; none when it would save too little. */
	void (*compact)(struct snapshot *s, const struct fold *all, struct plan *plan);
	/* Plans to remove the other items of an ADOPTED_LOST collection. NULL if not needed. */
	void (*clear)(const struct snapshot *s, struct plan *plan);
	/*
	 * Returns whether a snapshot FOR_CHECK shows the plan went right. NULL if it always
	 * does.
	 */
	bool (*check)(const struct snapshot *s, const struct snapshot *now);
};

/*
 * Adds the item <before><middle><behind>, to be read unless `asked`. Rules limit the key's length.
 */
struct snapshot_item *snapshot_add(
	struct snapshot *s, int role, struct slice before, struct slice middle, struct slice behind, bool asked);

/* Returns the item with this role, or NULL. */
struct snapshot_item *snapshot_find(const struct snapshot *s, int role);

void snapshot_free(struct snapshot *s);

/* Returns the value of an item, borrowed; empty if the item does not exist. */
struct slice snapshot_item_value(const struct snapshot_item *item);

/* Adds a step. The caller appends the value to the returned buffer. */
struct buf *plan_add(
	struct plan *plan, enum call_verb verb, struct snapshot_item *item, const struct snapshot_item *like);
/* Adds a CAS or ADD of a whole value with the flags and time to live of the operation. */
struct buf *plan_store(struct plan *plan, struct snapshot_item *item);
/* Adds a CAS of a whole value that keeps flags and time to live. */
struct buf *plan_rewrite(struct plan *plan, struct snapshot_item *item);
/* Adds a step that removes an unchanged item. With plan_drop the plan continues otherwise. */
void plan_expire(struct plan *plan, struct snapshot_item *item);
void plan_drop(struct plan *plan, struct snapshot_item *item);
void plan_free(struct plan *plan);

/* Returns whether writing `size` bytes instead of `now` saves a tenth or, if forced, anything. */
bool worth_rewriting(const struct snapshot *s, size_t now, size_t size);

#endif
