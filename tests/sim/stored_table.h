/*
 * A reader of the tables of sets in oplog, written from the documentation of their three forms. It
 * shares no code with the code under test.
 */
#ifndef SIM_STORED_TABLE_H
#define SIM_STORED_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/slice.h"

/* The expected properties of a run or of a table, or those found. */
struct stored_totals {
	uint64_t tables, entries, removals, bytes;
	uint64_t dated, first, mean; /* the number of dates, the first one, the mean; 0 for none */
};

/* Called for each entry, in order. Returns whether the reader goes on. */
typedef bool stored_each(void *arg, struct slice member, bool removed, uint32_t date);

/*
 * Reads a table, and stores what it found. Returns NULL, or which rule of the form its bytes break;
 * an empty text if `each` stopped it.
 */
const char *stored_table_read(
	struct slice data, struct stored_totals *found, stored_each *each, void *arg);

/* Makes the first removal of a packed table an addition. Returns false if it has none. */
bool stored_lose_removal(struct slice table);

/*
 * Remove bytes, or a number of at most 32 bits in as few bytes as possible, from the front. Return
 * false if there are none.
 */
bool stored_take(struct slice *rest, size_t n, struct slice *out);
bool stored_take_varint(struct slice *rest, uint64_t *out);

/* Reads a little-endian number. */
uint64_t stored_little(const char *p, int bytes);

/* Compares in byte order; a prefix of a member is below it. */
int stored_compare(struct slice a, struct slice b);

#endif
