/*
 * The rules of the configuration: how collections are stored, events are counted and items are
 * read, by key prefix.
 */
#ifndef COLLECTION_RULES_H
#define COLLECTION_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/command.h"
#include "protocol/command_key.h"
#include "util/slice.h"

/*
 * The type of a collection whose base has no mark. Compaction drops repeated members of a set,
 * and keeps repeated elements of a list.
 */
enum collection_type { COLLECTION_SET, COLLECTION_LIST };

/* The length of an event counter's time bucket. */
enum granularity { GRANULARITY_DAY, GRANULARITY_HOUR, GRANULARITY_MINUTE };

/* The encoding of a collection; see adopted/encoding.h. */
enum encoding_id {
	ENCODING_OPLOG,
#define ENCODING(id, name) ENCODING_##id,
#include "collection/encodings.def"
#undef ENCODING
};

/* The end at which a list with a maximum has its newest element. */
enum newest { NEWEST_LAST, NEWEST_FIRST };

/*
 * A rule; rules.def lists its options. All zeroes are a valid rule; a `spread` or `copies` of 0
 * counts as 1.
 */
struct collection_rule {
	struct slice prefix;
#define COLLECTION_RULE(type, kind, name, ...) type name;
#include "collection/rules.def"
};

struct event_rule {
	struct slice prefix;
#define EVENT_RULE(type, kind, name, ...) type name;
#include "collection/rules.def"
};

struct item_rule {
	struct slice prefix;
#define ITEM_RULE(type, kind, name, ...) type name;
#include "collection/rules.def"
};

struct rules {
	const struct collection_rule *collections;
	size_t collection_count;
	const struct event_rule *events;
	size_t event_count;
	const struct item_rule *items;
	size_t item_count;
	struct command_keys commands;
	bool plain_events; /* at least one rule for events has plain_verbs */
	bool reserves;     /* at least one rule for collections has `only` */
	bool fresh;        /* at least one rule has fresh_for */
	bool copies;       /* at least one rule has `copies` = 2 */
};

/* The rule of a key that no prefix matches. */
extern const struct collection_rule rules_default_collection;

/*
 * Returns the rule with the longest matching prefix, or the default rule. Borrowed from
 * `rules`, or static.
 */
const struct collection_rule *rules_find_collection(const struct rules *rules, struct slice key);
const struct event_rule *rules_event(const struct rules *rules, struct slice type);

/*
 * Returns whether a rule with `only` reserves the key for sets and lists. Plain writes of such
 * a key are rejected, and so are sets and lists under all other keys. The keys under which such
 * a rule stores removals are reserved too.
 */
bool rules_reserve(const struct rules *rules, struct slice key);

/*
 * Returns `fresh_for` of the key: of its rule for collections, or if that has none, of its rule
 * for events, or if that has none either, of its rule for items. `plain` is set in the last case,
 * where the key is never that of a set or list in use.
 */
uint64_t rules_fresh_for(const struct rules *rules, struct slice key, bool *plain);

/* Returns whether both hold the same rules in the same order. */
bool rules_same(const struct rules *a, const struct rules *b);

/*
 * Frees the rules for collections, events and items, and their strings. All of them must have been
 * allocated with malloc.
 */
void rules_free(struct rules *rules);

/* The same as rules_find_collection, with a fast path for a configuration without rules. */
static inline const struct collection_rule *rules_collection(
	const struct rules *rules, struct slice key)
{
	return rules->collection_count ? rules_find_collection(rules, key)
				       : &rules_default_collection;
}

/*
 * rules_second_size returns how much longer the keys of second copies are; 0 if there are none.
 * rules_key_max returns the maximum size of the key of a set or list.
 */
static inline size_t rules_second_size(unsigned copies)
{
	return copies > 1 ? SECOND_KEY_SIZE : 0;
}

static inline size_t rules_key_max(unsigned copies)
{
	return COLLECTION_KEY_MAX - rules_second_size(copies);
}

/* Returns how many servers following that of the base may store new parts of a collection. */
static inline unsigned rules_behind(const struct collection_rule *rule)
{
	return rule->spread > 1 ? rule->spread - 1 : 0;
}

#endif
