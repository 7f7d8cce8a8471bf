/*
 * Reading ahead. If a key is rewritten repeatedly, its base is read right after the last write
 * before a rewrite, in the same round trip. Then the rewrite has the base in memory, and its
 * first call is the CAS. The CAS shows whether the base is still the same:
 *
 *     rewrite -> CAS, read after it -> rewrite -> CAS -> stored: one round trip
 *     append, read after it  ------------^            -> lost: read the base as usual
 *
 * memcached returns the new cas id of a written item only in reply to `ms`, and deletes the
 * item if an `ms` finds no memory. So the base is read as a whole, and the copy in memory is
 * always what a server returned with that id.
 *
 * Such a read is meant to replace the one that the next rewrite would make. So it is made if a
 * rewrite is queued in the lane, or if as many appends have followed the last rewrite as there
 * were between the last two. Then a base that is read for a client is kept, too. While others
 * write the key, most reads ahead are useless: each useless one doubles the number of rewrites
 * that go without.
 */
#ifndef COLLECTION_REWRITE_AHEAD_H
#define COLLECTION_REWRITE_AHEAD_H

#include "collection/lane/lane.h"

struct aheads *aheads_create(void);
/* NULL does nothing. */
void aheads_destroy(struct aheads *aheads);
size_t aheads_memory(const struct aheads *aheads);

/*
 * ahead_has returns whether the base that was read after the last write is in memory or still
 * in flight. Then ahead_give passes that reply to `step`, perhaps before it returns. The reply
 * is a hit; if it was in flight, it may be anything. As it is older than the operation, it may
 * be used only for a CAS: a machine that would end otherwise must read the base.
 */
bool ahead_has(const struct lane *lane);
void ahead_give(struct lane *lane, lane_step *step);

/*
 * After a lost CAS: redirects the reply to the read after it to `step`. Returns false
 * if there is none.
 */
bool ahead_reads(struct lane *lane, lane_step *step) __attribute__((warn_unused_result));

/* Called right after the CAS of a rewrite, or an append, was sent. They read the base after it. */
void ahead_rewrites(struct lane *lane);
void ahead_appends(struct lane *lane);

/*
 * Called when the base was read for a client. `r` is the reply about it, perhaps
 * without its value.
 */
void ahead_saw(struct lane *lane, const struct result *r, struct slice base);

/*
 * Called when the CAS has ended with this status. `tried`: it was computed from the reply that
 * ahead_give passed on.
 */
void ahead_ended(struct lane *lane, enum result_status status, bool tried);

/*
 * Called when the base is written, or its time to live changed, in another way: drops
 * the copy of the base.
 */
void ahead_forget(struct lane *lane);

#endif
