/* A request to a set, and its answer. Each command that reads a set is one of these. */
#ifndef COLLECTION_SET_REQUEST_H
#define COLLECTION_SET_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "util/buf.h"
#include "util/shared.h"

enum set_verb {
	SET_ALL,    /* all members, to `shared` */
	SET_TEST,   /* for each of `members` 1 or 0, to `text`, joined by spaces */
	SET_HAS,    /* whether `members` is a member: 1 or 0, to `number` */
	SET_SAMPLE, /* `count` random members, distinct unless `repeats`, or all if there are fewer, to `text` */
	SET_RANGE, /* the first `count` members of `range` in byte order, to `text` or, if they are many, to `shared` */
	SET_COUNT, /* the number of members in `range`, to `number` */
	SET_INFO   /* how the set is stored, to `info` */
};

/* A range of members in byte order. All zeroes is the range of all members. */
struct set_range {
	struct slice from, to;
	bool after;  /* the range excludes `from` */
	bool has_to; /* the range ends with `to`, included; else it has no upper bound */
};

struct set_info {
	uint64_t members;
	size_t base_bytes, log_bytes, tokens; /* the base; the log in it, in bytes and tokens */
	uint64_t runs, tables, entries, removals, table_bytes;
	double waste; /* the fraction of the log that folding would remove, 0 to 1 */
};

/* How far a COUNT has come: the sum of what stands before an entry. */
struct set_place {
	size_t run, table;
	uint32_t entry;
	int64_t sum;
};

struct set_counting {
	uint64_t version; /* of the view */
	struct set_place at, redo;
	bool wanted; /* tables between `redo` and `at` were not in memory */
};

struct set_request {
	enum set_verb verb;
	bool repeats; /* SAMPLE: each member is drawn from all members, so that some may come again */
	struct slice members;
	struct set_range range;
	uint64_t count;
	size_t bytes;     /* RANGE: stop after this many bytes of text; 0 for no limit */
	const char *sign; /* SAMPLE: written before each member; NULL for nothing */
	uint64_t random;  /* SAMPLE: the seed */

	/*
	 * The answer, which set_request_free frees. In `text` each member is followed by a space, except for TEST. In `shared` none is behind
	 * the last member.
	 */
	bool answered;
	bool too_large; /* it would have more bytes than result_max, and there is none */
	bool more;      /* RANGE: the range may have more members */
	bool begun;     /* what follows `shared` is set: few requests need any of it */
	uint64_t number;
	struct buf text;
	struct shared *shared;

	uint64_t version; /* of the view that `text` and what follows are from */
	uint64_t written; /* RANGE: members in `text`; SAMPLE: draws, or members that are left to choose from */
	uint64_t next;    /* SAMPLE: the state of random_next() */
	size_t done;   /* TEST: bytes of `members` that are answered; SAMPLE: bytes of all members that are decided */
	size_t looked; /* TEST: bytes of `members` that were looked up; SAMPLE: draws in vain, or members to choose yet */
	bool from_all;      /* SAMPLE: chooses from all members */
	bool wanted;        /* TEST: something was not in memory */
	struct buf offsets; /* SAMPLE: of the members in the text of all, 32 bits each */
	struct set_counting counting;
	struct set_info info;
};

/* Clears what a request needs before its answer begins. */
static inline void set_request_init(struct set_request *r)
{
	memset(r, 0, offsetof(struct set_request, version));
}

/* Clears the rest, once. */
static inline void set_request_begin(struct set_request *r)
{
	if (!r->begun)
		memset(&r->version, 0, sizeof(*r) - offsetof(struct set_request, version));
	r->begun = true;
}

static inline void set_request_free(struct set_request *r)
{
	buf_free(&r->text);
	if (r->begun)
		buf_free(&r->offsets);
	shared_drop(r->shared);
	r->shared = NULL;
}

#endif
