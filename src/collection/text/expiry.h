/*
 * The date at which a member expires. In a log it follows the member, in seconds since 1970 by the
 * clock of the base's server, and is part of the word:
 *
 *     +<member> 0x02 <ten digits>
 *
 * The byte is in no member. From that date on the word has the effect of a removal, and a later
 * word of the member replaces the date. Tables have their own form of it: see table.h.
 */
#ifndef COLLECTION_TEXT_EXPIRY_H
#define COLLECTION_TEXT_EXPIRY_H

#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/slice.h"

/* NONE: a member does not expire. SIZE: bytes of a date with its mark. */
enum { EXPIRY_NONE = 0, EXPIRY_MARK = 0x02, EXPIRY_SIZE = 11 };

/* Returns the date of a member that is added now and lives for `seconds`. */
static inline uint32_t expiry_in(int64_t now, uint64_t seconds)
{
	uint64_t date = (uint64_t)now + seconds;

	return date < UINT32_MAX ? (uint32_t)date : UINT32_MAX;
}

static inline bool expiry_is_past(uint32_t date, int64_t now)
{
	return date && date <= now;
}

/*
 * Returns the end of the word with a date at `word`, which is its space; NULL if it is malformed
 * or has no date. Stores the size of the member.
 */
const char *expiry_word_end(const char *word, const char *end, size_t *size);

/* Returns the date at the mark of a word that expiry_word_end has accepted. */
uint32_t expiry_read(const char *mark);

/* Writes a mark and a date to `at`, which has room for EXPIRY_SIZE bytes. Returns its end. */
char *expiry_write(char *at, uint32_t date);

/* Appends a mark and a date, unless it is EXPIRY_NONE. */
void expiry_add(struct buf *out, uint32_t date);

/* Returns the member of a word, which may have a date. */
static inline struct slice expiry_member(struct slice word)
{
	if (word.n > EXPIRY_SIZE && word.p[word.n - EXPIRY_SIZE] == EXPIRY_MARK)
		word.n -= EXPIRY_SIZE;
	return word;
}

/* Returns a log without the dates of its members: itself, or if it has any, a copy in `out`. */
struct slice expiry_drop(struct slice log, struct buf *out);

#endif
