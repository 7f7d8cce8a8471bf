/*
 * The base of a set or list that a client is loading: a form of oplog (oplog.h) that reads as
 * missing. It is
 *
 *     +z ... @set.2 @run @run ... @fill.<token>.<deadline>.<seconds>[.3] @run @run ... +a -b +c ...
 *     +z ... @list.2              @fill.<token>.<deadline>.<seconds>[.3] @id @id ...   +a -b +c ...
 *
 * Words are additions and removals by other clients since the lease began: the head, the log,
 * and in a set the runs before the lease, to which a long log was spilled. The loaded
 * references follow the lease. A new lease drops them, and keeps the words. Completing the load
 * puts the loaded members before the words, and makes it a base that can be read; of form 3 if the
 * lease says so.
 *
 * The token identifies the lease. After the deadline, in seconds since 1970, another client may
 * take the lease over. Each load sets the deadline again, `seconds` ahead.
 */
#ifndef COLLECTION_TEXT_LEASE_H
#define COLLECTION_TEXT_LEASE_H

#include "collection/text/oplog.h"

/* Letters and digits of a token; maximum duration of a lease in seconds. */
enum { LEASE_TOKEN = 8, LEASE_SECONDS_MAX = 3600 };

struct lease {
	struct slice token;
	uint64_t deadline;
	uint32_t seconds;
};

struct lease_base {
	bool is_list;
	bool wide;              /* the complete base must have form 3; see oplog.h */
	struct slice head, log; /* words, in addition to those in `runs` */
	struct slice runs;      /* references before the lease, in a set */
	struct slice loaded;    /* references after the lease */
	struct lease lease;
};

/*
 * Parses such a base; `out` borrows it. Returns false if it has another form, or is malformed.
 * The log is not checked.
 */
bool lease_split(struct slice base, struct lease_base *out);

/* Writes a token. */
void lease_new_token(uint64_t *random, char token[LEASE_TOKEN]);

/*
 * Returns whether the lease may be taken over at this time. A lease that ends too far ahead was
 * set by a wrong clock, and may be.
 */
bool lease_is_over(const struct lease *lease, int64_t now);

/* Appends the base, with `more` references after the loaded ones. */
void lease_write(const struct lease_base *base, struct slice more, struct buf *out);

/*
 * Appends the base of the complete set or list: with `more` references after the loaded ones,
 * and then the additions in `log`. A set that has words in runs must have no such additions:
 * they belong in a run.
 */
void lease_complete(
	const struct lease_base *base, struct slice more, struct slice log, struct buf *out);

/*
 * Appends all references of a base that can be read, or is being loaded; they lead to
 * all its parts.
 */
void lease_add_refs(struct slice base, struct buf *out);

#endif
