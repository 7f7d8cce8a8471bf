/* Reads a set into its view, as a part of a machine. fetch.c has the diagram. */
#ifndef COLLECTION_SET_FETCH_H
#define COLLECTION_SET_FETCH_H

#include "collection/rewrite/opening.h"
#include "collection/set/cache.h"

struct parts;
struct set_request;

/* A read in progress: the first member of the work of its machine. */
struct fetch {
	struct opening open;
	struct set_request *only; /* the request to answer; NULL for the requests of the batch */
	lane_after *after;
	struct cache_entry *entry;
	struct parts *parts;
	lane_step *folded; /* follows when the base is folded */
	size_t checked;    /* parts that the view has accepted */
	/* Operations of the batch that need tables which are not loaded yet. */
	struct op_queue wanting;
	size_t segment_bytes;   /* bytes of the segments of a list */
	char missing[OPLOG_ID]; /* id of a run with a missing part; empty for none */
	/* Check of the references when a part was missing; 0 for none. */
	uint64_t missing_refs;
	bool loading;       /* another client is loading it, so it counts as missing */
	bool may_have_long; /* The base is a list, whose elements may be longer than members. */
	/* The base is a list with segments or a limit, whose view is dropped at the end. */
	bool is_list;
	/*
	 * The base lacks a part, and is not removed: later reads that do not need the
	 * part notice this too.
	 */
	bool stays;
	/* The base of the list; the view has all elements as one log instead. */
	struct buf list_base;
};

/*
 * Starts a read, and sets lane->work to it. `after` receives OUTCOME_DONE when all requests are
 * answered, or the failure, and must call fetch_end. For a rewrite, the base is read even if
 * the view may be current, unless it was read ahead: then f->open.ahead is true.
 */
void fetch_begin(struct fetch *f, struct lane *lane, struct set_request *only, bool rewrites,
	lane_after *after);

/*
 * Ends the batch, releases the view, and frees the memory of the read. Drops the view after an
 * outcome that the view may have caused.
 */
void fetch_end(struct fetch *f, struct lane *lane, const struct outcome *outcome);

/*
 * Called when a part of a set is missing: a background read checks the set, and removes it
 * if it is incomplete.
 */
void fetch_suspect(struct lanes *lanes, struct slice key);

/*
 * Returns the stored base, for appending to it. Requires that the requests are answered.
 * Borrowed from the fetch.
 */
static inline struct slice fetch_base(const struct fetch *f)
{
	return buf_slice(f->is_list ? &f->list_base : &f->entry->view.base);
}

#endif
