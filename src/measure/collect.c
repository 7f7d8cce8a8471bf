#include "measure/collect.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "upstream/names.h"
#include "upstream/news.h"
#include "upstream/servers.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/linux.h"
#include "util/log.h"

enum { SHOWN = 20 /* maximum number of hot keys, and of large sets and lists */ };

/* --- counters --- */

void collect_counters(struct daemon *d, uint64_t values[static COUNTERS])
{
	memset(values, 0, COUNTERS * sizeof(values[0]));
	pthread_mutex_lock(&d->lock);
	for (size_t w = 0; w < d->threads; w++) {
		for (enum counter i = 0; i < COUNTERS; i++)
			values[i] += meter_get(d->meters[w], i) - d->meters[w]->counters_before[i];
	}
	pthread_mutex_unlock(&d->lock);
}

/* --- servers --- */

/* Returns the same server of another worker. It has the same index, except during a reload. */
static const struct server *counterpart(const struct servers *servers, const char *name, int index)
{
	const struct server *other =
		index < servers_count(servers) ? servers_get(servers, index) : NULL;

	if (other && strcmp(other->name, name) == 0)
		return other;
	for (int i = 0; i < servers_count(servers); i++) {
		other = servers_get(servers, i);
		if (strcmp(other->name, name) == 0)
			return other;
	}
	return NULL;
}

static bool is_up(const struct server *server)
{
	return atomic_load(&server->stats.state) == SERVER_UP;
}

/*
 * Stores in `sum` why a server is down. Returns for how many seconds it has been; 0 if it is
 * not down.
 */
static uint64_t down_seconds(const struct server *server, struct server_sum *sum)
{
	struct news_outage outage;
	uint64_t now = clock_us(CLOCK_MONOTONIC) / 1000;

	_Static_assert(sizeof(sum->why) == sizeof(outage.why), "reasons have one size");
	if (!news_outage(server->told.news, &outage))
		return 0;
	memcpy(sum->why, outage.why, sizeof(sum->why));
	return now > outage.since ? (now - outage.since) / 1000 : 0;
}

/* Returns by how many seconds the server's clock differs from that of this machine. */
static uint64_t clock_difference(const struct server *server)
{
	return server_clock_difference(atomic_load(&server->stats.clock_offset),
		clock_us(CLOCK_MONOTONIC) / 1000, (int64_t)(clock_us(CLOCK_REALTIME) / 1000));
}

/* Requires daemon.lock. */
static void sum_server(
	const struct daemon *d, const struct server *server, int index, struct server_sum *sum)
{
	unsigned version = atomic_load(&server->stats.version), up = 0;
	bool absent = false;
	uint64_t down = down_seconds(server, sum);

	_Static_assert(sizeof(sum->name) == sizeof(server->name), "names of servers have one size");
	memcpy(sum->name, server->name, sizeof(sum->name));
	snprintf(sum->host, sizeof(sum->host), "%s", server->where.name ? server->where.name : "");
	for (size_t i = 0; i < d->threads; i++) {
		const struct server *other =
			counterpart(d->meters[i]->servers, server->name, index);
		if (!other)
			continue;
		up += is_up(other);
		absent |= atomic_load(&other->stats.absent);
		histogram_sum(&other->stats.latency, &sum->latency);
#define SERVER(name, ...) sum->values[SERVER_FACT_##name] += atomic_load(&other->stats.name);
#include "measure/facts.def"
	}
#define SEEN(name, form, metric, help, value) sum->values[SERVER_FACT_##name] = value;
#include "measure/facts.def"
}

struct server_sum *collect_servers(struct daemon *d, const struct meter *from, size_t *count)
{
	struct server_sum *list;

	pthread_mutex_lock(&d->lock);
	*count = (size_t)servers_count(from->servers);
	list = xcalloc(*count, sizeof(*list));
	for (size_t i = 0; i < *count; i++)
		sum_server(d, servers_get(from->servers, (int)i), (int)i, &list[i]);
	pthread_mutex_unlock(&d->lock);
	return list;
}

