/* The set `k` on the server of a test: written down as text, and read back as text. */
#ifndef UNIT_STORED_H
#define UNIT_STORED_H

#include "cupboard.h"
#include "server.h"

/* Puts it there: what is in front, runs, and the log; with it all items of the cupboard. */
void stored_put(struct server *s, struct cupboard *c, const char *head, const struct oplog_run *runs, size_t count,
	const char *log);

/* The item of that id beside the base; NULL when there is none. */
struct memcached_item *stored_item(struct server *s, struct slice id);

/*
 * What is there: "head @[+a -b|+c] @[-d] log", each run with its entries, tables parted by |; NULL when there is no base. What
 * it refers to must be there, and be what it says. Valid until the next call.
 */
const char *stored_show(struct server *s);

/* The calls since the last time, a letter each, L for a get of no value; those on items beside the base in lower case: see stored.c. */
const char *stored_calls(struct fake *f, size_t *seen);

#endif
