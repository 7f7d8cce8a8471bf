/* The rules of the configuration: by prefix of the key, how collections are stored and how events are counted. */
#ifndef COLLECTION_RULES_H
#define COLLECTION_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/command_key.h"
#include "util/slice.h"

/*
 * The type of a collection whose base has no mark. Compaction drops repeated members of a set, and keeps repeated
 * elements of a list.
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

struct collection_rule {
	struct slice prefix;
	enum collection_type type;
	enum encoding_id encoding;
	int64_t ttl;          /* seconds to live of a new collection, 0 for ever */
	double compact_waste; /* the fraction of a log that may be redundant before a read requests compaction */
	char delimiter;       /* the separator of members in csv, tombstone and paired, and in plain commands */
	struct slice removed; /* paired: replaces `prefix` in the key of the item that holds removals */
	bool pointer;         /* flip: a separate item names the active list */
	bool plain_verbs;     /* plain commands act on the collection */
	bool only;            /* the keys are reserved for sets and lists: rules_reserve */
	unsigned behind;      /* new parts of oplog are put on the server of the base, and on so many behind it */
	int64_t max;          /* elements of a list: its newest are kept, 0 for all */
	bool newest_first;    /* the newest element is the first one, not the last */
};

struct event_rule {
	struct slice prefix;
	enum granularity bucket;
	int64_t ttl;            /* seconds to live of a counter and an event, 0 for ever */
	struct slice separator; /* the separator of type, bucket and number in keys */
	unsigned lookback;      /* buckets that a query for the last events searches */
	bool plain_verbs;       /* plain commands count events, and store them */
};

struct rules {
	const struct collection_rule *collections;
	size_t collection_count;
	const struct event_rule *events;
	size_t event_count;
	struct command_keys commands;
	bool plain_events; /* any rule for events has plain_verbs */
	bool reserves;     /* any rule for collections has `only` */
};

/* The rule of a key that matches no prefix. */
extern const struct collection_rule rules_default_collection;

/* The rule with the longest matching prefix, or the default rule. Borrowed from `rules`, or static. */
const struct collection_rule *rules_find_collection(const struct rules *rules, struct slice key);
const struct event_rule *rules_event(const struct rules *rules, struct slice type);

/*
 * Whether a rule with `only` reserves the key for sets and lists. Plain writes of such a key are refused, and so are sets and lists
 * under all other keys. The keys in which such a rule stores removals are reserved too.
 */
bool rules_reserve(const struct rules *rules, struct slice key);

/* Whether both hold the same rules, in the same order. */
bool rules_same(const struct rules *a, const struct rules *b);

/* rules_find_collection, inline for a configuration without rules. */
static inline const struct collection_rule *rules_collection(const struct rules *rules, struct slice key)
{
	return rules->collection_count ? rules_find_collection(rules, key) : &rules_default_collection;
}

#endif
