/*
 * Crowded keys: those that so many proxies write at once that a rewrite of the base, which is a CAS, is lost to the appends of
 * others. Who has lost notices, and from then on answers a base that has grown too large by holding its own appends back.
 * When all hold, the moment is quiet enough for one of them to rewrite; the appends that come meanwhile become one.
 *
 *     base too large -> hold -> wait up to 2 ms -> look at its size -> small: go on
 *                                                                  -> large: with a chance of one in `share` compact it,
 *                                                                            else hold on, up to HOLD_MAX
 *
 * The share doubles with each rewrite that another one was quicker with, and halves with each that is done. So it comes to about
 * the number of those that hold, and one or two of them rewrite at a time.
 */
#ifndef COLLECTION_CROWD_H
#define COLLECTION_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CROWD_PLACES = 256,
	CROWD_SHARE_MAX = 64,
	CROWD_FORGET = 10 * 1000, /* milliseconds without a lost rewrite, after which a key is crowded no more */
	CROWD_GROWTH = 4,         /* a crowded base may grow so many times as large before it counts as too large */
	HOLD_MAX = 256            /* milliseconds */
};

/* All zeroes knows no crowded key. What does not fit takes the place of another. */
struct crowds {
	struct crowd {
		uint64_t hash, lost; /* of the key; when it was lost last */
		unsigned share;
	} places[CROWD_PLACES];
};

/* 1 where the key is not crowded. `hash` is the key's, `now` in milliseconds. */
unsigned crowd_share(const struct crowds *crowds, uint64_t hash, uint64_t now);

/* A rewrite was lost, to an append or, with `rewritten`, to another rewrite; or it was done. */
void crowd_lost(struct crowds *crowds, uint64_t hash, uint64_t now, bool rewritten);
void crowd_won(struct crowds *crowds, uint64_t hash);

/*
 * Above which size a base is too large: the more is written at once, to a crowded key or by a batch of `written` bytes, the
 * larger it may grow, so that a rewrite serves as many writes.
 */
static inline size_t crowd_limit(unsigned share, size_t log_size, size_t written)
{
	enum { BATCHES = 8, MOST = 32 * 1024 };
	size_t limit = 2 * log_size * (share < CROWD_GROWTH ? share : CROWD_GROWTH) + BATCHES * written;

	return limit < MOST || limit < 2 * log_size ? limit : MOST > 2 * log_size ? MOST : 2 * log_size;
}

#endif
