/*
 * A snapshot of a collection in an adopted encoding: its items, as they were read, and the work on
 * their words, which is done in slices.
 */
#ifndef COLLECTION_ADOPTED_SNAPSHOT_H
#define COLLECTION_ADOPTED_SNAPSHOT_H

#include "collection/adopted/encodings/words.h"
#include "collection/env.h"
#include "protocol/call.h"
#include "protocol/request.h"

struct encoding;
struct snapshot;

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

enum adopted_status {
	ADOPTED_OK,
	ADOPTED_PAUSED,   /* the slice is over: call the function again */
	ADOPTED_MISSING,  /* the collection does not exist */
	ADOPTED_CORRUPT,  /* an item is malformed */
	ADOPTED_LOST,     /* an item of the collection is missing */
	ADOPTED_NEEDS_ALL /* the change needs a snapshot FOR_ALL */
};

/* Appends the text for a member of the fold that is being written. `other` is its own. */
typedef void members_write(struct snapshot *s, const struct fold_member *member,
	const struct fold *other, struct buf *out);

/*
 * Text to write for each member of a fold or, if `fold` is NULL, of a text. All slices and folds
 * are borrowed.
 */
struct members_text {
	members_write *write; /* NULL: there is nothing to write */
	const struct fold *fold, *other;
	struct words text;
	size_t written; /* members of the fold that are written */
};

/* Progress of an encoding's function. Initially all zeroes. */
struct snapshot_work {
	size_t at;
	bool folds, writes;         /* work_fold and work_write have begun */
	struct words unfolded;      /* not folded yet */
	struct counted folded;      /* the words before */
	struct members_text writer; /* writes `text` */
	struct buf text, more;
	struct fold later;
};

struct snapshot {
	const struct encoding *encoding;
	struct env *env; /* decides when a slice is over; NULL: never */
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
	/* Set by snapshot_fold. */
	struct counted all; /* the members, and their counts if texts are counted */
	enum adopted_status status;
	struct {
		struct words rest; /* of the text that is being folded */
		size_t next;       /* number of the next text */
		bool begun, done;
	} folding;
	struct snapshot_work work;
};

/*
 * Adds the item <before><middle><behind>, to be read unless `asked`. Rules limit the key's length.
 */
struct snapshot_item *snapshot_add(struct snapshot *s, int role, struct slice before,
	struct slice middle, struct slice behind, bool asked);

/* Returns the item with this role, or NULL. */
struct snapshot_item *snapshot_find(const struct snapshot *s, int role);

void snapshot_free(struct snapshot *s);

/* Returns the bytes of its items and of the fold of all of them. */
size_t snapshot_memory(const struct snapshot *s);

/*
 * Combines the CAS tokens of all items, in any order, into one. The token of a single item is
 * unchanged. Clients may keep a token in a double, which is exact up to 53 bits. A combined
 * token is never 0, which means no token.
 */
uint64_t snapshot_cas(const struct snapshot *s);

/* Returns the bytes of all values. */
size_t snapshot_bytes(const struct snapshot *s);

/* Returns whether the servers have reported the times to live and CAS tokens of all items. */
bool snapshot_can_be_rewritten(const struct snapshot *s);

/* Folds a portion of `words`; `good`: it is well-formed. Returns whether the slice is over. */
bool snapshot_fold_some(
	const struct snapshot *s, struct counted *c, struct words *words, bool *good);

/* Counts steps of work, as env_is_over does. */
static inline bool snapshot_is_over(const struct snapshot *s, size_t steps)
{
	return s->env && env_is_over(s->env, steps);
}

/*
 * Writes a text, or the rest of it, to `out`. Returns false if the slice is over: then it must be
 * called again.
 */
bool members_text_write(struct snapshot *s, struct members_text *text, struct buf *out)
	__attribute__((warn_unused_result));

/* Write a signed word for each member, or only for each live one. */
members_write signed_write, signed_write_live;

/*
 * Fold a text into s->work.folded, and write members to s->work.text. Return false if the slice
 * is over: then they must be called again. work_text returns the text for the caller to free.
 * work_next makes room for the next text, and work_free also discards everything else.
 */
bool work_fold(struct snapshot *s, struct words text) __attribute__((warn_unused_result));
bool work_write(struct snapshot *s, struct members_text text) __attribute__((warn_unused_result));
struct buf work_text(struct snapshot *s);
void work_next(struct snapshot *s);
void work_free(struct snapshot *s);

/* Returns the value of an item, borrowed; empty if the item does not exist. */
struct slice snapshot_item_value(const struct snapshot_item *item);

#endif
