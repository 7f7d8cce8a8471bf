/*
 * All that the daemon counts, at one moment and summed over all workers. `stats`, /metrics and /stats.json print it. All functions
 * may be called from any thread, as long as the workers exist.
 */
#ifndef MEASURE_SNAPSHOT_H
#define MEASURE_SNAPSHOT_H

#include <stdbool.h>

#include "util/histogram.h"
#include "worker/daemon.h"

struct snapshot {
	int64_t time, started; /* Unix time */
	unsigned version;      /* the oldest of all servers, as struct server_stats has it; 0 if none is known */
	size_t threads;
	uint64_t ring; /* fingerprint */
	uint64_t connections, accepted, rejected;
	uint64_t client_bytes;
	uint64_t slow;               /* requests since the start or the last reset of them */
	uint64_t counters[COUNTERS]; /* since the start, or the last `stats reset` */
	/* The caller fills these in: as /readyz says it, and limits of the latest settings. */
	bool ready;
	uint64_t connections_max, client_bytes_max, cache_max;
};

/* A server, as all workers together know it. */
struct snapshot_server {
	char name[300];
	uint64_t calls, unavailable, busy, timeouts, lost, connects;
	unsigned version;             /* as struct server_stats has it */
	int up;                       /* workers that are connected */
	struct histogram_sum latency; /* of its calls, since the start or the last `stats reset` */
};

/* Fills in `s`, seen from this worker: while a reload goes on, workers may have different rings. */
void snapshot_take(struct daemon *d, const struct worker *worker, struct snapshot *s);

/* The servers of this worker, in their order. The caller frees the list, of `*count`. */
struct snapshot_server *snapshot_servers(struct daemon *d, const struct worker *worker, size_t *count);

/* Whether any worker is connected to any server. */
bool snapshot_any_server_up(struct daemon *d);

/* The name of a counter, as `stats` prints it. */
const char *snapshot_counter_name(enum counter counter);

/* Sets the counters to 0, for all who read them here. */
void snapshot_reset(struct daemon *d);

#endif
