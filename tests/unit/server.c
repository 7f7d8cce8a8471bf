#include "server.h"

static int64_t server_time(struct env *env, struct slice key)
{
	(void)env;
	(void)key;
	return SERVER_NOW;
}

void server_init(struct server *s, struct fake *f)
{
	memset(s, 0, sizeof(*s));
	s->fake = f;
	s->memcached.ahead = (uint64_t)SERVER_NOW * 1000;
	f->host.env.server_time = server_time;
}

void server_free(struct server *s)
{
	memcached_restart(&s->memcached);
}

struct memcached_item *server_find(struct server *s, struct slice key)
{
	return memcached_find(&s->memcached, key, 0);
}

void server_put(struct server *s, struct slice key, struct slice value)
{
	(void)memcached_call(
		&s->memcached, &(struct call){ .verb = CALL_SET, .key = key, .value = value }, 0);
}

size_t server_items(const struct server *s, const char *prefix)
{
	size_t count = 0;

	for (size_t i = 0; i < MEMCACHED_ITEMS; i++) {
		const struct memcached_item *item = &s->memcached.items[i];
		count += item->used &&
			slice_starts(buf_slice(&item->key), slice_of(prefix, strlen(prefix)));
	}
	return count;
}

size_t server_expiring(const struct server *s, int64_t expires)
{
	size_t count = 0;

	for (size_t i = 0; i < MEMCACHED_ITEMS; i++)
		count += s->memcached.items[i].used &&
			s->memcached.items[i].expires == SERVER_NOW + expires;
	return count;
}

void server_answer(struct server *s, size_t i)
{
	struct result r = memcached_call(&s->memcached, &s->fake->calls[i].call, 0);

	fake_result(s->fake, i, &r);
}

bool server_answer_one(struct server *s)
{
	if (fake_waiting(s->fake) == 0)
		return false;
	server_answer(s, fake_oldest(s->fake));
	return true;
}

void server_answer_all(struct server *s)
{
	while (server_answer_one(s))
		;
}
