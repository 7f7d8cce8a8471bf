#include "server.h"

#include <stdlib.h>

#include "util/num.h"

void server_init(struct server *s, struct fake *f)
{
	memset(s, 0, sizeof(*s));
	s->fake = f;
}

void server_free(struct server *s)
{
	for (size_t i = 0; i < s->count; i++) {
		buf_free(&s->items[i].key);
		buf_free(&s->items[i].value);
	}
	s->count = 0;
}

static struct server_item *find(struct server *s, struct slice key)
{
	for (size_t i = 0; i < s->count; i++) {
		if (slice_equal(buf_slice(&s->items[i].key), key))
			return &s->items[i];
	}
	return NULL;
}

struct server_item *server_find(struct server *s, struct slice key)
{
	struct server_item *item = find(s, key);

	return item && item->there ? item : NULL;
}

size_t server_items(const struct server *s)
{
	size_t count = 0;

	for (size_t i = 0; i < s->count; i++)
		count += s->items[i].there;
	return count;
}

/* As memcached takes a time to live: a long one is a date, and one below 0 has ended. */
static void give_ttl(struct server *s, struct server_item *item, int64_t exptime)
{
	enum { MONTH = 60 * 60 * 24 * 30 };

	item->ttl = exptime == 0 ? TTL_NEVER : exptime > MONTH ? exptime - s->fake->host.env.unix_time : exptime;
	item->there = exptime >= 0;
}

static struct server_item *vacant(struct server *s)
{
	size_t i = 0;

	while (i < s->count && s->items[i].there)
		i++;
	if (i == SERVER_ITEMS)
		abort();
	s->count += i == s->count;
	return &s->items[i];
}

static enum result_status store(struct server *s, const struct call *call)
{
	struct server_item *item = find(s, call->key);

	if (s->most && call->value.n > s->most)
		return RESULT_REFUSED;
	if (!item) {
		item = vacant(s);
		buf_consume(&item->key, buf_size(&item->key));
		buf_add_slice(&item->key, call->key);
	}
	buf_consume(&item->value, buf_size(&item->value));
	buf_add_slice(&item->value, call->value);
	item->flags = call->flags;
	item->cas = ++s->cas;
	give_ttl(s, item, call->exptime);
	return RESULT_DONE;
}

void server_put(struct server *s, struct slice key, struct slice value)
{
	(void)store(s, &(struct call){ .key = key, .value = value });
}

static enum result_status extend(struct server *s, struct server_item *item, const struct call *call)
{
	struct buf joined = BUF_EMPTY;
	bool front = call->verb == CALL_PREPEND;

	if (!item || (s->most && buf_size(&item->value) + call->value.n > s->most))
		return RESULT_NOT_STORED;
	buf_add_slice(&joined, front ? call->value : buf_slice(&item->value));
	buf_add_slice(&joined, front ? buf_slice(&item->value) : call->value);
	buf_free(&item->value);
	item->value = joined;
	item->cas = ++s->cas;
	return RESULT_DONE;
}

static void bring(const struct server_item *item, unsigned want, struct result *r)
{
	r->status = RESULT_HIT;
	r->flags = item->flags;
	r->ttl = want & WANT_TTL ? item->ttl : TTL_UNKNOWN;
	r->cas = want & WANT_CAS ? item->cas : 0;
	r->size = want & WANT_SIZE ? buf_size(&item->value) : 0;
	r->value = want & WANT_VALUE ? buf_slice(&item->value) : SLICE("");
}

static enum result_status compare_and_swap(struct server *s, const struct server_item *item, const struct call *call)
{
	return !item ? RESULT_MISS : item->cas != call->number ? RESULT_EXISTS : store(s, call);
}

static enum result_status count(struct server *s, struct server_item *item, const struct call *call, struct result *r)
{
	if (!item)
		return RESULT_MISS;
	if (!num_parse_u64(buf_slice(&item->value), &r->number))
		return RESULT_REFUSED;
	r->number += call->verb == CALL_INCR ? call->number : -call->number;
	buf_consume(&item->value, buf_size(&item->value));
	buf_add_u64(&item->value, r->number);
	item->cas = ++s->cas;
	return RESULT_NUMBER;
}

static enum result_status execute(struct server *s, struct server_item *item, const struct call *call, struct result *r)
{
	switch (call->verb) {
	case CALL_SET:
		return store(s, call);
	case CALL_ADD:
		return item ? RESULT_NOT_STORED : store(s, call);
	case CALL_REPLACE:
		return item ? store(s, call) : RESULT_NOT_STORED;
	case CALL_APPEND:
	case CALL_PREPEND:
		return extend(s, item, call);
	case CALL_CAS:
		return compare_and_swap(s, item, call);
	case CALL_INCR:
	case CALL_DECR:
		return count(s, item, call, r);
	default:
		break;
	}
	if (!item)
		return RESULT_MISS;
	if (call->verb == CALL_TOUCH || call->verb == CALL_GAT)
		give_ttl(s, item, call->exptime);
	else if (call->verb == CALL_DELETE)
		item->there = false;
	if (call->verb != CALL_GET && call->verb != CALL_GAT)
		return RESULT_DONE;
	bring(item, call->want, r);
	return RESULT_HIT;
}

void server_answer(struct server *s, size_t i)
{
	const struct call *call = &s->fake->calls[i].call;
	struct result r = { .line = SLICE("SERVER_ERROR object too large for cache") };

	r.status = execute(s, server_find(s, call->key), call, &r);
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
