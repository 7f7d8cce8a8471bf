/*
 * The hits and misses of each rule for sets and lists, in one worker. An entry belongs to the prefix of a rule. So a rule that a reload
 * keeps goes on counting, and a rule that no generation has any more is gone with its counts.
 *
 * The worker's thread counts without a lock. The lock is for the list of entries, which other threads read.
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
	uint64_t before[RULE_FACTS]; /* as they were at the last reset */
	size_t n;
	char prefix[];
};

struct rule_counts {
	pthread_mutex_t lock;
	LIST_HEAD(, rule_count) list;
};

/* The sum over workers. The caller frees `prefix`. */
struct rule_sum {
	char *prefix; /* as escape_text writes it */
	uint64_t values[RULE_FACTS];
};

void rule_counts_init(struct rule_counts *counts);
/* All entries must have been dropped. */
void rule_counts_fini(struct rule_counts *counts);

/* Gives the entry of a prefix, to be dropped. The first user makes it. From the worker's thread. */
struct rule_count *rule_counts_take(struct rule_counts *counts, struct slice prefix);
void rule_counts_drop(struct rule_counts *counts, struct rule_count *entry);

/* There is one writer, so no atomic addition is needed. */
static inline void rule_count_add(struct rule_count *entry, enum rule_fact fact)
{
	uint64_t n = atomic_load_explicit(&entry->values[fact], memory_order_relaxed);

	atomic_store_explicit(&entry->values[fact], n + 1, memory_order_relaxed);
}

/* Appends an item for each entry to a list of `*count` items. From any thread. */
struct rule_sum *rule_counts_copy(struct rule_counts *counts, struct rule_sum *list, size_t *count);

/* Sorts the list by prefix, and adds up the items of one prefix. Gives their number now. */
size_t rule_counts_join(struct rule_sum *list, size_t count);

/* Counts from 0 again. From any thread. */
void rule_counts_reset(struct rule_counts *counts);

#endif
