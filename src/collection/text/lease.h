/*
 * The base of a set or list that somebody loads: a form of oplog (oplog.h) that reads as a missing one. It is
 *
 *     +z ... @set.2 @run @run ... @fill.<token>.<deadline>.<seconds> @run @run ... +a -b +c ...
 *     +z ... @list.2              @fill.<token>.<deadline>.<seconds> @id @id ...   +a -b +c ...
 *
 * The words, additions and removals of others since the lease began, are the head and the log, and runs in front of the lease: a
 * long log was spilled there. Behind the lease is what was loaded. A new lease drops that, and keeps the words. Completing puts the
 * loaded members in front of the words, and makes it a base that can be read.
 *
 * The token tells one lease from another. After the deadline, in seconds since 1970, somebody else may take the lease over. Each
 * load sets the deadline again, `seconds` ahead.
 */
#ifndef COLLECTION_TEXT_LEASE_H
#define COLLECTION_TEXT_LEASE_H

#include "collection/text/oplog.h"

/* The letters and digits of a token; the most seconds that a lease may run. */
enum { LEASE_TOKEN = 8, LEASE_SECONDS_MAX = 3600 };

struct lease {
	struct slice token;
	uint64_t deadline;
	uint32_t seconds;
};

struct lease_base {
	bool is_list;
	struct slice head, log; /* words, beside those in `runs` */
	struct slice runs;      /* references in front of the lease, in a set */
	struct slice loaded;    /* references behind it */
	struct lease lease;
};

/* Reads such a base; `out` borrows it. False if it is another one, or cannot be read. The log is not checked. */
bool lease_split(struct slice base, struct lease_base *out);

/* Writes a token. */
void lease_new_token(uint64_t *random, char token[LEASE_TOKEN]);

/* Whether the lease may be taken over at this time. One that ends too far ahead was given by a clock that was wrong. */
bool lease_is_over(const struct lease *lease, int64_t now);

/* Appends the base, with `more` references behind those that are loaded. */
void lease_write(const struct lease_base *base, struct slice more, struct buf *out);

/*
 * Appends the base of the complete set or list: with `more` references behind those that are loaded, and then the additions in `log`.
 * A set that has words in runs must have no such additions: they belong in a run.
 */
void lease_complete(const struct lease_base *base, struct slice more, struct slice log, struct buf *out);

/* Appends all references of a base that can be read, or that somebody loads: all that leads to its parts. */
void lease_add_refs(struct slice base, struct buf *out);

#endif