struct servers_seen collect_seen(struct daemon *d)
{
	struct servers_seen seen = { .any_up = false };

	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->threads; i++) {
		const struct servers *servers = d->meters[i]->servers;
		for (int j = 0; j < servers_count(servers); j++) {
			const struct server *server = servers_get(servers, j);
			unsigned version = atomic_load(&server->stats.version);
			seen.any_up |= is_up(server);
			if (version && (!seen.oldest || version < seen.oldest))
				seen.oldest = version;
		}
	}
	pthread_mutex_unlock(&d->lock);
	return seen;
}

unsigned collect_version(struct daemon *d)
{
	/* The first version with all commands that setlistd passes on. */
	const unsigned first = 1u << 16 | 6u << 8;
	unsigned oldest = collect_seen(d).oldest;

	return oldest ? oldest : first;
}

/* --- the daemon: functions for the expressions in facts.def --- */

/* Returns a field of the meter that is protected by daemon.lock. */
static uint64_t locked(struct daemon *d, const uint64_t *field)
{
	uint64_t value;

	pthread_mutex_lock(&d->lock);
	value = *field;
	pthread_mutex_unlock(&d->lock);
	return value;
}

static uint64_t count_slow(struct daemon *d)
{
	uint64_t count = 0;

	for (size_t i = 0; i < d->threads; i++) {
		struct notes *notes = &d->meters[i]->notes;
		pthread_mutex_lock(&notes->lock);
		count += notes->slow_count;
		pthread_mutex_unlock(&notes->lock);
	}
	return count;
}

enum memory { VIRTUAL, RESIDENT };

/* Returns the memory of the process in bytes; 0 if it is not known. */
static uint64_t process_memory(enum memory which)
{
	FILE *file = fopen(LINUX_MEMORY, "r");
	uint64_t pages[2] = { 0 };

	if (!file || fscanf(file, "%" SCNu64 " %" SCNu64, &pages[VIRTUAL], &pages[RESIDENT]) != 2)
		pages[which] = 0;
	if (file)
		fclose(file);
	return pages[which] * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t count_descriptors(const struct daemon *d)
{
	const struct dirent *entry;
	uint64_t count = 0;

	if (!d->descriptors)
		return FACT_UNKNOWN;
	rewinddir(d->descriptors);
	while ((entry = readdir(d->descriptors)))
		count += entry->d_name[0] != '.';
	return count;
}

static uint64_t descriptors_max(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : FACT_UNKNOWN;
}

enum cpu { USER, SYSTEM };

/* Returns the CPU time of the process so far, in microseconds. */
static uint64_t cpu_us(enum cpu which)
{
	struct rusage usage;
	struct timeval time;

	if (getrusage(RUSAGE_SELF, &usage) != 0)
		return 0;
	time = which == USER ? usage.ru_utime : usage.ru_stime;
	return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

/* Reads only the values that are printed, since some need system calls. */
void collect_daemon(struct daemon *d, const struct meter *from, enum format format,
	const char *obstacle, uint64_t values[static DAEMON_FACTS])
{
#define DAEMON(stats, json, form, metric, type, help, value) \
	{ \
		const char *names[FORMATS] = { stats, json, metric }; \
		*values++ = *names[format] ? (uint64_t)(value) : 0; \
	}
#include "measure/facts.def"
}

void collect_sums(struct daemon *d, struct sums *sums)
{
	pthread_mutex_lock(&d->lock);
	*sums = d->meters[0]->sums;
	for (size_t i = 1; i < d->threads; i++) {
		if (d->meters[i]->sums.at > sums->at)
			*sums = d->meters[i]->sums;
	}
	pthread_mutex_unlock(&d->lock);
}

struct rule_sum *collect_rules(struct daemon *d, size_t *count)
{
	struct rule_sum *list = NULL;

	*count = 0;
	for (size_t i = 0; i < d->threads; i++)
		list = rule_counts_copy(&d->meters[i]->rules, list, count);
	*count = rule_counts_join(list, *count);
	return list;
}

void collect_free_rules(struct rule_sum *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(list[i].prefix);
	free(list);
}

/* --- measurements --- */

void collect_latency(struct daemon *d, unsigned class, struct histogram_sum *sum)
{
	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->threads; i++)
		histogram_sum(&d->meters[i]->latencies[class], sum);
	pthread_mutex_unlock(&d->lock);
}

static uint64_t count_failed(const struct servers *servers)
{
	uint64_t count = 0;

	for (int i = 0; i < servers_count(servers); i++) {
		const struct server_stats *stats = &servers_get(servers, i)->stats;
		count += atomic_load(&stats->unavailable) + atomic_load(&stats->busy) +
			atomic_load(&stats->lost_calls);
	}
	return count;
}

void collect_timeline(struct daemon *d, struct timeline *timeline)
{
	struct histogram_sum latency = { .count = 0 };
	uint64_t failed = 0;

	for (unsigned class = 0; class < LATENCY_CLASSES; class ++)
		collect_latency(d, class, &latency);
	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->threads; i++)
		failed += count_failed(d->meters[i]->servers);
	pthread_mutex_unlock(&d->lock);
	timeline_add(timeline, clock_us(CLOCK_MONOTONIC) / 1000, &latency, failed);
}

