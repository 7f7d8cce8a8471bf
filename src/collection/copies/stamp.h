/*
 * Stamps: the times by which words of a set with two copies are ordered. A stamp has 48 bits: 42 of
 * Unix time in milliseconds, and 6 of a counter. It is written as 8 characters, whose byte order is
 * the order of stamps. 0 is no stamp.
 *
 * The stamps of a proxy only grow, also if its clock is set back. A stamp that it reads and that is
 * ahead of its clock moves its next stamp past it, within STAMP_AHEAD_MS; so a word that follows
 * another one is later, although clocks differ (a hybrid logical clock).
 */
#ifndef COLLECTION_COPIES_STAMP_H
#define COLLECTION_COPIES_STAMP_H

#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"

enum { STAMP_DIGITS = 8, STAMP_COUNTER_BITS = 6, STAMP_AHEAD_MS = 2000 };

#define STAMP_MAX (((uint64_t)1 << 48) - 1)

/* Returns the first stamp of a millisecond. */
static inline uint64_t stamp_at(uint64_t ms)
{
	return ms << STAMP_COUNTER_BITS & STAMP_MAX;
}

/*
 * The same of a microsecond. Its fraction of a millisecond is in the counter, so that the words of
 * proxies with the same clock are ordered more finely.
 */
static inline uint64_t stamp_at_us(uint64_t us)
{
	enum { US_PER_MS = 1000 };

	return stamp_at(us / US_PER_MS) | (us % US_PER_MS << STAMP_COUNTER_BITS) / US_PER_MS;
}

/* Returns the stamp `ms` milliseconds earlier; 0 if there is none. */
static inline uint64_t stamp_before(uint64_t stamp, uint64_t ms)
{
	uint64_t part = ms << STAMP_COUNTER_BITS;

	return stamp > part ? stamp - part : 0;
}

/* The last stamp of a proxy; zeroes at first. */
struct stamp_clock {
	uint64_t last;
};

/* Returns the next stamp of a proxy, at this Unix time in milliseconds, or at this stamp. */
uint64_t stamp_next(struct stamp_clock *clock, uint64_t ms);
uint64_t stamp_next_at(struct stamp_clock *clock, uint64_t now);

/*
 * Notes a stamp that was read. Returns false if it is so far ahead that a clock must be wrong: then
 * it is not followed.
 */
bool stamp_see(struct stamp_clock *clock, uint64_t stamp, uint64_t ms);

/* Appends a stamp. stamp_parse reads one from STAMP_DIGITS bytes, and returns 0 if it is none. */
void stamp_add(struct buf *out, uint64_t stamp);
uint64_t stamp_parse(const char *p);

#endif
