/* A request to a set, and its answer. Every command that reads a set makes one. */
#ifndef COLLECTION_SET_REQUEST_H
#define COLLECTION_SET_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "util/buf.h"
#include "util/shared.h"

struct glob;

enum set_verb {
	SET_ALL,  /* all members; result in `shared` */
	SET_TEST, /* for each of `members` 1 or 0, separated by spaces; result in `text` */
	SET_HAS,  /* whether `members` is a member, 1 or 0; result in `number` */
	/*
	 * `count` random members, distinct unless `repeats`, or all if there are
	 * fewer; result in `text`.
	 */
	SET_SAMPLE,
	/*
	 * The first `count` members of `range` in byte order; result in `text` or, if there are
	 * many, in `shared`.
	 */
	SET_RANGE,
	SET_COUNT, /* the number of members in `range`; result in `number` */
	/*
	 * The seconds until the one member in `members` expires, SET_TTL_NEVER, or SET_TTL_NONE if
	 * it is not in the set; result in `number`
	 */
	SET_TTL,
	SET_INFO, /* how the set is stored; result in `info` */
	/*
	 * All members of a set without runs; without `bytes`, one with runs is too large. With
	 * `bytes`, the members of its oldest tables, until these have so many bytes of members;
	 * result in `text`, and the place after them in `counting.at`.
	 */
	SET_TAKE
};

#define SET_TTL_NONE 0
#define SET_TTL_NEVER UINT64_MAX

/* A range of members in byte order. All zeroes is the range of all members. */
struct set_range {
	struct slice from, to;
	bool after;  /* the range excludes `from` */
	bool has_to; /* the upper bound is `to`, inclusive; else there is none */
};

struct set_info {
	uint64_t members;
	/* Size of the base; size of its log, in bytes and in tokens. */
	size_t base_bytes, log_bytes, tokens;
	uint64_t runs, tables, entries, removals, table_bytes;
	double waste; /* the fraction of the log that folding would remove, 0 to 1 */
};

/*
 * Progress of a COUNT: the sum of everything before an entry. TAKE: the bytes of the members
 * before it; its runs have the numbers from 1 on, the head is 0 and the log the last one.
 */
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
	/* SAMPLE: each draw is from all members, so a member may be drawn repeatedly. */
	bool repeats;
	struct slice members;
	struct set_range range;
	/* RANGE: only members whose element matches (util/glob.h); `p` is NULL for all. */
	struct slice pattern;
	uint64_t count;
	/* RANGE: stop after this many bytes of text, 0 for no limit; TAKE: see there. */
	size_t bytes;
	const char *sign; /* SAMPLE: written before each member; NULL for nothing */
	uint64_t random;  /* SAMPLE: the seed */

	/*
	 * The answer, freed by set_request_free. In `text` each member is followed by a space,
	 * except for TEST. In `shared` the last member has no space after it.
	 */
	bool answered;
	bool too_large; /* the answer would be larger than result_max, and is not set */
	bool more;      /* RANGE: the range may have more members */
	/* The fields after `shared` are initialised; few requests need any of them. */
	bool begun;
	uint64_t number;
	struct buf text;
	struct shared *shared;

	uint64_t version; /* version of the view that `text` and the following fields are from */
	/* RANGE: members in `text`; SAMPLE: draws made, or members left to choose from. */
	uint64_t written;
	uint64_t next; /* SAMPLE: the state of random_next() */
	/*
	 * TEST: bytes of `members` that are answered; SAMPLE: bytes of all members that are
	 * decided
	 */
	size_t done;
	/*
	 * TEST: bytes of `members` that were looked up; SAMPLE: draws that need a part which is
	 * not in memory, or number of members still to choose; RANGE: members that were compared
	 * with `pattern`.
	 */
	size_t looked;
	bool from_all; /* SAMPLE: chooses from all members */
	bool wanted;   /* TEST: some part was not in memory */
	/*
	 * SAMPLE: 32-bit offsets of the members in the text of all members; RANGE: the last member
	 * that was compared with `pattern`
	 */
	struct buf offsets;
	struct set_counting counting;
	struct set_info info;
	struct glob *glob; /* RANGE: the compiled `pattern`, or NULL */
};

/*
 * Writes an upper bound of everything that begins with `prefix` to `at`, which has room for
 * prefix.n bytes. Returns its end, which is `at` if there is no bound. The bound itself does not
 * begin with the prefix.
 */
static inline char *set_range_bound(struct slice prefix, char *at)
{
	while (prefix.n && (unsigned char)prefix.p[prefix.n - 1] == UINT8_MAX)
		prefix.n--;
	if (prefix.n == 0)
		return at;
	at = slice_write(at, prefix);
	at[-1]++;
	return at;
}

/* Clears the fields that a request needs before its answer begins. */
static inline void set_request_init(struct set_request *r)
{
	memset(r, 0, offsetof(struct set_request, version));
}

/* Clears the remaining fields, once. */
static inline void set_request_begin(struct set_request *r)
{
	if (!r->begun)
		memset(&r->version, 0, sizeof(*r) - offsetof(struct set_request, version));
	r->begun = true;
}

static inline void set_request_free(struct set_request *r)
{
	buf_free(&r->text);
	if (r->begun) {
		buf_free(&r->offsets);
		free(r->glob);
		r->glob = NULL;
	}
	shared_drop(r->shared);
	r->shared = NULL;
}

#endif
