#include "measure/snapshot.h"

#include <string.h>
#include <time.h>

#include "util/alloc.h"
#include "worker/worker.h"

static uint64_t load(const atomic_uint_fast64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* --- counters --- */

static void sum_counters(const struct daemon *d, uint64_t sums[COUNTERS])
{
	memset(sums, 0, COUNTERS * sizeof(sums[0]));
	for (size_t w = 0; w < d->threads; w++) {
		for (enum counter i = 0; i < COUNTERS; i++)
			sums[i] += counters_get(&d->workers[w]->meter.counters, i);
	}
}

const char *snapshot_counter_name(enum counter counter)
{
	static const char *const names[COUNTERS] = {
#define COUNTER(name) #name,
#include "measure/counters.def"
#undef COUNTER
	};

	return names[counter];
}

void snapshot_reset(struct daemon *d)
{
	pthread_mutex_lock(&d->lock);
	sum_counters(d, d->baseline);
	/* It is what is held, and does not count from anywhere. */
	d->baseline[COUNT_cache_bytes] = 0;
	pthread_mutex_unlock(&d->lock);
}

/* --- all but the servers --- */

/* Requires daemon.lock. The lowest version, so that a client uses no command that one of the servers lacks. */
static unsigned oldest_version(const struct daemon *d)
{
	unsigned oldest = 0;

	for (size_t i = 0; i < d->threads; i++) {
		const struct servers *servers = d->workers[i]->current->servers;
		for (int j = 0; j < servers_count(servers); j++) {
			unsigned version =
				atomic_load_explicit(&servers_get(servers, j)->stats.version, memory_order_relaxed);
			if (version && (!oldest || version < oldest))
				oldest = version;
		}
	}
	return oldest;
}

static uint64_t count_slow(struct daemon *d)
{
	uint64_t count = 0;

	for (size_t i = 0; i < d->threads; i++) {
		struct slow *slow = &d->workers[i]->meter.slow;
		pthread_mutex_lock(&slow->lock);
		count += slow->count;
		pthread_mutex_unlock(&slow->lock);
	}
	return count;
}

void snapshot_take(struct daemon *d, const struct worker *worker, struct snapshot *s)
{
	int connections = atomic_load(&d->connections);

	*s = (struct snapshot){
		.time = (int64_t)time(NULL),
		.started = d->started,
		.threads = d->threads,
		.connections = connections > 0 ? (uint64_t)connections : 0,
		.accepted = atomic_load(&d->accepted),
		.rejected = atomic_load(&d->rejected),
		.client_bytes = atomic_load_explicit(&d->client_bytes, memory_order_relaxed),
		.slow = count_slow(d),
	};
	pthread_mutex_lock(&d->lock);
	/* Under the lock: a reset after the sum would make the baseline larger than it. */
	sum_counters(d, s->counters);
	for (int i = 0; i < COUNTERS; i++)
		s->counters[i] -= d->baseline[i];
	s->version = oldest_version(d);
	s->ring = worker->current->settings->ring_hash;
	pthread_mutex_unlock(&d->lock);
}

/* --- servers --- */

/* Another worker has the same servers in the same order, except while a reload changes them. */
static const struct server *counterpart(const struct servers *servers, const char *name, int index)
{
	const struct server *other = index < servers_count(servers) ? servers_get(servers, index) : NULL;

	if (other && strcmp(other->name, name) == 0)
		return other;
	for (int i = 0; i < servers_count(servers); i++) {
		other = servers_get(servers, i);
		if (strcmp(other->name, name) == 0)
			return other;
	}
	return NULL;
}

static void add_server(struct snapshot_server *sum, const struct server *server)
{
	const struct server_stats *stats = &server->stats;

	sum->calls += load(&stats->calls);
	sum->unavailable += load(&stats->unavailable);
	sum->busy += load(&stats->busy);
	sum->timeouts += load(&stats->timeouts);
	sum->lost += load(&stats->lost);
	sum->connects += load(&stats->connects);
	sum->up += atomic_load_explicit(&stats->state, memory_order_relaxed) == SERVER_UP;
	histogram_sum(&stats->latency, &sum->latency);
}

/* Requires daemon.lock. */
static void sum_server(const struct daemon *d, const struct server *server, int index, struct snapshot_server *sum)
{
	_Static_assert(sizeof(sum->name) == sizeof(server->name), "names of servers have one size");
	memcpy(sum->name, server->name, sizeof(sum->name));
	sum->version = atomic_load_explicit(&server->stats.version, memory_order_relaxed);
	for (size_t i = 0; i < d->threads; i++) {
		const struct server *other = counterpart(d->workers[i]->current->servers, server->name, index);
		if (other)
			add_server(sum, other);
	}
}

struct snapshot_server *snapshot_servers(struct daemon *d, const struct worker *worker, size_t *count)
{
	const struct servers *servers;
	struct snapshot_server *list;

	pthread_mutex_lock(&d->lock);
	servers = worker->current->servers;
	*count = (size_t)servers_count(servers);
	list = xcalloc(*count, sizeof(*list));
	for (size_t i = 0; i < *count; i++)
		sum_server(d, servers_get(servers, (int)i), (int)i, &list[i]);
	pthread_mutex_unlock(&d->lock);
	return list;
}

bool snapshot_any_server_up(struct daemon *d)
{
	bool up = false;

	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->threads; i++) {
		const struct servers *servers = d->workers[i]->current->servers;
		for (int j = 0; j < servers_count(servers); j++)
			up |= atomic_load_explicit(&servers_get(servers, j)->stats.state, memory_order_relaxed) ==
				SERVER_UP;
	}
	pthread_mutex_unlock(&d->lock);
	return up;
}
