/*
 * Reading ahead. If a key is rewritten again and again, its base is read behind the last write before a rewrite, in the same round trip.
 * Then the rewrite has the base in memory, and its CAS is the first call. The CAS shows whether the base is still the same:
 *
 *     rewrite -> CAS, read behind it -> rewrite -> CAS -> stored: one round trip
 *     append, read behind it  ------------^            -> lost:   read the base, as if nothing had been in memory
 *
 * memcached tells the cas id that an item gets in reply to `ms` alone, and deletes the item if an `ms` finds no room. So the base is read
 * as a whole, and what is in memory is always what a server gave with that id.
 *
 * Such a read is to replace one that the next rewrite would make. So it is made if a rewrite waits in the lane, or if as many appends
 * have followed the last rewrite as lay between the last two. Then what is read for a client is kept, too. While others write the key,
 * most reads ahead are in vain: each one that was doubles the number of rewrites that go without.
 */
#ifndef COLLECTION_REWRITE_AHEAD_H
#define COLLECTION_REWRITE_AHEAD_H

#include "collection/lane/lane.h"

struct cas;

struct aheads *aheads_create(void);
/* NULL does nothing. */
void aheads_destroy(struct aheads *aheads);
size_t aheads_memory(const struct aheads *aheads);

/*
 * Whether the base that was read behind the last write is in memory, or about to come. Then ahead_give has `step` receive that reply, which
 * is a hit or, if it has only just come, anything; perhaps before it returns. As it is older than the operation, it serves for a CAS and
 * for nothing else: a machine that would end otherwise must read the base.
 */
bool ahead_has(const struct lane *lane);
void ahead_give(struct lane *lane, lane_step *step);

/* After a lost CAS: has `step` receive the reply to the read behind it. False if there is none. */
bool ahead_reads(struct lane *lane, lane_step *step) __attribute__((warn_unused_result));

/* Call these right after the CAS of a rewrite with this exptime, or an append, was sent: they read behind it. */
void ahead_rewrites(struct lane *lane, int64_t exptime);
void ahead_appends(struct lane *lane);

/* The base was read for a client. `r` is the reply about it, perhaps without its value. */
void ahead_saw(struct lane *lane, const struct result *r, struct slice base);

/* `cas` has ended with this status. `tried`: it was computed from what ahead_give gave. */
void ahead_ended(struct lane *lane, const struct cas *cas, enum result_status status, bool tried);

/* The base is written, or its time to live changed, otherwise: what was read of it is forgotten. */
void ahead_forget(struct lane *lane);

#endif
