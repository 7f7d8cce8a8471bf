/* The set `k` on the server of a test, written and read in a text notation. */
#ifndef UNIT_STORED_H
#define UNIT_STORED_H

#include "cupboard.h"
#include "server.h"

/* Stores the set: the tokens in front, runs, and the log, and all items of the cupboard. */
void stored_put(struct server *s, struct cupboard *c, const char *head,
	const struct oplog_run *runs, size_t count, const char *log);

/* Returns the item with that id that belongs to the base; NULL if there is none. */
struct memcached_item *stored_item(struct server *s, struct slice id);

/*
 * Returns the stored set: "head @[+a -b|+c] @[-d] log", each run with its entries, and | between
 * tables; NULL if there is no base. Items that it refers to must exist and match their references,
 * and only a base of form 3 may refer to packed tables, or ones with dates. A date is shown as
 * +a^5, in seconds from SERVER_NOW. Valid until the next call.
 */
const char *stored_show(struct server *s);

/* Returns how many of the tables that were shown last are packed. */
size_t stored_packed(void);

/*
 * Returns the calls since the last time, a letter for each, L for a get without a value; in lower
 * case for items other than the base: see stored.c.
 */
const char *stored_calls(struct fake *f, size_t *seen);

#endif
