/*
 * The encodings beside oplog: ways in which applications already keep sets and lists in memcached. Each is a small pure file
 * behind this interface: which items a collection is made of, how they fold, and which calls change them. coded.c reads the
 * items, asks the encoding for a plan, carries it out one call after the other, and begins anew where a call lost a race.
 */
#ifndef COLLECTION_ENCODING_H
#define COLLECTION_ENCODING_H

#include "collection/options.h"
#include "collection/rules.h"
#include "collection/text/fold.h"
#include "protocol/call.h"
#include "protocol/request.h"

/*
 * What a snapshot is taken for. Where it has several items all are looked at once more when they were read: each must have been
 * the same all the time, or but to rewrite may have grown by what was appended, so that there was a moment at which all of it
 * was true.
 */
enum purpose {
	FOR_WRITE,   /* adding and removing: only what an encoding needs for that */
	FOR_ALL,     /* everything */
	FOR_REWRITE, /* everything, as it was at one moment */
	FOR_CHECK    /* only what shows whether a write went to the right place */
};

/* One item of a collection, as it was read. */
struct snapshot_item {
	struct waiter waiter; /* its key is the item's */
	void *owner;          /* coded.c's */
	int role;             /* the encoding's */
	bool asked;           /* it was read, or need not be */
	bool pivot;           /* it says what the others are: those are read anew when it has changed */
	bool read;            /* coded.c's, as these: it was */
	bool changed, grown;  /* since it was read */
	bool there;
	uint32_t flags;
	uint64_t cas, connection;
	int64_t ttl;
	const char *server;
	struct buf value;
	char key[KEY_MAX];
};

struct snapshot {
	const struct collection_rule *rule;
	const struct collection_options *options;
	struct slice key;
	uint64_t seed; /* of folds */
	enum purpose purpose;
	const struct fold *change; /* FOR_WRITE: the last word on each member; NULL else */
	unsigned attempt;          /* how often it was begun anew */
	struct snapshot_item **items;
	size_t count;
};

enum adopted_status {
	ADOPTED_OK,
	ADOPTED_MISSING,  /* there is no such collection */
	ADOPTED_CORRUPT,  /* an item is not of the encoding */
	ADOPTED_LOST,     /* a part that it needs is gone */
	ADOPTED_NEEDS_ALL /* a plan for a change wants a snapshot FOR_ALL */
};

/* A call on a item. A storing one gives it the flags and the time to live of `like`, or those of something new where NULL. */
struct plan_step {
	enum call_verb verb; /* ADD, APPEND, PREPEND, CAS, DELETE */
	struct snapshot_item *item;
	const struct snapshot_item *like;
	bool expire; /* CAS: removes the item */
	struct buf value;
};

enum { PLAN_STEPS_MAX = 24 };

struct plan {
	struct plan_step steps[PLAN_STEPS_MAX];
	size_t count;
	bool again; /* the steps only prepare: take a new snapshot and plan again */
	bool check; /* see behind the steps whether they went to the right place */
};

struct encoding {
	const char *name;
	const char *reserved; /* bytes that no member may hold, beside the rule's delimiter where `delimited` */
	bool delimited;
	char guard; /* a byte that alone is no member: a removal of it marks a list */
	/* Adds the items to be read next, by what was read so far; none when all are there. */
	void (*name_items)(struct snapshot *s);
	/* Folds a snapshot FOR_ALL or FOR_REWRITE. */
	enum adopted_status (*fold)(const struct snapshot *s, struct fold *out);
	/* The item whose flags and time to live are those of the collection. NULL where that is the item under the key itself. */
	const struct snapshot_item *(*main_item)(const struct snapshot *s);
	/* Plans s->change; without `create` a missing collection stays so. No steps when nothing is to be done. */
	enum adopted_status (*change)(struct snapshot *s, bool create, struct plan *plan);
	/* FOR_REWRITE: plans that the live members of `members` are all there is. */
	enum adopted_status (*replace)(struct snapshot *s, const struct fold *members, struct plan *plan);
	/* FOR_REWRITE: plans to take the members of `taken` out, all or none, by one CAS. `all` is the fold of the snapshot. */
	void (*take)(const struct snapshot *s, const struct fold *all, const struct fold *taken, struct plan *plan);
	/* FOR_REWRITE: plans the next step of a compaction; no steps when there is nothing to gain. */
	void (*compact)(struct snapshot *s, const struct fold *all, struct plan *plan);
	/* For a collection that is ADOPTED_LOST: plans to clear away what is left. NULL where that cannot be. */
	void (*clear)(const struct snapshot *s, struct plan *plan);
	/* Whether a snapshot FOR_CHECK shows that the steps planned from `s` went to the right place. NULL where they always do. */
	bool (*check)(const struct snapshot *s, const struct snapshot *now);
};

/* Adds a item <before><middle><behind>, to be read unless `asked`. The key of a collection leaves room for that. */
struct snapshot_item *snapshot_add(
	struct snapshot *s, int role, struct slice before, struct slice middle, struct slice behind, bool asked);

/* The item in that role, or NULL. */
struct snapshot_item *snapshot_find(const struct snapshot *s, int role);

void snapshot_free(struct snapshot *s);

/* What a item holds; empty when it is not there. Borrowed. */
struct slice snapshot_item_value(const struct snapshot_item *item);

/* Adds a step; the value is to be written to what it gives. */
struct buf *plan_add(
	struct plan *plan, enum call_verb verb, struct snapshot_item *item, const struct snapshot_item *like);
/* The same for all that a item is to hold, by CAS or, where there is none, ADD: as something new, or by CAS as it was. */
struct buf *plan_store(struct plan *plan, struct snapshot_item *item);
struct buf *plan_rewrite(struct plan *plan, struct snapshot_item *item);
/* A step that removes a item, if it is still what was read. */
void plan_expire(struct plan *plan, struct snapshot_item *item);
void plan_free(struct plan *plan);

/* True when writing `size` bytes in place of `now` saves a tenth at least. */
bool worth_rewriting(size_t now, size_t size);

#endif
