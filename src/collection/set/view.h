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

#include "collection/env.h"
#include "collection/set/layers.h"
#include "collection/set/memo.h"
#include "collection/text/fold.h"
#include "collection/text/sorting.h"
#include "util/shared.h"

struct set_view {
	/* Most reads use the fields up to `overlay`, and no others: so these share a few lines of the cache. */
	struct env *env; /* says when a slice of work is over; NULL: never */
	bool known;      /* all else is derived from the base */
	bool resized;    /* what set_view_memory gives may have changed; the cache clears it */
	unsigned pins;   /* users; nothing may be dropped before it is 0 */
	uint64_t cas, connection;
	struct buf base;
	uint64_t slices; /* counts slices after which an answer is not complete */
	size_t want_count, run_count;
	struct set_run *runs;
	struct hash_secret secret; /* of the hashes of members */
	struct fold overlay, head;
	struct oplog_base split;                /* the base */
	struct slice unfolded_head, unfolded;   /* what is left to fold of the head, and of the log */
	uint64_t version;                       /* changes when the set may have changed */
	struct buf sorted_head, sorted_overlay; /* both as tables; empty if not computed */
	struct shared *text;                    /* all members; NULL if not computed */
	struct buf unfinished;                  /* the slices of that text so far */
	struct set_memos memos;                 /* other answers */
	size_t counted_runs;                    /* the oldest runs whose members were counted */
	uint64_t counted;                       /* the number of those members */
	struct table_sorting *sorting;          /* of one of the folds, while it is written as a table; else NULL */
	struct buf walked;                      /* the last member that a count by walking has come to; empty: none */
	uint64_t walked_members;                /* as many, with that one */
	char *below; /* for each member of the overlay, whether layers below have it; NULL if not computed */
	size_t below_size;
	struct set_want *wants;
	size_t want_capacity;
	struct set_store *store;
	struct set_parts spare; /* parts without a run; a base may soon refer to them */
};

/* Makes an empty view. `seed` is that of the hashes. Parts are counted in `store`, which must outlive the view. */
void set_view_init(struct set_view *v, uint64_t seed, struct set_store *store);
void set_view_free(struct set_view *v);

/*
 * A view of a fold, which is the whole set. It is borrowed until set_view_give_back, which frees the view. Nothing that such a view needs
 * is ever wanted.
 */
void set_view_lend(struct set_view *v, const struct fold *all, struct env *env);
void set_view_give_back(struct set_view *v);

/*
 * Updates the view to a copy of the base. OPLOG_GOOD, or why the base is no set; then the view is unknown. So it also is while a long
 * log is not folded yet: set_view_fold folds FOLD_STEPS steps of it, and gives false if it is malformed.
 */
enum oplog_form set_view_update(struct set_view *v, struct slice base);
bool set_view_is_unfolded(const struct set_view *v);
bool set_view_fold(struct set_view *v) __attribute__((warn_unused_result));

/* Whether all that the view knows is derived from this base. */
bool set_view_is_of(const struct set_view *v, struct slice base);

/*
 * The base of the view was rewritten to this one, whose log is the fold of the former one, as fold_encode writes it. The view becomes
 * that of this base, but it is not current before a read has found it: others may have written. Else, if that is much work, it stays.
 */
void set_view_compacted(struct set_view *v, struct slice base);

/* The id of a wanted part. Borrowed from the view. */
struct slice set_view_want_id(const struct set_view *v, const struct set_want *want);

/* Puts a copy of a loaded part where it is wanted. False if it does not match its reference: then it counts as missing. */
bool set_view_load(struct set_view *v, const struct set_want *want, struct slice data)
	__attribute__((warn_unused_result));

/* Forgets all wants, loaded or not. */
void set_view_end_wants(struct set_view *v);

/* Keeps a copy of a part that was just written here as a spare one: a base will refer to it. If not `table`, it is an index. */
void set_view_keep(struct set_view *v, struct slice id, bool table, struct slice data);

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

/* Whether folding would remove anything of the log; and which fraction of it, 0 to 1. */
static inline bool set_view_has_waste(const struct set_view *v)
{
	return v->overlay.tokens > v->overlay.live;
}

double set_view_waste(const struct set_view *v);

/* Steps of work, as env_is_over counts them, for looking up a member. */
enum { LOOKUP_STEPS = 8 };

/* Forgets how far a count by walking has come. */
void set_view_end_walk(struct set_view *v);

/* Counts steps of work, as env_is_over; those that spend pause only later. */
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

/* Bytes of memory that the view uses beside its parts. */
size_t set_view_memory(const struct set_view *v);

#endif
