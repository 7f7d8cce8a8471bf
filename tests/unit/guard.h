/*
 * A buffer for input that must not be read beyond its end: it ends at the beginning of a page that
 * traps.
 */
#ifndef UNIT_GUARD_H
#define UNIT_GUARD_H

#include "util/slice.h"

enum { GUARD_MAX = 1 << 21 };

/*
 * Copies `s`, of GUARD_MAX bytes at most, to right before the trap. The copy is valid until the
 * next call.
 */
struct slice guard_place(struct slice s);

/* The same for a string. */
struct slice guard_text(const char *text);

#endif
