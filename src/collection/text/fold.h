/*
 * Folds a log of additions and removals: the last token of a member decides whether it is in
 * the set. Members keep the order of their first tokens. A fold borrows the logs that it reads
 * as long as it is used. It reads no clock: members whose date (expiry.h) has passed stay in it
 * until fold_expire.
 */
#ifndef COLLECTION_TEXT_FOLD_H
#define COLLECTION_TEXT_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "collection/text/expiry.h"
#include "util/buf.h"
#include "util/hash.h"
#include "util/slice.h"

struct fold_member {
	const char *p;
	uint32_t n;
	bool live;
	bool dated; /* It is live, and a date follows the member at `p`. */
};

struct fold {
	struct fold_member *members; /* all members, including removed ones */
	struct fold_slot *slots;     /* open addressing; slot_count is a power of two */
	struct fold_slot *old;       /* the smaller table before, until all is moved; or NULL */
	size_t member_count, member_capacity, slot_count, old_count, moved;
	size_t live;               /* members that are in the set */
	size_t all_bytes;          /* of the names of all members */
	size_t live_bytes;         /* of the names of live members */
	size_t dated;              /* live members with a date */
	uint32_t first_date;       /* if there are any: at most the first of these dates */
	size_t tokens;             /* read so far */
	size_t bytes;              /* read so far */
	size_t left;               /* bytes of the log after the last portion */
	uint64_t seed;             /* of the hash */
	struct hash_secret secret; /* derived from the seed, when the first slots are allocated */
	/*
	 * The log may be that of a list, whose words may be longer than those of members;
	 * whether one is.
	 */
	bool takes_long, has_long;
};

/*
 * An empty fold is zeroes except for the seed and takes_long. fold_reset empties it but keeps its
 * memory; fold_free frees that.
 */
void fold_reset(struct fold *f);
void fold_free(struct fold *f);

/*
 * Reads a log: tokens `+member` and `-member`, each followed by one space. Dates of the base
 * (date.h) are skipped. Returns false if the log is malformed, or a word is too long; then the fold
 * may only be passed to fold_reset or fold_free.
 */
bool fold_log(struct fold *f, struct slice log) __attribute__((warn_unused_result));

/*
 * The same for the next portion of a log, which is removed from the front of `rest`: about
 * FOLD_STEPS steps of work, in the unit of env_is_over.
 */
bool fold_portion(struct fold *f, struct slice *rest) __attribute__((warn_unused_result));
enum { FOLD_STEPS = 2048 };

/*
 * Makes the fold that of `log`, which fold_encode wrote from it, with or without removals.
 * Returns false, and leaves the fold unchanged, if removals were omitted.
 */
bool fold_take_encoded(struct fold *f, struct slice log) __attribute__((warn_unused_result));

/* Adjusts the fold after all bytes that it borrows moved from `from` to `to`. */
void fold_rebase(struct fold *f, const char *from, const char *to);

/* Removes the members that have expired at `now`, in seconds since 1970. Returns if it had any. */
bool fold_expire(struct fold *f, int64_t now);

/* Returns the date of a member; EXPIRY_NONE if it has none. */
static inline uint32_t fold_date(const struct fold_member *m)
{
	return m->dated ? expiry_read(m->p + m->n) : EXPIRY_NONE;
}

/* Apply one addition or removal. The member is borrowed. */
void fold_add(struct fold *f, struct slice member);
void fold_remove(struct fold *f, struct slice member);

bool fold_contains(const struct fold *f, struct slice member);

/*
 * fold_join appends the live members, separated by spaces; fold_joined_size returns the size of
 * that text in bytes. fold_join_portion appends a portion of it, for FOLD_JOINED members, and
 * advances `at`, which is 0 at first. It returns true at the end. Until then `out` must not change.
 */
size_t fold_joined_size(const struct fold *f);
void fold_join(const struct fold *f, struct buf *out);
bool fold_join_portion(const struct fold *f, size_t *at, struct buf *out)
	__attribute__((warn_unused_result));
enum { FOLD_JOINED = 2048 };

/*
 * fold_encode appends the shortest log with the same members: one addition for each. With
 * `removals`, it is the shortest one with the same effect on older layers: the last token of
 * each member, including removals. fold_log_size returns its size.
 */
size_t fold_log_size(const struct fold *f, bool removals);
void fold_encode(const struct fold *f, bool removals, struct buf *out);

/*
 * fold_note returns the index of a member in f->members; a new member is added as removed.
 * fold_set makes it live or removed.
 */
size_t fold_note(struct fold *f, struct slice member);
void fold_set(struct fold *f, size_t i, bool live);

/* Returns the bytes of memory that the fold uses. */
size_t fold_memory(const struct fold *f);

/* Returns whether any token named the member; stores its index. */
bool fold_find(const struct fold *f, struct slice member, size_t *i);

/*
 * Return whether any token named the member, and store in `live` whether the last one added
 * it. fold_mentions_hashed takes the hash of the member, computed by hash_member with the
 * secret of the seed.
 */
bool fold_mentions(const struct fold *f, struct slice member, bool *live);
bool fold_mentions_hashed(const struct fold *f, struct slice member, uint64_t hash, bool *live);

#endif
