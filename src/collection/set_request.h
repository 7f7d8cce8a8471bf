/* What is asked of a set, and what it comes to. Every command that reads a set is one of these. */
#ifndef COLLECTION_SET_REQUEST_H
#define COLLECTION_SET_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/shared.h"

enum set_verb {
	SET_ALL,    /* all members: in `shared` */
	SET_TEST,   /* which of `members` are in: in `text`, a digit for each, parted by spaces */
	SET_SAMPLE, /* `count` random members, or all when there are no more: in `text` */
	SET_RANGE,  /* the first `count` members of the range in byte order: in `text` */
	SET_COUNT,  /* how many members the range has: in `number` */
	SET_INFO    /* how the set is stored: in `info` */
};

/* Members in byte order, from one bound to another. All zeroes is all of them. */
struct set_range {
	struct slice from, to;
	bool after;  /* `from` itself is left out */
	bool has_to; /* `to` is the last that is in; else there is no bound */
};

struct set_info {
	uint64_t members;
	size_t base_bytes, log_bytes, tokens; /* of the base; of the log in it, and its tokens */
	uint64_t runs, tables, entries, removals, table_bytes;
	double waste; /* the part of the log that it could do without */
};

struct set_request {
	enum set_verb verb;
	struct slice members;
	struct set_range range;
	uint64_t count;
	size_t bytes;     /* RANGE: stop behind so many bytes; 0 for no limit */
	const char *sign; /* SAMPLE: what stands before each member; NULL for nothing */
	uint64_t random;  /* SAMPLE: what makes it random */

	/* What it came to; set_request_free gives it back. In `text` each member is followed by a space. */
	bool answered;
	uint64_t version; /* RANGE: of the view that `text` and `written` are from */
	uint64_t written; /* RANGE: members in `text` */
	struct buf text;
	uint64_t number;
	bool more; /* RANGE: it stopped before the end of the range */
	struct shared *shared;
	struct set_info info;
};

static inline void set_request_free(struct set_request *r)
{
	buf_free(&r->text);
	shared_drop(r->shared);
	r->shared = NULL;
}

#endif
