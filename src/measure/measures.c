#include "measure/measures.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util/alloc.h"
#include "worker/worker.h"

static uint64_t now_ms(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* --- latencies --- */

void latency_collect(struct daemon *d, unsigned class, struct histogram_sum *sum)
{
	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->threads; i++)
		histogram_sum(&d->workers[i]->meter.latency.classes[class], sum);
	pthread_mutex_unlock(&d->lock);
}

void latency_collect_server(struct daemon *d, const char *server, struct histogram_sum *sum)
{
	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->threads; i++) {
		const struct servers *servers = d->workers[i]->current->servers;
		for (int j = 0; j < servers_count(servers); j++) {
			const struct server *s = servers_get(servers, j);
			if (strcmp(s->name, server) == 0)
				histogram_sum(&s->stats.latency, sum);
		}
	}
	pthread_mutex_unlock(&d->lock);
}

const char *latency_class_name(unsigned class)
{
	static const char *const names[COUNTERS] = {
#define COUNTER(name) #name,
#include "measure/counters.def"
#undef COUNTER
	};

	return names[class] + strlen("cmd_");
}

/* --- hot keys --- */

size_t hotkeys_collect(struct daemon *d, enum hotkeys_by by, struct hot_key *out, size_t n, struct hot_keys_sum *sum)
{
	struct topk_entry *all = xmalloc(d->threads * TOPK_ENTRIES * sizeof(*all));
	uint64_t now = now_ms(CLOCK_MONOTONIC);
	size_t count = 0;

	*sum = (struct hot_keys_sum){ .seconds = hotkeys_seconds(&d->workers[0]->meter.hotkeys, now) };
	for (size_t i = 0; i < d->threads; i++)
		count += hotkeys_copy(&d->workers[i]->meter.hotkeys, by, now, all + count, &sum->total);
	sum->total *= TOPK_SAMPLE;
	count = topk_merge(all, count);
	count = count < n ? count : n;
	for (size_t i = 0; i < count; i++) {
		out[i] = (struct hot_key){ .weight = all[i].weight * TOPK_SAMPLE, .n = all[i].n };
		memcpy(out[i].key, all[i].key, all[i].n);
	}
	free(all);
	return count;
}

/* --- large sets and lists --- */

size_t largest_collect(struct daemon *d, struct large_collection *out, size_t n)
{
	struct large_collection *all = xmalloc(d->threads * LARGEST_ENTRIES * sizeof(*all));
	int64_t now = (int64_t)(now_ms(CLOCK_REALTIME) / 1000);
	size_t count = 0;

	for (size_t i = 0; i < d->threads; i++)
		count += largest_copy(&d->workers[i]->meter.largest, now, all + count);
	count = largest_merge(all, count);
	count = count < n ? count : n;
	memcpy(out, all, count * sizeof(*out));
	free(all);
	return count;
}

/* --- slow requests --- */

static int newest_first(const void *left, const void *right)
{
	const struct slow_request *a = left, *b = right;

	return (a->time < b->time) - (a->time > b->time);
}

size_t slow_collect(struct daemon *d, struct slow_request *out, size_t n, uint64_t *count)
{
	struct slow_request *all = xmalloc(d->threads * SLOW_REQUESTS * sizeof(*all));
	size_t found = 0;

	*count = 0;
	for (size_t i = 0; i < d->threads; i++)
		found += slow_copy(&d->workers[i]->meter.slow, all + found, count);
	qsort(all, found, sizeof(*all), newest_first);
	found = found < n ? found : n;
	memcpy(out, all, found * sizeof(*out));
	free(all);
	return found;
}

/* --- all of them --- */

void measures_reset_slow(struct daemon *d)
{
	for (size_t i = 0; i < d->threads; i++)
		slow_reset(&d->workers[i]->meter.slow);
}

void measures_reset(struct daemon *d)
{
	uint64_t now = now_ms(CLOCK_MONOTONIC);

	measures_reset_slow(d);
	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->threads; i++) {
		for (unsigned class = 0; class < LATENCY_CLASSES; class ++)
			histogram_reset(&d->workers[i]->meter.latency.classes[class]);
		servers_reset_latencies(d->workers[i]->current->servers);
	}
	pthread_mutex_unlock(&d->lock);
	for (size_t i = 0; i < d->threads; i++) {
		hotkeys_reset(&d->workers[i]->meter.hotkeys, now);
		largest_reset(&d->workers[i]->meter.largest);
	}
}
