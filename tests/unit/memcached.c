#include "memcached.h"

#include <assert.h>

#include "util/alloc.h"
#include "util/hash.h"
#include "util/num.h"

enum { RELATIVE_MAX = 60 * 60 * 24 * 30 };

static struct memcached_item *slot_of(struct memcached *m, struct slice key)
{
	size_t at = hash_slice(key, 1) % MEMCACHED_ITEMS, seen = 0;
	struct memcached_item *hole = NULL;

	/* A removed item keeps its key, so that the search continues after it. */
	for (; seen < MEMCACHED_ITEMS; seen++, at = (at + 1) % MEMCACHED_ITEMS) {
		struct memcached_item *item = &m->items[at];
		if (item->used && slice_equal(buf_slice(&item->key), key))
			return item;
		if (!item->used && !hole)
			hole = item;
		if (!item->used && buf_size(&item->key) == 0 && seen > 16)
			break;
	}
	assert(hole);
	return hole;
}

void memcached_remove(struct memcached_item *item)
{
	item->used = false;
	buf_free(&item->value);
}

struct memcached_item *memcached_find(struct memcached *m, struct slice key, uint64_t now)
{
	struct memcached_item *item = slot_of(m, key);

	now += m->ahead;
	if (item->used && item->expires && (int64_t)(now / 1000) >= item->expires)
		memcached_remove(item);
	return item->used ? item : NULL;
}

void memcached_restart(struct memcached *m)
{
	for (size_t i = 0; i < MEMCACHED_ITEMS; i++) {
		memcached_remove(&m->items[i]);
		buf_free(&m->items[i].key);
	}
	buf_free(&m->stats);
	m->cas = 0;
}

/* Like memcached's times to live: a long one is a date, and a negative one has expired. */
static int64_t expiry(int64_t exptime, uint64_t now)
{
	return exptime <= 0 || exptime > RELATIVE_MAX ? exptime : exptime + (int64_t)(now / 1000);
}

static bool is_too_large(const struct memcached *m, size_t size)
{
	return m->item_max && size > m->item_max;
}

static struct result store(struct memcached *m, const struct call *call, uint64_t now)
{
	struct memcached_item *item = slot_of(m, call->key);

	if (is_too_large(m, call->key.n + call->value.n))
		return (struct result){ .status = RESULT_REFUSED,
			.line = SLICE("SERVER_ERROR object too large for cache") };
	if (!item->used) {
		buf_free(&item->key);
		buf_add_slice(&item->key, call->key);
		item->used = true;
	}
	buf_consume(&item->value, buf_size(&item->value));
	buf_add_slice(&item->value, call->value);
	item->flags = call->flags;
	item->expires = expiry(call->exptime, now);
	item->cas = ++m->cas;
	return (struct result){ .status = RESULT_DONE };
}

static enum result_status append(
	struct memcached *m, struct memcached_item *item, const struct call *call)
{
	if (!item || is_too_large(m, buf_size(&item->value) + call->value.n))
		return RESULT_NOT_STORED;
	if (call->verb == CALL_PREPEND) {
		struct buf whole = BUF_EMPTY;
		buf_add_slice(&whole, call->value);
		buf_add_slice(&whole, buf_slice(&item->value));
		buf_free(&item->value);
		item->value = whole;
	} else {
		buf_add_slice(&item->value, call->value);
	}
	item->cas = ++m->cas;
	return RESULT_DONE;
}

static struct result get(const struct memcached_item *item, unsigned want, uint64_t now)
{
	struct result r = { .status = RESULT_HIT, .flags = item->flags, .ttl = TTL_UNKNOWN };

	if (want & WANT_SIZE)
		r.size = buf_size(&item->value);
	if (want & WANT_TTL)
		r.ttl = item->expires ? item->expires - (int64_t)(now / 1000) : TTL_NEVER;
	if (want & WANT_VALUE)
		r.value = buf_slice(&item->value);
	if (want & WANT_CAS)
		r.cas = item->cas;
	return r;
}

static struct result count(
	struct memcached *m, struct memcached_item *item, const struct call *call)
{
	struct result r = { .status = RESULT_NUMBER };

	if (!num_parse_u64(buf_slice(&item->value), &r.number))
		return (struct result){ .status = RESULT_REFUSED,
			.line = SLICE(
				"CLIENT_ERROR cannot increment or decrement non-numeric value") };
	if (call->verb == CALL_INCR)
		r.number += call->number;
	else
		r.number -= call->number < r.number ? call->number : r.number;
	buf_consume(&item->value, buf_size(&item->value));
	buf_add_u64(&item->value, r.number);
	item->cas = ++m->cas;
	return r;
}

static struct result clock_of(struct memcached *m, uint64_t now)
{
	buf_consume(&m->stats, buf_size(&m->stats));
	buf_printf(&m->stats, "STAT pid 1\r\nSTAT time %llu\r\n", (unsigned long long)(now / 1000));
	return (struct result){ .status = RESULT_TEXT, .value = buf_slice(&m->stats) };
}

/* A call on an item that is there. */
static struct result change(
	struct memcached *m, struct memcached_item *item, const struct call *call, uint64_t now)
{
	struct result done = { .status = RESULT_DONE };

	switch (call->verb) {
	case CALL_CAS:
		return item->cas == call->number ? store(m, call, now)
						 : (struct result){ .status = RESULT_EXISTS };
	case CALL_INCR:
	case CALL_DECR:
		return count(m, item, call);
	case CALL_DELETE:
		memcached_remove(item);
		return done;
	case CALL_GAT:
	case CALL_TOUCH:
		item->expires = expiry(call->exptime, now);
		return call->verb == CALL_GAT ? get(item, call->want, now) : done;
	default:
		assert(call->verb == CALL_GET);
		return get(item, call->want, now);
	}
}

struct result memcached_call(struct memcached *m, const struct call *call, uint64_t now)
{
	struct memcached_item *item = memcached_find(m, call->key, now);

	assert(call->verb <= CALL_TOUCH || call->verb == CALL_STATS);
	now += m->ahead;
	switch (call->verb) {
	case CALL_SET:
		return store(m, call, now);
	case CALL_ADD:
	case CALL_REPLACE:
		return !item == (call->verb == CALL_ADD)
			? store(m, call, now)
			: (struct result){ .status = RESULT_NOT_STORED };
	case CALL_APPEND:
	case CALL_PREPEND:
		return (struct result){ .status = append(m, item, call) };
	case CALL_STATS:
		return clock_of(m, now);
	default:
		return item ? change(m, item, call, now) : (struct result){ .status = RESULT_MISS };
	}
}

static void copy_to(char **at, struct slice *s)
{
	if (s->n)
		memcpy(*at, s->p, s->n);
	s->p = *at;
	*at += s->n;
}

char *memcached_keep_call(struct call *call)
{
	char *bytes = xmalloc(call->key.n + call->value.n + call->line.n), *at = bytes;

	copy_to(&at, &call->key);
	copy_to(&at, &call->value);
	copy_to(&at, &call->line);
	return bytes;
}
