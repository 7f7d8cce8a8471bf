#include "measure/rule_counts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "util/alloc.h"
#include "util/escape.h"

void rule_counts_init(struct rule_counts *counts)
{
	pthread_mutex_init(&counts->lock, NULL);
	LIST_INIT(&counts->list);
}

void rule_counts_fini(struct rule_counts *counts)
{
	assert(LIST_EMPTY(&counts->list));
	pthread_mutex_destroy(&counts->lock);
}

static struct rule_count *find_rule_count(const struct rule_counts *counts, struct slice prefix)
{
	struct rule_count *entry;

	LIST_FOREACH(entry, &counts->list, link) {
		if (slice_equal(slice_of(entry->prefix, entry->n), prefix))
			return entry;
	}
	return NULL;
}

struct rule_count *rule_counts_take(struct rule_counts *counts, struct slice prefix)
{
	struct rule_count *entry = find_rule_count(counts, prefix);

	if (!entry) {
		entry = xcalloc(1, sizeof(*entry) + prefix.n);
		entry->n = prefix.n;
		slice_write(entry->prefix, prefix);
		pthread_mutex_lock(&counts->lock);
		LIST_INSERT_HEAD(&counts->list, entry, link);
		pthread_mutex_unlock(&counts->lock);
	}
	entry->users++;
	return entry;
}

void rule_counts_drop(struct rule_counts *counts, struct rule_count *entry)
{
	if (--entry->users > 0)
		return;
	pthread_mutex_lock(&counts->lock);
	LIST_REMOVE(entry, link);
	pthread_mutex_unlock(&counts->lock);
	free(entry);
}

struct rule_sum *rule_counts_copy(struct rule_counts *counts, struct rule_sum *list, size_t *count)
{
	const struct rule_count *entry;

	pthread_mutex_lock(&counts->lock);
	LIST_FOREACH(entry, &counts->list, link) {
		struct rule_sum *sum;
		list = xrealloc(list, (*count + 1) * sizeof(*list));
		sum = &list[(*count)++];
		sum->prefix = xmalloc(ESCAPE_SIZE(entry->n));
		escape_text(sum->prefix, slice_of(entry->prefix, entry->n), entry->n);
		for (int i = 0; i < RULE_FACTS; i++)
			sum->values[i] = atomic_load(&entry->values[i]) - entry->before[i];
	}
	pthread_mutex_unlock(&counts->lock);
	return list;
}

static int rule_counts_by_prefix(const void *left, const void *right)
{
	const struct rule_sum *a = left, *b = right;

	return strcmp(a->prefix, b->prefix);
}

size_t rule_counts_join(struct rule_sum *list, size_t count)
{
	size_t n = 0;

	if (count)
		qsort(list, count, sizeof(*list), rule_counts_by_prefix);
	for (size_t i = 0; i < count; i++) {
		if (n == 0 || strcmp(list[n - 1].prefix, list[i].prefix) != 0) {
			list[n++] = list[i];
			continue;
		}
		for (int k = 0; k < RULE_FACTS; k++)
			list[n - 1].values[k] += list[i].values[k];
		free(list[i].prefix);
	}
	return n;
}

void rule_counts_reset(struct rule_counts *counts)
{
	struct rule_count *entry;

	pthread_mutex_lock(&counts->lock);
	LIST_FOREACH(entry, &counts->list, link) {
		for (int i = 0; i < RULE_FACTS; i++)
			entry->before[i] = atomic_load(&entry->values[i]);
	}
	pthread_mutex_unlock(&counts->lock);
}
