#include "collection/rules.h"

const struct collection_rule rules_default_collection = { .compact_waste = 0.5, .delimiter = ',' };
static const struct event_rule default_event = {
	.bucket = GRANULARITY_HOUR,
	.separator = { "::", 2 },
	.lookback = 24,
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
	return slice_equal(a->prefix, b->prefix) && a->type == b->type && a->encoding == b->encoding &&
		a->ttl == b->ttl && a->compact_waste == b->compact_waste && a->delimiter == b->delimiter &&
		slice_equal(a->removed, b->removed) && a->pointer == b->pointer && a->plain_verbs == b->plain_verbs &&
		a->only == b->only && a->behind == b->behind && a->max == b->max && a->newest_first == b->newest_first;
}

static bool same_event(const struct event_rule *a, const struct event_rule *b)
{
	return slice_equal(a->prefix, b->prefix) && a->bucket == b->bucket && a->ttl == b->ttl &&
		slice_equal(a->separator, b->separator) && a->lookback == b->lookback &&
		a->plain_verbs == b->plain_verbs;
}

bool rules_same(const struct rules *a, const struct rules *b)
{
	bool same = a->collection_count == b->collection_count && a->event_count == b->event_count &&
		slice_equal(a->commands.prefix, b->commands.prefix) && a->commands.delimiter == b->commands.delimiter;

	for (size_t i = 0; same && i < a->collection_count; i++)
		same = same_collection(&a->collections[i], &b->collections[i]);
	for (size_t i = 0; same && i < a->event_count; i++)
		same = same_event(&a->events[i], &b->events[i]);
	return same;
}
