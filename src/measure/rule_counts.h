/*
 * The hits and misses of each rule for sets and lists, in one worker. An entry belongs to the
 * prefix of a rule. So the counts of a rule survive a reload that keeps it, and are dropped
 * when no generation has the rule any more.
 *
 * The worker's thread counts without a lock. The lock protects the list of entries, which other
 * threads read.
 */
#ifndef MEASURE_RULE_COUNTS_H
#define MEASURE_RULE_COUNTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/queue.h>

#include "util/slice.h"

enum rule_fact {
#define RULE(name, ...) RULE_##name,
#include "measure/facts.def"
	RULE_FACTS
};

struct rule_count {
	LIST_ENTRY(rule_count) link;
	size_t users;
	atomic_uint_fast64_t values[RULE_FACTS];
	uint64_t before[RULE_FACTS]; /* Values at the last reset. */
	size_t n;
	char prefix[];
};

struct rule_counts {
	pthread_mutex_t lock;
	LIST_HEAD(, rule_count) list;
};

/* The sum over all workers. The caller frees `prefix`. */
struct rule_sum {
	char *prefix; /* In the form of escape_text(). */
	uint64_t values[RULE_FACTS];
};

void rule_counts_init(struct rule_counts *counts);
/* All entries must have been dropped. */
void rule_counts_fini(struct rule_counts *counts);

/*
 * Returns the entry of a prefix, creating it for the first user; released with
 * rule_counts_drop(). For the worker's thread.
 */
struct rule_count *rule_counts_take(struct rule_counts *counts, struct slice prefix);
void rule_counts_drop(struct rule_counts *counts, struct rule_count *entry);

/* Increments a count. There is one writer, so no atomic addition is needed. */
static inline void rule_count_add(struct rule_count *entry, enum rule_fact fact)
{
	uint64_t n = atomic_load_explicit(&entry->values[fact], memory_order_relaxed);

	atomic_store_explicit(&entry->values[fact], n + 1, memory_order_relaxed);
}

/*
 * Appends an item for each entry to a list of `*count` items, and returns the reallocated list.
 * May be called from any thread.
 */
struct rule_sum *rule_counts_copy(struct rule_counts *counts, struct rule_sum *list, size_t *count);

/*
 * Sorts the list by prefix and adds up items with the same prefix. Returns the new number of
 * items.
 */
size_t rule_counts_join(struct rule_sum *list, size_t count);

/* Resets all counts to 0. May be called from any thread. */
void rule_counts_reset(struct rule_counts *counts);

#endif
