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