struct topk_key *collect_hot_keys(
	struct daemon *d, enum hot_by by, size_t *count, struct hot_keys_sum *sum)
{
	struct topk_key *list = xmalloc(d->threads * TOPK_ENTRIES * sizeof(*list));
	uint64_t now = clock_us(CLOCK_MONOTONIC) / 1000;
	struct hot_total total = { 0 };
	size_t n = 0;

	*sum = (struct hot_keys_sum){ .seconds = notes_seconds(&d->meters[0]->notes, now) };
	for (size_t i = 0; i < d->threads; i++)
		n += notes_copy_hot(&d->meters[i]->notes, by, now, list + n, &total);
	sum->total = total.weight * TOPK_SAMPLE;
	sum->requests = (double)total.requests / REQUEST_UNIT * TOPK_SAMPLE;
	n = topk_merge(list, n, sizeof(*list), topk_join);
	for (size_t i = 0; i < n; i++)
		list[i].weight *= TOPK_SAMPLE;
	*count = n < SHOWN ? n : SHOWN;
	return list;
}

struct large_collection *collect_largest(struct daemon *d, size_t *count)
{
	struct large_collection *list = xmalloc(d->threads * LARGE_ENTRIES * sizeof(*list));
	int64_t now = (int64_t)time(NULL);
	size_t n = 0;

	for (size_t i = 0; i < d->threads; i++)
		n += notes_copy_large(&d->meters[i]->notes, now, list + n);
	n = topk_merge(list, n, sizeof(*list), notes_join_large);
	*count = n < SHOWN ? n : SHOWN;
	return list;
}

static int collect_newest_first(const void *left, const void *right)
{
	const struct slow_request *a = left, *b = right;

	return (a->time < b->time) - (a->time > b->time);
}

struct slow_request *collect_slow(struct daemon *d, size_t *count, uint64_t *total)
{
	struct slow_request *list = xmalloc(d->threads * SLOW_REQUESTS * sizeof(*list));
	size_t n = 0;

	*total = 0;
	for (size_t i = 0; i < d->threads; i++)
		n += notes_copy_slow(&d->meters[i]->notes, list + n, total);
	qsort(list, n, sizeof(*list), collect_newest_first);
	*count = n < SLOW_REQUESTS ? n : SLOW_REQUESTS;
	return list;
}

/* --- resets --- */

void collect_reset_slow(struct daemon *d)
{
	for (size_t i = 0; i < d->threads; i++)
		notes_reset_slow(&d->meters[i]->notes);
}

static void reset_counters(struct meter *m)
{
	for (enum counter i = 0; i < COUNTERS; i++)
		m->counters_before[i] = meter_get(m, i);
#define HELD(name, ...) m->counters_before[COUNT_##name] = 0;
#include "measure/facts.def"
	for (int class = 0; class < LATENCY_CLASSES; class ++)
		histogram_reset(&m->latencies[class]);
	servers_reset_latencies(m->servers);
}

void collect_reset(struct daemon *d)
{
	uint64_t now = clock_us(CLOCK_MONOTONIC) / 1000;

	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->threads; i++)
		reset_counters(d->meters[i]);
	pthread_mutex_unlock(&d->lock);
	for (size_t i = 0; i < d->threads; i++) {
		notes_reset(&d->meters[i]->notes, now);
		rule_counts_reset(&d->meters[i]->rules);
	}
}
