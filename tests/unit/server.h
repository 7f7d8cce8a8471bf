/*
 * A memcached for the fake: it answers the calls that wait, in their order or in another. No time passes in it: its clock stands at
 * 0, so that `expires` of an item is the time to live that it was given. It knows nothing of Check, so that fuzzers can use it too.
 */
#ifndef UNIT_SERVER_H
#define UNIT_SERVER_H

#include "fake.h"
#include "memcached.h"

struct server {
	struct fake *fake;
	struct memcached memcached;
};

void server_init(struct server *s, struct fake *f);
/* Drops all items; the server can be used again. */
void server_free(struct server *s);

/* What an item holds from now on, for ever; and what it holds, or NULL where it is not there. */
void server_put(struct server *s, struct slice key, struct slice value);
struct memcached_item *server_find(struct server *s, struct slice key);

/* How many items there are whose keys begin so, and how many that expire then. */
size_t server_items(const struct server *s, const char *prefix);
size_t server_expiring(const struct server *s, int64_t expires);

/* Answers a call of the fake; or the oldest one, false where none waits; or all, those too that are made meanwhile. */
void server_answer(struct server *s, size_t call);
bool server_answer_one(struct server *s);
void server_answer_all(struct server *s);

#endif
