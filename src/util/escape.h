/* Escapes untrusted bytes as readable text, for logs and statistics. */
#ifndef UTIL_ESCAPE_H
#define UTIL_ESCAPE_H

#include "util/slice.h"

/* Maximum size of the escaped text of `n` bytes, with the three dots and the NUL. */
#define ESCAPE_SIZE(n) (4 * (n) + 4)

/*
 * Writes the first `most` bytes of `s` to `out`, which has ESCAPE_SIZE(most) bytes, with a NUL.
 * Printable ASCII except space and backslash is unchanged; each other byte becomes \x and two
 * hexadecimal digits. Three dots are appended if `s` is truncated. Returns the number of bytes
 * before the NUL.
 */
size_t escape_text(char *out, struct slice s, size_t most);

#endif
