/*
 * Opens the base of a set or list: determines what it is, and reads it for a machine that needs
 * its members:
 *
 *     read the base -> `found` -> lost a race: opening_lost -> `found`
 *                              -> a part is missing: opening_again -> `found`
 *                                     -> still missing: opening_give_up -> `ended`
 *
 * A base that refers to a part which no server has is removed, so that the collection can be
 * loaded again.
 */
#ifndef COLLECTION_REWRITE_OPENING_H
#define COLLECTION_REWRITE_OPENING_H

#include "collection/rewrite/keep.h"
#include "collection/text/lease.h"

enum base_kind {
	BASE_FAILED,   /* the read failed */
	BASE_MISSING,  /* there is no item */
	BASE_FOREIGN,  /* not a base, or one that this version cannot read: see `form` */
	BASE_OUTDATED, /* a set in a format of earlier versions, which counts as missing */
	BASE_LOADING,  /* a client is loading it: see `loading` */
	BASE_SET,      /* see `split`, as for LIST */
	BASE_LIST
};

/* A base as it was read. Borrows the value of the reply. */
struct base {
	enum base_kind kind;
	enum oplog_form form;
	struct oplog_base split;
	struct lease_base loading;
};

/* Returns whether the first byte of a value may be that of a base. */
bool base_is_possible(struct slice value);

/*
 * Returns what a reply with the value of the lane's key is. base_sort_whole also checks the log
 * of a set or list, and returns FOREIGN if it is malformed.
 */
struct base base_sort(const struct lane *lane, const struct result *r);
struct base base_sort_whole(const struct lane *lane, const struct result *r);

/* A machine's reading of the base. It is the first member of lane->work. */
struct opening {
	struct lane *lane;
	bool rewrites; /* the base is read for a CAS */
	/* The base was read after the last write: it can only be used for a CAS. */
	bool ahead;
	/*
	 * A part was missing when the base was read last, and the server that lacks it:
	 * see parts.missing_on. Set by the machine before opening_again.
	 */
	uint64_t missing_on;
	struct result read; /* the reply about the base, without slices: see opening_keep */
	int64_t date;       /* of that reply, for a rewrite: see keep_date */
	lane_step *found;   /* receives the reply about the base, perhaps before the call returns */
	lane_after *ended;  /* receives BUSY, MISSING or FAILED instead */
};

/* Stores the reply about the base, which is `base`, and its date. */
void opening_keep(struct opening *o, const struct result *r, struct slice base);

/* Reads the base, unless it was read ahead: then that reply is used, and `ahead` is set. */
void opening_start(struct opening *o);

/* Reads the base, ignoring one that was read ahead. */
void opening_read(struct opening *o);

/* Reads the base again, or ends with BUSY after too many lost races. */
void opening_again(struct opening *o);

/* The same after a lost CAS, which the base may have been read along with. */
void opening_lost(struct opening *o);

/*
 * opening_remove removes the base that `r` is a reply about, by a CAS with an exptime in the
 * past, and ends with MISSING. If the base has changed meanwhile, it reads it again.
 * opening_give_up does this with a base that lacks a part, but keeps the base if another server
 * may have the part.
 */
void opening_remove(struct opening *o, const struct result *r);
void opening_give_up(struct opening *o, const struct result *r);

#endif
