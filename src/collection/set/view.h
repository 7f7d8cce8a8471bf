/*
 * A view: the copy of a set in one worker. It has layers, and a newer layer overrides an older one:
 *
 *     head      the log before the references; only its additions count
 *     runs      oldest first; their indexes and tables, as far as memory allows
 *     overlay   the log after the references, folded
 *
 * It is the set at one moment, v->now: members whose date has passed by then are not in it. That
 * moves on with set_view_advance (moment.h), which drops what was computed once a member may have
 * expired.
 *
 * set_view_update applies a new version of the base. If the base only grew, the added bytes are
 * folded in. If its references changed, the remaining runs keep their tables. A lookup that needs a
 * part which is not in memory notes a want, to be loaded.
 *
 * A part never changes and is identified by its id. It stays in memory until the cache evicts it or
 * no run refers to it.
 */
#ifndef COLLECTION_SET_VIEW_H
#define COLLECTION_SET_VIEW_H

#include "collection/env.h"
#include "collection/set/layers.h"
#include "collection/set/memo.h"
#include "collection/text/fold.h"
#include "collection/text/sorting.h"
#include "util/shared.h"

struct set_view {
	/* Most reads use only the fields up to `overlay`, so these share a few cache lines. */
	struct env *env; /* decides when a slice of work is over; NULL: never */
	bool known;      /* all other fields are derived from the base */
	bool resized;    /* the result of set_view_memory may have changed; cleared by the cache */
	unsigned pins;   /* number of users; nothing may be dropped while it is above 0 */
	uint64_t cas, connection;
	struct buf base;
	uint64_t slices; /* counts slices that ended before an answer was complete */
	size_t want_count, run_count;
	struct set_run *runs;
	struct hash_secret secret; /* for the hashes of members */
	struct fold overlay, head;
	bool dated_runs;                        /* Some runs have members that expire. */
	int64_t now;                            /* seconds since 1970, if there are dates; else 0 */
	int64_t fresh_until;                    /* when a member of the runs may expire */
	struct oplog_base split;                /* the parsed base */
	struct slice unfolded_head, unfolded;   /* not folded yet */
	uint64_t version;                       /* changes when the set may have changed */
	struct buf sorted_head, sorted_overlay; /* both as tables; empty if not computed */
	struct shared *text;                    /* the text of all members; NULL if not computed */
	struct buf unfinished;                  /* the finished slices of that text */
	size_t joined;                          /* members of the overlay in it */
	struct set_memos memos;                 /* other answers */
	size_t counted_runs;                    /* with known counts, from the oldest */
	uint64_t counted;                       /* the number of those members */
	/* Sorts one of the folds, while it is written as a table; else NULL. */
	struct table_sorting *sorting;
	struct buf walked;       /* the last member that was counted by walking; empty for none */
	uint64_t walked_members; /* number of members counted by walking, including that one */
	char *below;             /* whether layers below have each overlay member, or NULL */
	size_t below_size;
	struct set_want *wants;
	size_t want_capacity;
	struct set_store *store;
	struct set_parts spare; /* parts without a run, to which a base may soon refer */
};

enum set_found { SET_OUT, SET_IN, SET_WANTED /* a part must be loaded first */ };

/* Initialises an empty view. `seed` is for the hashes. `store` accounts parts, and outlives it. */
void set_view_init(struct set_view *v, uint64_t seed, struct set_store *store);
void set_view_free(struct set_view *v);

/*
 * Makes a view of a fold of the whole set, borrowed until set_view_give_back. It never needs a
 * part.
 */
void set_view_lend(struct set_view *v, const struct fold *all, struct env *env);
void set_view_give_back(struct set_view *v);

/*
 * Updates the view to a copy of the base. Returns OPLOG_GOOD, or why the base is not a set. The
 * view is not `known` then, nor while a long log is not folded: set_view_fold folds FOLD_STEPS
 * steps of it, and returns false if it is malformed.
 */
