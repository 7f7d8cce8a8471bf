#include "collection/rules.h"

#include <stdlib.h>

/* Operations on a value, by its kind. */
#define INITIAL_WORD(value) value
#define INITIAL_NUMBER(value) value
#define INITIAL_FLAG(value) value
#define INITIAL_SHARE(value) value
#define INITIAL_BYTE(value) value
#define INITIAL_TEXT(value) \
	{ \
		value, sizeof(value) - 1 \
	}

#define SAME_WORD(a, b) ((a) == (b))
#define SAME_NUMBER(a, b) ((a) == (b))
#define SAME_FLAG(a, b) ((a) == (b))
#define SAME_SHARE(a, b) ((a) == (b))
#define SAME_BYTE(a, b) ((a) == (b))
#define SAME_TEXT(a, b) slice_equal(a, b)

#define FREE_WORD(value)
#define FREE_NUMBER(value)
#define FREE_FLAG(value)
#define FREE_SHARE(value)
#define FREE_BYTE(value)
#define FREE_TEXT(value) free((char *)(value).p);

const struct collection_rule rules_default_collection = {
#define COLLECTION_RULE(type, kind, name, initial, ...) .name = INITIAL_##kind(initial),
#include "collection/rules.def"
};

static const struct event_rule default_event = {
#define EVENT_RULE(type, kind, name, initial, ...) .name = INITIAL_##kind(initial),
#include "collection/rules.def"
};

const struct collection_rule *rules_find_collection(const struct rules *rules, struct slice key)
{
	const struct collection_rule *best = &rules_default_collection;

	for (size_t i = 0; i < rules->collection_count; i++) {
		const struct collection_rule *rule = &rules->collections[i];
		if (slice_starts(key, rule->prefix) && rule->prefix.n >= best->prefix.n)
			best = rule;
	}
	return best;
}

const struct event_rule *rules_event(const struct rules *rules, struct slice type)
{
	const struct event_rule *best = &default_event;

	for (size_t i = 0; i < rules->event_count; i++) {
		const struct event_rule *rule = &rules->events[i];
		if (slice_starts(type, rule->prefix) && rule->prefix.n >= best->prefix.n)
			best = rule;
	}
	return best;
}

static int64_t fresh_for_items(const struct rules *rules, struct slice key)
{
	static const struct item_rule none;
	const struct item_rule *best = &none;

	for (size_t i = 0; i < rules->item_count; i++) {
		const struct item_rule *rule = &rules->items[i];
		if (slice_starts(key, rule->prefix) && rule->prefix.n >= best->prefix.n)
			best = rule;
	}
	return best->fresh_for;
}

uint64_t rules_fresh_for(const struct rules *rules, struct slice key, bool *plain)
{
	int64_t ms = rules_collection(rules, key)->fresh_for;

	ms = ms ? ms : rules_event(rules, key)->fresh_for;
	*plain = ms == 0;
	return (uint64_t)(ms ? ms : fresh_for_items(rules, key));
}

bool rules_reserve(const struct rules *rules, struct slice key)
{
	if (!rules->reserves)
		return false;
	if (rules_collection(rules, key)->only)
		return true;
	for (size_t i = 0; i < rules->collection_count; i++) {
		const struct collection_rule *rule = &rules->collections[i];
		if (rule->only && rule->removed.n && slice_starts(key, rule->removed))
			return true;
	}
	return false;
}

static bool same_collection(const struct collection_rule *a, const struct collection_rule *b)
{
	bool same = slice_equal(a->prefix, b->prefix);

#define COLLECTION_RULE(type, kind, name, ...) same = same && SAME_##kind(a->name, b->name);
#include "collection/rules.def"
	return same;
}

static bool same_event(const struct event_rule *a, const struct event_rule *b)
{
	bool same = slice_equal(a->prefix, b->prefix);

#define EVENT_RULE(type, kind, name, ...) same = same && SAME_##kind(a->name, b->name);
#include "collection/rules.def"
	return same;
}

static bool same_item(const struct item_rule *a, const struct item_rule *b)
{
	bool same = slice_equal(a->prefix, b->prefix);

#define ITEM_RULE(type, kind, name, ...) same = same && SAME_##kind(a->name, b->name);
#include "collection/rules.def"
	return same;
}

bool rules_same(const struct rules *a, const struct rules *b)
{
	bool same = a->collection_count == b->collection_count &&
		a->event_count == b->event_count && a->item_count == b->item_count &&
		slice_equal(a->commands.prefix, b->commands.prefix) &&
		a->commands.delimiter == b->commands.delimiter;

	for (size_t i = 0; same && i < a->collection_count; i++)
		same = same_collection(&a->collections[i], &b->collections[i]);
	for (size_t i = 0; same && i < a->event_count; i++)
		same = same_event(&a->events[i], &b->events[i]);
	for (size_t i = 0; same && i < a->item_count; i++)
		same = same_item(&a->items[i], &b->items[i]);
	return same;
}

static void free_collection(const struct collection_rule *rule)
{
	free((char *)rule->prefix.p);
#define COLLECTION_RULE(type, kind, name, ...) FREE_##kind(rule->name)
#include "collection/rules.def"
}

static void free_event(const struct event_rule *rule)
{
	free((char *)rule->prefix.p);
#define EVENT_RULE(type, kind, name, ...) FREE_##kind(rule->name)
#include "collection/rules.def"
}

static void free_item(const struct item_rule *rule)
{
	free((char *)rule->prefix.p);
#define ITEM_RULE(type, kind, name, ...) FREE_##kind(rule->name)
#include "collection/rules.def"
}

void rules_free(struct rules *rules)
{
	for (size_t i = 0; i < rules->collection_count; i++)
		free_collection(&rules->collections[i]);
	for (size_t i = 0; i < rules->event_count; i++)
		free_event(&rules->events[i]);
	for (size_t i = 0; i < rules->item_count; i++)
		free_item(&rules->items[i]);
	free((void *)rules->collections);
	free((void *)rules->events);
	free((void *)rules->items);
}
