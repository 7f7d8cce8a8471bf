/*
 * The date at which a base expires, as a token of its log: `~t<date> `, in seconds since 1970 by
 * the clock of the base's server, or `~t0 ` if it never expires. The last one in the base counts,
 * and a touch appends one. So each touch changes the CAS id of the base, and a rewrite that was
 * computed before the touch fails.
 */
#ifndef COLLECTION_TEXT_DATE_H
#define COLLECTION_TEXT_DATE_H

#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/slice.h"

/*
 * NONE: a base has no date. MIN: earlier dates would be taken for seconds from now. DATE_TOKEN is
 * the maximum size of a token.
 */
enum { DATE_NONE = -1, DATE_MIN = 60 * 60 * 24 * 30 + 1, DATE_TOKEN = 13 };

/*
 * Maximum seconds between the word of a touch and the touch itself. An item that is there longer
 * after its date does not expire by it.
 */
enum { DATE_LATE = 10 };

/* Returns the end of the token at `p`, after its space; NULL if it is malformed, or no date. */
const char *date_end(const char *p, const char *end);

/* Returns the last date in a base; DATE_NONE if it has none. date_count returns their number. */
int64_t date_last(struct slice base);
size_t date_count(struct slice base);

/* Appends a token. A date before DATE_MIN becomes DATE_MIN, except 0. */
void date_add(struct buf *out, int64_t date);

/* Returns the base without its dates: itself, or if it has any, a copy in `out`. */
struct slice date_undated(struct slice base, struct buf *out);

/* Replaces all dates in a base by this one at its end; by none for DATE_NONE. */
void date_set(struct buf *base, int64_t date);

#endif