enum oplog_form set_view_update(struct set_view *v, struct slice base);
bool set_view_is_unfolded(const struct set_view *v);
bool set_view_fold(struct set_view *v) __attribute__((warn_unused_result));

/*
 * Makes the view accept words of lists that are longer than those of members. If it has such a
 * word, it answers only SET_INFO, and no table may be made of it.
 */
static inline void set_view_take_long(struct set_view *v)
{
	v->head.takes_long = v->overlay.takes_long = true;
}

static inline bool set_view_has_long(const struct set_view *v)
{
	return v->head.has_long || v->overlay.has_long;
}

/*
 * Drops what was computed from the overlay, because members in it have expired. With `lower`,
 * members of the head or the runs have, and all that depends on these is dropped, too.
 */
void set_view_forget(struct set_view *v, bool lower);

/* Returns whether everything in the view is derived from this base. */
bool set_view_is_of(const struct set_view *v, struct slice base);

/*
 * Called after the base was rewritten to `base`, whose log is the fold of the former one by
 * fold_encode. Updates the view, which becomes current only when a read has found that base. If
 * that is too much work, the view is unchanged.
 */
void set_view_compacted(struct set_view *v, struct slice base);

/* Returns the id of a wanted part. Borrowed from the view. */
struct slice set_view_want_id(const struct set_view *v, const struct set_want *want);

/*
 * Stores a copy of a loaded part. False if it does not match its reference: it counts as missing.
 */
bool set_view_load(struct set_view *v, const struct set_want *want, struct slice data)
	__attribute__((warn_unused_result));

/* Drops all wants, loaded or not. */
void set_view_end_wants(struct set_view *v);

/* Keeps a copy of a part that was just written as a spare part: a table if `table`, or an index. */
void set_view_keep(struct set_view *v, struct slice id, bool table, struct slice data);

/* Return the index of a run, or a table by number. NULL if it must be loaded; then it is wanted. */
const struct fences *set_view_index(struct set_view *v, size_t run);
const struct table *set_view_table(struct set_view *v, size_t run, size_t table);

/* Returns the bytes of a table of a run, borrowed from the view; empty if not in memory. */
struct slice set_view_table_data(
	const struct set_view *v, const struct oplog_run *ref, size_t table);

/* Returns the only table of a run that can hold a member; SIZE_MAX if the index must be loaded. */
size_t set_view_table_of(struct set_view *v, size_t run, struct slice member);

/* Look up a member in the head and the `runs` oldest runs, or in the whole set. */
enum set_found set_view_below(struct set_view *v, size_t runs, struct slice member);
enum set_found set_view_find(struct set_view *v, struct slice member);

/* Looks for any entry of the member in the runs from number `from` on and in the overlay. */
enum set_found set_view_mentioned(struct set_view *v, size_t from, struct slice member);

/* Return whether folding would shorten the log, and by which fraction, 0 to 1. */
static inline bool set_view_has_waste(const struct set_view *v)
{
	return v->overlay.tokens > v->overlay.live;
}

double set_view_waste(const struct set_view *v);

/* Steps of work, in the unit of env_is_over, for looking up a member. */
enum { LOOKUP_STEPS = 8 };

/* Discards the progress of a count by walking. */
void set_view_end_walk(struct set_view *v);

/* Count steps of work, as env_is_over does. set_view_spend only makes a later pause earlier. */
static inline bool set_view_is_over(struct set_view *v, size_t steps)
{
	if (!v->env || !env_is_over(v->env, steps))
		return false;
	v->slices++;
	return true;
}

static inline void set_view_spend(const struct set_view *v, size_t steps)
{
	if (v->env)
		v->env->grain -= v->env->grain > steps ? steps : v->env->grain;
}

/* Returns the bytes of memory that the view uses, without its parts. */
size_t set_view_memory(const struct set_view *v);

#endif
