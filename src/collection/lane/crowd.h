/*
 * Crowded keys. So many proxies append to such a key that each rewrite of its base, a CAS,
 * loses the race. A proxy that lost one treats the key as crowded: when the base is too large,
 * the lane delays its own appends. When all proxies hold, the key is quiet enough for one of
 * them to rewrite it. The appends that arrive meanwhile become one.
 *
 *     base too large -> hold -> wait up to 2 ms -> read its size
 *         -> small: continue
 *         -> large: with probability 1 / share compact it, else keep holding, up to HOLD_MAX
 *
 * The share doubles with each rewrite that was lost to another rewrite, and halves with each
 * success. So it converges to about the number of proxies that hold, and one or two of them
 * rewrite at a time.
 *
 * A lane of a crowded key also collects: before it appends, it waits up to COLLECT_MS for as
 * many operations as its clients have had in flight. So each append carries out the work of
 * several round trips, and the server copies the base less often. Databases call this group
 * commit.
 */
#ifndef COLLECTION_LANE_CROWD_H
#define COLLECTION_LANE_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CROWD_SLOTS = 256,
	CROWD_SHARE_MAX = 64,
	/* Milliseconds after the last lost rewrite until the key counts as quiet. */
	CROWD_FORGET = 10 * 1000,
	/* A crowded key may have a base this many times larger than the usual limit. */
	CROWD_GROWTH = 4,
	HOLD_MAX = 256, /* milliseconds */
	COLLECT_MS = 1,
	COLLECT_MOST = 64 /* operations; more of them in one append save little */
};

/*
 * A hash table without chains: a key overwrites the previous one in its slot. All zeroes
 * is an empty table.
 */
struct crowds {
	struct crowd {
		/* Hash of the key; time of the last lost rewrite, in milliseconds. */
		uint64_t hash, lost;
		unsigned share;
		unsigned appended; /* operations in the last append */
	} slots[CROWD_SLOTS];
};

/*
 * Returns the share of a key: 1 if it is not crowded. `hash` is that of the key, `now`
 * is in milliseconds.
 */
unsigned crowd_share(const struct crowds *crowds, uint64_t hash, uint64_t now);

/*
 * crowd_lost records a rewrite that was lost to an append, or to another rewrite if
 * `rewritten`; crowd_won records one that succeeded.
 */
void crowd_lost(struct crowds *crowds, uint64_t hash, uint64_t now, bool rewritten);
void crowd_won(struct crowds *crowds, uint64_t hash);

/*
 * crowd_appends records how many operations an append carries out. crowd_appended returns the
 * last such number, 0 if there is none.
 */
void crowd_appends(struct crowds *crowds, uint64_t hash, unsigned operations);
unsigned crowd_appended(const struct crowds *crowds, uint64_t hash);

/*
 * Returns the size in bytes above which a base is too large. It grows with the share and with
 * `written`, the bytes of a batch, so that the number of writes per rewrite stays the same.
 */
static inline size_t crowd_limit(unsigned share, size_t log_size, size_t written)
{
	enum { BATCHES = 8, MOST = 32 * 1024 };
	size_t limit =
		2 * log_size * (share < CROWD_GROWTH ? share : CROWD_GROWTH) + BATCHES * written;

	return limit < MOST || limit < 2 * log_size ? limit
		: MOST > 2 * log_size               ? MOST
						    : 2 * log_size;
}

#endif
