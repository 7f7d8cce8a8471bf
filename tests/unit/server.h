/*
 * A memcached in memory, for the fake: it answers the calls that wait, in their order or in another. No time passes in it: what
 * was given so many seconds to live has them left for ever. It knows nothing of Check, so that fuzzers can use it too.
 */
#ifndef UNIT_SERVER_H
#define UNIT_SERVER_H

#include "fake.h"

enum { SERVER_ITEMS = 4096 };

struct server {
	struct fake *fake;
	struct server_item {
		struct buf key, value;
		int64_t ttl;
		uint32_t flags;
		uint64_t cas;
		bool there;
	} items[SERVER_ITEMS];
	size_t count;
	uint64_t cas;
	size_t most; /* bytes of an item; 0 for no limit */
};

void server_init(struct server *s, struct fake *f);
void server_free(struct server *s);

/* What an item holds from now on, for ever; and what it holds, or NULL where it is not there. */
void server_put(struct server *s, struct slice key, struct slice value);
struct server_item *server_find(struct server *s, struct slice key);

/* How many items there are. */
size_t server_items(const struct server *s);

/* Answers a call of the fake; or the oldest one, false where none waits; or all, those too that are made meanwhile. */
void server_answer(struct server *s, size_t call);
bool server_answer_one(struct server *s);
void server_answer_all(struct server *s);

#endif
