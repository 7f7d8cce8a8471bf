/*
 * A view: the copy of a set in one worker. It has layers, and a newer layer overrides an older one:
 *
 *     head      the log before the references; only its additions count
 *     runs      oldest first; view_items.h keeps their indexes and tables as long as memory allows
 *     overlay   the log behind the references, folded
 *
 * set_view_update follows a base that changed. If the base only grew, the added bytes are folded in. If it refers to other runs,
 * those that stay keep their tables. A lookup that needs an item which is not in memory notes a want, to be loaded.
 */
#ifndef COLLECTION_SET_VIEW_H
#define COLLECTION_SET_VIEW_H

#include "collection/set/view_items.h"
#include "collection/set_request.h"

/* Makes an empty view. `seed` is that of the hashes. Items are counted in `store`, which must outlive the view. */
void set_view_init(struct set_view *v, uint64_t seed, struct set_store *store);
void set_view_free(struct set_view *v);

/*
 * Updates the view to a copy of the base. OPLOG_GOOD, or why the base is no set; then the view is unknown. The items of a list
 * with segments are set by set_view_take_log, as one log; false if that is malformed.
 */
enum oplog_form set_view_update(struct set_view *v, struct slice base);
bool set_view_take_log(struct set_view *v, struct slice log);

enum set_found { SET_OUT, SET_IN, SET_WANTED /* something must be loaded first */ };

/* Whether a member is in the layers that consist of the head and the `runs` oldest runs; or in the set. */
enum set_found set_view_below(struct set_view *v, size_t runs, struct slice member);
enum set_found set_view_find(struct set_view *v, struct slice member);

/* Whether a run from number `from` on, or the overlay, has an entry of the member, be it a removal. */
enum set_found set_view_mentioned(struct set_view *v, size_t from, struct slice member);

/* The part of the log that folding would remove, 0 to 1. */
double set_view_waste(const struct set_view *v);

/* Bytes of memory that the view uses beside its items. */
size_t set_view_memory(const struct set_view *v);

/* Writing so much text takes a millisecond at most. */
enum { SET_SLICE = 64 * 1024 };

/*
 * Answers a request, or a slice of it, to its own fields. False if it must be called again: after v->wants are loaded, or at once
 * if there are none and v->slices has grown. If neither holds, what is in memory contradicts the references, and no call will ever
 * answer. Finished slices stay in the view and in the request.
 */
bool set_answer(struct set_view *v, struct set_request *request) __attribute__((warn_unused_result));

/* Answers a request from a fold that is the whole set. */
void set_answer_fold(const struct fold *all, struct set_request *request);

#endif
