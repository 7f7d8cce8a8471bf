/*
 * A write that keeps the time to live of an item. memcached sets a new time with each `cas`, and `touch` changes the
 * time but not the CAS token.
 *
 *     read the time to live, and pipeline the write behind it
 *         -> not stored: done
 *         -> stored: that time is not the one of the first read -> touch the item with that time -> done
 *                    the exptime is a date                      -> read the time to live, correct it -> done
 *                    else                                       -> done
 */
#ifndef COLLECTION_REWRITE_CAS_H
#define COLLECTION_REWRITE_CAS_H

#include "collection/env.h"

struct cas {
	struct env *env;
	struct waiter waiter, look;
	struct result looked; /* without slices */
	int64_t ttl;          /* seconds; the time to live that the item has when `done` is called */
	int64_t exptime;
	void (*done)(struct cas *cas, const struct result *r);
};

/*
 * Sends `call`, a CAS or ADD whose exptime means `ttl` seconds. Calls `done` with its result, never within this
 * function. `cas` and the key must stay until then; other slices are borrowed until the return. If `look`, a touch by
 * another client right before the write is kept.
 */
void cas_send(struct cas *cas, struct env *env, struct call call, int64_t ttl, bool look,
	void (*done)(struct cas *cas, const struct result *r));

/*
 * The same: replaces the item that `read` is a reply about by `value`, and keeps its flags. `exptime` is that of
 * read->ttl.
 */
void cas_replace(struct cas *cas, struct env *env, struct slice key, struct slice value, const struct result *read,
	int64_t exptime, void (*done)(struct cas *cas, const struct result *r));

#endif
