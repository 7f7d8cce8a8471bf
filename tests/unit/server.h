/*
 * A memcached for the fake: it answers pending calls, in their order or another one. Its clock
 * always shows SERVER_NOW, as that of the fake does at first. It does not use Check, so that
 * fuzzers can use it too.
 */
#ifndef UNIT_SERVER_H
#define UNIT_SERVER_H

#include "fake.h"
#include "memcached.h"

enum { SERVER_NOW = 1424450096 };

struct server {
	struct fake *fake;
	struct memcached memcached;
};

void server_init(struct server *s, struct fake *f);
/* Drops all items; the server can be used again. */
void server_free(struct server *s);

/* Store an item that never expires; return its value, or NULL if it does not exist. */
void server_put(struct server *s, struct slice key, struct slice value);
struct memcached_item *server_find(struct server *s, struct slice key);

/*
 * Return how many items have keys that begin like this; how many items expire after this number
 * of seconds.
 */
size_t server_items(const struct server *s, const char *prefix);
size_t server_expiring(const struct server *s, int64_t expires);

/*
 * Answer a call of the fake; the oldest one (false if none is pending); all, including those that
 * are made meanwhile.
 */
void server_answer(struct server *s, size_t call);
bool server_answer_one(struct server *s);
void server_answer_all(struct server *s);

#endif
