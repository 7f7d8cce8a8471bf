/*
 * A view: what one proxy knows of a set. It is layers, of which a newer one has the last word:
 *
 *     head      what others put before the references; only its additions count
 *     runs      oldest first; their indexes and tables are kept as long as memory allows, and never asked about again
 *     overlay   the log behind the references, folded
 *
 * When the base has changed the view follows: where its bytes only became more, the rest is folded in; where it refers to
 * other runs, those that stay are kept with their tables. What is missing in memory is told as a want, to be loaded.
 */
#ifndef COLLECTION_SET_VIEW_H
#define COLLECTION_SET_VIEW_H

#include <sys/queue.h>

#include "collection/set_request.h"
#include "collection/text/fences.h"
#include "collection/text/fold.h"
#include "collection/text/table.h"

struct set_view;

/* An index or a table in memory. It never changes. */
struct set_item {
	TAILQ_ENTRY(set_item) link; /* in the store */
	TAILQ_ENTRY(set_item) spare;
	struct set_view *view;   /* whose it is */
	struct set_place *place; /* where the view keeps it; NULL among the spare ones */
	unsigned age;            /* changes of the references that it has been spare for */
	uint64_t when;           /* it was used last */
	struct buf data;
	struct table table; /* of a table */
	uint64_t *ranks;
	struct fences fences; /* of an index */
	char id[OPLOG_ID];
};

TAILQ_HEAD(set_items, set_item);

/* The items of all views of a proxy, in the order of their use. */
struct set_store {
	struct set_items used; /* last used first */
	size_t memory;
	uint64_t clock; /* goes on with each use */
};

struct set_place {
	struct set_item *item; /* NULL when it is not in memory */
	bool wanted;
	bool filtered; /* the filter of the run has its members */
};

struct set_run {
	struct oplog_run ref; /* its id is `id` */
	char id[OPLOG_ID];
	struct set_place index;   /* of a run that has one */
	struct set_place *tables; /* NULL before the index was there; ref.tables of them */
	uint64_t *filter;         /* of the hashes of its members; NULL when not made */
	uint64_t filtered;        /* the number of tables whose members it has */
};

/* What a view wants to have loaded. */
struct set_want {
	uint32_t run;
	int64_t table; /* SET_INDEX for the index */
};

enum { SET_INDEX = -1 };

struct set_view {
	struct buf base; /* all of it */
	bool known;      /* the rest follows from the base */
	uint64_t cas, connection;
	struct oplog_base parts; /* of the base */
	struct fold head, overlay;
	size_t tokens; /* of the log */
	struct set_run *runs;
	size_t run_count;
	struct buf sorted_head, sorted_overlay; /* tables of both; empty when not made */
	struct shared *text;                    /* all members; NULL when not made */
	struct buf part;                        /* of that text, as far as it was made */
	uint64_t version;                       /* changes when the set may have changed */
	size_t slice;                           /* bytes of text that are written in one go */
	size_t counted_runs; /* of so many runs, from the oldest on, it is known how many members they come to */
	uint64_t counted;
	char *below; /* for each member of the overlay: what is known of it in the layers below; NULL when not asked */
	size_t below_size;

	struct set_want *wants;
	size_t want_count, want_capacity;
	struct set_store *store;
	unsigned pins;          /* it is in use: nothing of it may be thrown out */
	struct set_items spare; /* items that no run has now, but one to come may have */
};

/* So much text takes a millisecond at most. */
enum { SET_SLICE = 64 * 1024 };

/* Makes a view of nothing, whose items are in the store. */
void set_view_init(struct set_view *v, uint64_t seed, struct set_store *store);
void set_view_free(struct set_view *v);

/*
 * Takes over what the base is now. OPLOG_GOOD, or why it is no set; then the view knows nothing. A list has to be handed in
 * as a log of all its items, by set_view_take_log.
 */
enum oplog_form set_view_update(struct set_view *v, struct slice base);
bool set_view_take_log(struct set_view *v, struct slice log);

/* For set_view_update: makes the runs those of a base, or none. */
void set_view_make_runs(struct set_view *v, const struct oplog_base *parts);
void set_view_drop_runs(struct set_view *v);

/* Notes that something must be loaded. */
void set_view_want(struct set_view *v, size_t run, int64_t table);

/* The id under which a want is stored. Borrowed from the view. */
struct slice set_view_want_id(const struct set_view *v, const struct set_want *want);

/* Puts what was loaded where it is wanted. False when it is not what was referred to: as good as missing. */
bool set_view_load(struct set_view *v, const struct set_want *want, struct slice data)
	__attribute__((warn_unused_result));

/* Forgets all wants, loaded or not. */
void set_view_end_wants(struct set_view *v);

/* Keeps an item that was written and that the base will refer to. `table` for a table, else it is an index. */
void set_view_keep(struct set_view *v, struct slice id, bool table, struct slice data);

/* Throws an item out. */
void set_item_drop(struct set_item *item);

/* The index of a run, or the table of that number; NULL when it has to be loaded, which is then wanted. */
const struct fences *set_view_index(struct set_view *v, size_t run);
const struct table *set_view_table(struct set_view *v, size_t run, size_t table);

/* True when a run, whether its tables are in memory or not, certainly has no member with this hash under the view's seed. */
bool set_view_excludes(const struct set_view *v, size_t run, uint64_t hash);

/* Starts to fetch what set_view_excludes reads. */
void set_view_prefetch(const struct set_view *v, size_t run, uint64_t hash);

/* False when a table that is in memory certainly has no member with this hash. */
bool set_view_may_hold(struct set_view *v, size_t run, size_t table, uint64_t hash);

/* The number of the table of a run where a member would be; SIZE_MAX when the index has to be loaded. */
size_t set_view_place(struct set_view *v, size_t run, struct slice member);

enum set_found { SET_OUT, SET_IN, SET_WANTED };

/* What layers say of a member: the runs below number `runs` and the head, or all layers. */
enum set_found set_view_below(struct set_view *v, size_t runs, struct slice member);
enum set_found set_view_find(struct set_view *v, struct slice member);

/* True when a run from number `from` on, or the overlay, says anything of the member; SET_WANTED when that is not known. */
enum set_found set_view_mentioned(struct set_view *v, size_t from, struct slice member);

/* The part of the log that it could do without. */
double set_view_waste(const struct set_view *v);

/* Bytes of memory that it holds beside its items. */
size_t set_view_memory(const struct set_view *v);

/*
 * Answers a request, or a slice of it. False when it is to be called again: after the wants are loaded, or at once when there
 * are none. What it has done so far stays in the view and the request.
 */
bool set_answer(struct set_view *v, struct set_request *request) __attribute__((warn_unused_result));

/* Answers a request from a fold that is all there is. */
void set_answer_fold(const struct fold *all, struct set_request *request);

#endif
