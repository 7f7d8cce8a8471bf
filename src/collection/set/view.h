/*
 * A view: the copy of a set in one worker. It has layers, and a newer layer overrides an older one:
 *
 *     head      the log before the references; only its additions count
 *     runs      oldest first; their indexes and tables, as far as memory allows
 *     overlay   the log behind the references, folded
 *
 * set_view_update follows a base that changed. If the base only grew, the added bytes are folded in. If it refers to other runs,
 * those that stay keep their tables. A lookup that needs a part which is not in memory notes a want, to be loaded.
 *
 * A part never changes, so it is known by its id, and stays in memory until the cache drops it or no run refers to it.
 */
#ifndef COLLECTION_SET_VIEW_H
#define COLLECTION_SET_VIEW_H

#include <sys/queue.h>

#include "collection/text/fences.h"
#include "collection/text/fold.h"
#include "collection/text/table.h"
#include "util/shared.h"

/* An index or a table in memory. */
struct set_part {
	TAILQ_ENTRY(set_part) link;  /* in set_store.used */
	TAILQ_ENTRY(set_part) spare; /* in set_view.spare */
	struct set_view *view;       /* the owner */
	struct set_slot *slot;       /* holds the part; NULL for a spare part */
	unsigned age;                /* of a spare part: changes of the references since */
	uint64_t when;               /* the store's clock at the last use */
	struct buf data;
	struct table table; /* of a table */
	uint64_t *ranks;
	struct fences fences; /* of an index */
	char id[OPLOG_ID];
};
TAILQ_HEAD(set_parts, set_part);

/* The parts of all views of a worker. */
struct set_store {
	struct set_parts used; /* most recently used first */
	size_t memory;         /* bytes */
	uint64_t clock;        /* counts uses */
};

struct set_slot {
	struct set_part *part; /* NULL if it is not in memory */
	bool wanted;
	bool filtered; /* the filter of the run has its members */
};

struct set_run {
	struct oplog_run ref; /* its id is `id` */
	char id[OPLOG_ID];
	struct set_slot index;   /* if ref.indexed */
	struct set_slot *tables; /* ref.tables of them; NULL until the index was loaded */
	uint64_t *filter;        /* of the hashes of its members; NULL for none */
	uint64_t filtered;       /* tables whose members it has */
};

enum { SET_INDEX = -1 };

/* A part that must be loaded. */
struct set_want {
	uint32_t run;
	int64_t table; /* SET_INDEX for the index */
};

/* Writing so much text takes a millisecond at most. */
enum { SET_SLICE = 64 * 1024 };

struct set_view {
	struct buf base;
	bool known; /* all else is derived from the base */
	uint64_t cas, connection;
	struct oplog_base split; /* the base */
	struct fold head, overlay;
	struct set_run *runs;
	size_t run_count;
	struct buf sorted_head, sorted_overlay; /* both as tables; empty if not computed */
	struct shared *text;                    /* all members; NULL if not computed */
	struct buf unfinished;                  /* the slices of that text so far */
	uint64_t version;                       /* changes when the set may have changed */
	size_t slice;                           /* bytes of text that one answer writes */
	uint64_t slices;                        /* counts slices after which an answer is not complete */
	size_t counted_runs;                    /* the oldest runs whose members were counted */
	uint64_t counted;                       /* the number of those members */
	char *below; /* for each member of the overlay, whether layers below have it; NULL if not computed */
	size_t below_size;
	struct set_want *wants;
	size_t want_count, want_capacity;
	struct set_store *store;
	unsigned pins;          /* users; nothing may be dropped before it is 0 */
	struct set_parts spare; /* parts without a run; a base may soon refer to them */
};

/* Makes an empty view. `seed` is that of the hashes. Parts are counted in `store`, which must outlive the view. */
void set_view_init(struct set_view *v, uint64_t seed, struct set_store *store);
void set_view_free(struct set_view *v);

/* Updates the view to a copy of the base. OPLOG_GOOD, or why the base is no set; then the view is unknown. */
enum oplog_form set_view_update(struct set_view *v, struct slice base);

/* The id of a wanted part. Borrowed from the view. */
struct slice set_view_want_id(const struct set_view *v, const struct set_want *want);

/* Puts a copy of a loaded part where it is wanted. False if it does not match its reference: then it counts as missing. */
bool set_view_load(struct set_view *v, const struct set_want *want, struct slice data)
	__attribute__((warn_unused_result));

/* Forgets all wants, loaded or not. */
void set_view_end_wants(struct set_view *v);

/* Keeps a copy of a part that was just written here as a spare one: a base will refer to it. If not `table`, it is an index. */
void set_view_keep(struct set_view *v, struct slice id, bool table, struct slice data);

/* Drops a part from memory. */
void set_part_drop(struct set_part *part);

/* The index of a run, or a table by its number. NULL if it must be loaded; then it is wanted. */
const struct fences *set_view_index(struct set_view *v, size_t run);
const struct table *set_view_table(struct set_view *v, size_t run, size_t table);

/* The bytes of a table of a run, if it is in memory; else none. Borrowed from the view. */
struct slice set_view_table_data(const struct set_view *v, const struct oplog_run *ref, size_t table);

/* The number of the only table of a run that can hold a member; SIZE_MAX if the index must be loaded. */
size_t set_view_table_of(struct set_view *v, size_t run, struct slice member);

enum set_found { SET_OUT, SET_IN, SET_WANTED /* something must be loaded first */ };

/* Whether a member is in the layers that consist of the head and the `runs` oldest runs; or in the set. */
enum set_found set_view_below(struct set_view *v, size_t runs, struct slice member);
enum set_found set_view_find(struct set_view *v, struct slice member);

/* Whether a run from number `from` on, or the overlay, has an entry of the member, an addition or a removal. */
enum set_found set_view_mentioned(struct set_view *v, size_t from, struct slice member);

/* The fraction of the log that folding would remove, 0 to 1. */
double set_view_waste(const struct set_view *v);

/* Bytes of memory that the view uses beside its parts. */
size_t set_view_memory(const struct set_view *v);

#endif
