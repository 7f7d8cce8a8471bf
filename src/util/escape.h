/* Bytes of others as text for people: in logs and statistics. */
#ifndef UTIL_ESCAPE_H
#define UTIL_ESCAPE_H

#include "util/slice.h"

/* Bytes that the text of `n` bytes takes at most, with the three dots and its NUL. */
#define ESCAPE_SIZE(n) (4 * (n) + 4)

/*
 * Writes the first `most` bytes of `s` to `out`, of ESCAPE_SIZE(most), with a NUL behind them. Printable ASCII except space and
 * backslash stays; each other byte becomes \x and two hexadecimal digits. Three dots stand for what is cut off. Gives the number of
 * bytes before the NUL.
 */
size_t escape_text(char *out, struct slice s, size_t most);

#endif
