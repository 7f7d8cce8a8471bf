#include "collection/rules.h"
#include "unit.h"

TEST(longest_prefix)
{
	const struct collection_rule collections[] = {
		{ .prefix = SLICE("a"), .ttl = 1 },
		{ .prefix = SLICE("abc"), .ttl = 3 },
		{ .prefix = SLICE("ab"), .ttl = 2 },
	};
	const struct rules rules = { .collections = collections, .collection_count = 3 };

	ck_assert_int_eq(rules_collection(&rules, SLICE("abcd"))->ttl, 3);
	ck_assert_int_eq(rules_collection(&rules, SLICE("abc"))->ttl, 3);
	ck_assert_int_eq(rules_collection(&rules, SLICE("abd"))->ttl, 2);
	ck_assert_int_eq(rules_collection(&rules, SLICE("a"))->ttl, 1);
	ck_assert_int_eq(rules_collection(&rules, SLICE("b"))->ttl, 0);
	ck_assert_int_eq(rules_collection(&rules, SLICE("ba"))->ttl, 0);
}

TEST(empty_prefix_is_for_all)
{
	const struct collection_rule collections[] = { { .prefix = SLICE(""), .ttl = 9 },
		{ .prefix = SLICE("a"), .ttl = 1 } };
	const struct event_rule events[] = {
		{ .prefix = SLICE(""), .ttl = 8, .separator = SLICE(".") }
	};
	const struct rules rules = { .collections = collections,
		.collection_count = 2,
		.events = events,
		.event_count = 1 };

	ck_assert_int_eq(rules_collection(&rules, SLICE("b"))->ttl, 9);
	ck_assert_int_eq(rules_collection(&rules, SLICE("ab"))->ttl, 1);
	ck_assert_int_eq(rules_event(&rules, SLICE("x"))->ttl, 8);
}

TEST(defaults)
{
	const struct event_rule events[] = {
		{ .prefix = SLICE("Router"), .bucket = GRANULARITY_DAY, .lookback = 3 }
	};
	const struct rules rules = { .events = events, .event_count = 1 };
	const struct event_rule *rule = rules_event(&rules, SLICE("Route"));

	ck_assert_int_eq(rule->bucket, GRANULARITY_HOUR);
	ck_assert_int_eq(rule->ttl, 0);
	ck_assert_uint_eq(rule->lookback, 24);
	assert_bytes(rule->separator, "::");
	ck_assert_int_eq(rules_event(&rules, SLICE("RouterError"))->bucket, GRANULARITY_DAY);
	ck_assert_int_eq(rules_collection(&rules, SLICE("anything"))->ttl, 0);
}

TEST(reserved_keys)
{
	const struct collection_rule collections[] = {
		{ .prefix = SLICE("a-"), .only = true },
		{ .prefix = SLICE("a-b-") },
		{ .prefix = SLICE("in-"), .removed = SLICE("out-"), .only = true },
		{ .prefix = SLICE("c-"), .removed = SLICE("d-") },
	};
	struct rules rules = {
		.collections = collections, .collection_count = 4, .reserves = true
	};

	ck_assert(rules_reserve(&rules, SLICE("a-x")) && rules_reserve(&rules, SLICE("a-")));
	ck_assert(!rules_reserve(&rules, SLICE("a-b-x")) && !rules_reserve(&rules, SLICE("x")));
	ck_assert(rules_reserve(&rules, SLICE("in-x")) && rules_reserve(&rules, SLICE("out-x")));
	ck_assert(!rules_reserve(&rules, SLICE("c-x")) && !rules_reserve(&rules, SLICE("d-x")));
	rules.reserves = false;
	ck_assert(!rules_reserve(&rules, SLICE("a-x")));
}

#define OTHER_WORD(value) ((value) + 1)
#define OTHER_NUMBER(value) ((value) + 1)
#define OTHER_FLAG(value) (!(value))
#define OTHER_SHARE(value) ((value) / 2)
#define OTHER_BYTE(value) ((char)((value) + 1))
#define OTHER_TEXT(value) SLICE("other")

/* A reload applies a new value of any option. */
TEST(each_option_differs)
{
	const struct rules none = { 0 };
	struct collection_rule collection = rules_default_collection;
	struct event_rule event = *rules_event(&none, SLICE(""));
	const struct rules rules = { .collections = &collection,
		.collection_count = 1,
		.events = &event,
		.event_count = 1 };
	const struct rules same = { .collections = &rules_default_collection,
		.collection_count = 1,
		.events = rules_event(&none, SLICE("")),
		.event_count = 1 };

	ck_assert(rules_same(&rules, &same));
#define COLLECTION_RULE(type, kind, name, ...) \
	collection = rules_default_collection; \
	collection.name = OTHER_##kind(collection.name); \
	ck_assert_msg(!rules_same(&rules, &same), "collection: " #name);
#include "collection/rules.def"
	collection = rules_default_collection;
#define EVENT_RULE(type, kind, name, ...) \
	event = *same.events; \
	event.name = OTHER_##kind(event.name); \
	ck_assert_msg(!rules_same(&rules, &same), "events: " #name);
#include "collection/rules.def"
}
