#include "fake.h"

#include <assert.h>

#include "util/hash.h"
#include "util/num.h"

enum { RELATIVE_MAX = 60 * 60 * 24 * 30 };

static struct fake_item *slot_of(struct fake *fake, struct slice key)
{
	size_t at = hash_slice(key, 1) % FAKE_ITEMS, seen = 0;
	struct fake_item *hole = NULL;

	/* A removed item keeps its key, so that the search goes on behind it. */
	for (; seen < FAKE_ITEMS; seen++, at = (at + 1) % FAKE_ITEMS) {
		struct fake_item *item = &fake->items[at];
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

void fake_remove(struct fake_item *item)
{
	item->used = false;
	buf_free(&item->value);
}

struct fake_item *fake_find(struct fake *fake, struct slice key, uint64_t now)
{
	struct fake_item *item = slot_of(fake, key);

	now += fake->ahead;
	if (item->used && item->expires && (int64_t)(now / 1000) >= item->expires)
		fake_remove(item);
	return item->used ? item : NULL;
}

void fake_restart(struct fake *fake)
{
	for (size_t i = 0; i < FAKE_ITEMS; i++) {
		fake_remove(&fake->items[i]);
		buf_free(&fake->items[i].key);
	}
	buf_free(&fake->stats);
	fake->next_cas = 0;
}

static int64_t expiry(int64_t exptime, uint64_t now)
{
	if (exptime == 0)
		return 0;
	if (exptime < 0)
		return 1;
	return exptime > RELATIVE_MAX ? exptime : exptime + (int64_t)(now / 1000);
}

static struct result store(struct fake *fake, const struct call *call, uint64_t now)
{
	struct fake_item *item = slot_of(fake, call->key);

	if (call->key.n + call->value.n > fake->item_max)
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
	item->cas = ++fake->next_cas;
	return (struct result){ .status = RESULT_DONE };
}

static struct result append(struct fake *fake, struct fake_item *item, const struct call *call)
{
	if (!item || buf_size(&item->value) + call->value.n > fake->item_max)
		return (struct result){ .status = RESULT_NOT_STORED };
	if (call->verb == CALL_PREPEND) {
		struct buf whole = BUF_EMPTY;
		buf_add_slice(&whole, call->value);
		buf_add_slice(&whole, buf_slice(&item->value));
		buf_free(&item->value);
		item->value = whole;
	} else {
		buf_add_slice(&item->value, call->value);
	}
	item->cas = ++fake->next_cas;
	return (struct result){ .status = RESULT_DONE };
}

static struct result get(struct fake_item *item, const struct call *call, uint64_t now)
{
	struct result r = { .status = RESULT_HIT };

	if (!item)
		return (struct result){ .status = RESULT_MISS };
	if (call->verb == CALL_GAT)
		item->expires = expiry(call->exptime, now);
	r.flags = item->flags;
	r.size = buf_size(&item->value);
	r.ttl = item->expires ? item->expires - (int64_t)(now / 1000) : TTL_NEVER;
	if (call->want & WANT_VALUE)
		r.value = buf_slice(&item->value);
	if (call->want & WANT_CAS)
		r.cas = item->cas;
	return r;
}

struct result fake_call(struct fake *fake, const struct call *call, uint64_t now)
{
	struct fake_item *item = fake_find(fake, call->key, now);

	now += fake->ahead;
	switch (call->verb) {
	case CALL_GET:
	case CALL_GAT:
		return get(item, call, now);
	case CALL_SET:
		return store(fake, call, now);
	case CALL_ADD:
		return item ? (struct result){ .status = RESULT_NOT_STORED } : store(fake, call, now);
	case CALL_APPEND:
	case CALL_PREPEND:
		return append(fake, item, call);
	case CALL_CAS:
		if (!item)
			return (struct result){ .status = RESULT_MISS };
		return item->cas != call->number ? (struct result){ .status = RESULT_EXISTS } : store(fake, call, now);
	case CALL_DELETE:
		if (item)
			fake_remove(item);
		return (struct result){ .status = item ? RESULT_DONE : RESULT_MISS };
	case CALL_TOUCH:
		if (item)
			item->expires = expiry(call->exptime, now);
		return (struct result){ .status = item ? RESULT_DONE : RESULT_MISS };
	case CALL_STATS:
		buf_consume(&fake->stats, buf_size(&fake->stats));
		buf_printf(&fake->stats, "STAT pid 1\r\nSTAT time %llu\r\n", (unsigned long long)(now / 1000));
		return (struct result){ .status = RESULT_TEXT, .value = buf_slice(&fake->stats) };
	default:
		assert(!"not simulated");
		return (struct result){ .status = RESULT_LOST };
	}
}
