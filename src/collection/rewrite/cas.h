/*
 * A write that keeps the time to live of an item. memcached gives an item a new time with each `cas`, and `touch` changes the
 * time without changing the CAS token.
 *
 *     look at the time to live, and right behind it the write -> not stored: done
 *        -> stored: the look shows another time than the read   -> touch the item with that time -> done
 *                   the time is a date                          -> look, and correct it          -> done
 *                   else                                        -> done
 */
#ifndef COLLECTION_REWRITE_CAS_H
#define COLLECTION_REWRITE_CAS_H

#include "collection/env.h"

struct cas {
	struct env *env;
	struct waiter waiter, look;
	struct result looked; /* without its slices */
	int64_t ttl;          /* seconds; the time that the item has when it is done */
	int64_t exptime;
	void (*done)(struct cas *cas, const struct result *r);
};

/*
 * Sends `call`, a CAS or ADD whose exptime means `ttl`, and calls `done` with its result, never within this call. The key must
 * stay; the other slices are borrowed for this call. With `look` a touch right before the write is kept too.
 */
void cas_send(struct cas *cas, struct env *env, struct call call, int64_t ttl, bool look,
	void (*done)(struct cas *cas, const struct result *r));

/* The same: replaces by `value` what `read` is a reply about, and keeps its flags. `exptime` means the time of the read. */
void cas_replace(struct cas *cas, struct env *env, struct slice key, struct slice value, const struct result *read,
	int64_t exptime, void (*done)(struct cas *cas, const struct result *r));

#endif
