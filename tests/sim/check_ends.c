/*
 * Times to live. Set 0 is made to end at a date, set 1 after so many seconds, both far away; what is rewritten keeps that end,
 * and no item ends before the base. To touch set 2 is everybody's right, so of its end nothing is known.
 *
 * Whoever gives a base its end anew does so by what was left of it a moment ago. So it may come a little later, the more so
 * when time went by meanwhile, but never earlier.
 */
#include "stored_set.h"
#include "world.h"

enum { DATE = 3000000, SECONDS = 1000000, NEAR = 5 };

#define RULE(name, seconds) \
	{ \
		.prefix = { name, 2 }, .ttl = (seconds), .compact_waste = 0.5, .delimiter = ',' \
	}

void ends_init(struct world *w)
{
	static const struct collection_rule rules[] = { RULE("s0", DATE), RULE("s1", SECONDS) };

	w->rules = (struct rules){ .collections = rules, .collection_count = sizeof(rules) / sizeof(*rules) };
}

static void check_item(struct world *w, int key, struct slice name, bool is_base)
{
	const struct end *end = &w->ends[key];
	const struct fake_item *item = world_find(w, name);
	int64_t passed = (int64_t)(w->now / 1000) - end->made;

	if (!item)
		return;
	if (item->expires && item->expires < end->expires - NEAR)
		world_fail(w, "an item ends too early", "%.*s ends %lld, not %lld", (int)name.n, name.p,
			(long long)item->expires, (long long)end->expires);
	if (is_base && (!item->expires || item->expires > end->expires + 2 * passed + NEAR))
		world_fail(w, "a base ends too late", "%.*s ends %lld, not %lld", (int)name.n, name.p,
			(long long)item->expires, (long long)end->expires);
}

void ends_executed(struct world *w, const struct call *call)
{
	struct fake_item *base = world_find(w, slice_of(call->key.p, SIM_KEY_SIZE));
	int key = call->key.p[1] - '0';
	struct buf items = BUF_EMPTY;
	struct slice rest, item;

	if (key >= SIM_ENDS || !base || !(call_stores(call->verb) || call->exptime))
		return;
	if (call->verb == CALL_ADD && call->key.n == SIM_KEY_SIZE)
		w->ends[key] = (struct end){ .expires = base->expires, .made = (int64_t)(w->now / 1000) };
	check_item(w, key, slice_of(call->key.p, SIM_KEY_SIZE), true);
	stored_set_items(w, key, &items);
	rest = buf_slice(&items);
	while ((item = slice_token(&rest)).n)
		check_item(w, key, item, false);
	buf_free(&items);
}
