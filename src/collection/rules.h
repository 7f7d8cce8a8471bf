/* Which keys are what kind of collection, and how events are counted: the rules of the configuration, by prefix. */
#ifndef COLLECTION_RULES_H
#define COLLECTION_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "util/slice.h"

/* What a key without any mark of its own is: it matters to compaction, which drops what a set says twice. */
enum collection_type { COLLECTION_SET, COLLECTION_LIST };

/* The buckets of an event type. */
enum granularity { GRANULARITY_DAY, GRANULARITY_HOUR, GRANULARITY_MINUTE };

/* How a collection is stored; see adopted/encoding.h. */
enum encoding_id {
	ENCODING_OPLOG,
#define ENCODING(id, name) ENCODING_##id,
#include "collection/encodings.def"
#undef ENCODING
};

struct collection_rule {
	struct slice prefix;
	enum collection_type type;
	enum encoding_id encoding;
	int64_t ttl;          /* seconds that a new collection lives, 0 for ever */
	double compact_waste; /* the part of a base that may be waste before a read has it folded */
	char delimiter;       /* between members: of csv, tombstone and paired, and of plain verbs */
	struct slice removed; /* paired: what takes the place of the prefix in the name of the item of removals */
	bool pointer;         /* flip: which list is active is said by an item of its own */
	bool plain_verbs;     /* memcached's own verbs act on the collection */
};

struct event_rule {
	struct slice prefix;
	enum granularity bucket;
	int64_t ttl;            /* seconds that a counter and an event live, 0 for ever */
	struct slice separator; /* between type, bucket and number */
	unsigned lookback;      /* buckets that `the last n` looks back */
};

struct rules {
	const struct collection_rule *collections;
	size_t collection_count;
	const struct event_rule *events;
	size_t event_count;
};

/* Of keys that no rule is about. */
extern const struct collection_rule rules_default_collection;

/* The rule with the longest prefix of `key`, or the default rule; borrowed from `rules` or static. */
const struct collection_rule *rules_find_collection(const struct rules *rules, struct slice key);
const struct event_rule *rules_event(const struct rules *rules, struct slice type);

/* The same, at once where there are no rules. */
static inline const struct collection_rule *rules_collection(const struct rules *rules, struct slice key)
{
	return rules->collection_count ? rules_find_collection(rules, key) : &rules_default_collection;
}

#endif
