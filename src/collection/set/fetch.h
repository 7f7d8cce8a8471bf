/* Reading a set into its view, as a part of a machine: fetch.c has the drawing. */
#ifndef COLLECTION_SET_FETCH_H
#define COLLECTION_SET_FETCH_H

#include "collection/lane/lane.h"
#include "collection/set/cache.h"

struct parts;
struct set_request;

/* A read in progress: the first member of the work of its machine. */
struct fetch {
	struct lane *lane;
	struct set_request *only; /* the request to answer; NULL for those of the batch */
	lane_after *after;
	struct cache_entry *entry;
	struct result read; /* the reply about the base, without slices */
	struct parts *parts;
	lane_step *folded;       /* follows when the base is folded */
	size_t checked;          /* parts that the view has taken */
	struct op_queue wanting; /* operations of the batch that wait for tables */
	size_t segment_bytes;    /* bytes of the segments of a list */
	char missing[OPLOG_ID];  /* id of a run with a missing part; empty for none */
	uint64_t missing_refs;   /* check of the references when any part was missing; 0 for none */
	uint64_t missing_on;     /* parts.missing_on, while either of these is set */
	bool loading;            /* somebody loads it, so that it is missing */
	bool is_list;            /* the base is a list with segments or a limit, whose view is dropped at the end */
	bool rewrites;           /* the base is read for a CAS */
	bool ahead;              /* the base was read behind the last write: it serves for a CAS alone */
	bool stays; /* the base has lost a part, and is not removed: later reads that do not need the part find out too */
	struct buf list_base; /* its base: the view has all elements as one log instead */
};

/*
 * Starts a read, and sets lane->work to it. `after` gets OUTCOME_DONE when all requests are answered, or what
 * prevented that; it calls fetch_end. If it is for a rewrite, the base is read even if the view may be current, unless it was read ahead:
 * then f->ahead says so.
 */
void fetch_begin(struct fetch *f, struct lane *lane, struct set_request *only, bool rewrites, lane_after *after);

/* Reads the base, whatever was read ahead, and answers. */
void fetch_read_base(struct lane *lane);

/* Reads the base and answers again. If the batch has lost too many races, `after` gets OUTCOME_BUSY. */
void fetch_again(struct lane *lane);
/* The same after a lost CAS, behind which the base may have been read. */
void fetch_lost(struct lane *lane);

/*
 * Ends the batch, releases the view, and frees what the read allocated. After an outcome that the view may be the reason of, drops
 * the view.
 */
void fetch_end(struct fetch *f, struct lane *lane, const struct outcome *outcome);

/* The base as it is stored, to put more behind it. Requires that the requests are answered. Borrowed from the fetch. */
static inline struct slice fetch_base(const struct fetch *f)
{
	return buf_slice(f->is_list ? &f->list_base : &f->entry->view.base);
}

#endif
