/*
 * The numbers of facts.def and the other measurements, summed over all workers. All functions
 * may be called from any thread while the workers exist. `from` is the meter of the worker that
 * handles the request: during a reload, workers may have different servers.
 */
#ifndef MEASURE_COLLECT_H
#define MEASURE_COLLECT_H

#include <stdbool.h>

#include "measure/meter.h"
#include "measure/timeline.h"
#include "worker/daemon.h"

/* The value of a fact that cannot be read. */
#define FACT_UNKNOWN UINT64_MAX

/* Numbers of the rows in facts.def. */
enum {
	DAEMON_FACTS = 0
#define DAEMON(...) +1
#include "measure/facts.def"
};

enum server_fact {
#define SEEN(name, ...) SERVER_FACT_##name,
#define SERVER(name, ...) SERVER_FACT_##name,
#include "measure/facts.def"
	SERVER_FACTS
};

/* The output format: `stats`, /stats.json or /metrics. */
enum format { FORMAT_STATS, FORMAT_JSON, FORMAT_METRICS, FORMATS };

/*
 * Fills in the numbers of the daemon that have a name in the format; the others are 0.
 * `obstacle` is why clients are not served; NULL if they are. Only the main thread may use
 * formats other than FORMAT_STATS.
 */
void collect_daemon(struct daemon *d, const struct meter *from, enum format format,
	const char *obstacle, uint64_t values[static DAEMON_FACTS]);

/* Fills in the counters since the start or the last `stats reset`. */
void collect_counters(struct daemon *d, uint64_t values[static COUNTERS]);

/* Copies the newest sums of the servers' statistics. */
void collect_sums(struct daemon *d, struct sums *sums);

/* A server, summed over all workers. */
struct server_sum {
	char name[300];
	char why[160];  /* Why it is down; "" if it is up or was not tried yet. */
	char host[256]; /* The name with `dns:` that has this address; "" if there is none. */
	uint64_t values[SERVER_FACTS];
	/* Latency of its calls, since the start or the last `stats reset`. */
	struct histogram_sum latency;
};

/*
 * Returns the servers of the worker, in their order, and stores their number in `count`. The
 * caller frees the list.
 */
struct server_sum *collect_servers(struct daemon *d, const struct meter *from, size_t *count);

/*
 * A summary of all servers of all workers. Clients that adapt to the oldest version use no
 * command that one of the servers lacks.
 */
struct servers_seen {
	bool any_up;
	unsigned oldest; /* Version, as in struct server_stats; 0 if none is known. */
};

struct servers_seen collect_seen(struct daemon *d);

/*
 * Returns the version reported to clients: that of the oldest server, or 1.6.0 while none is
 * known.
 */
unsigned collect_version(struct daemon *d);

/*
 * Returns the counts of all rules for sets and lists in use, ordered by prefix, and stores
 * their number in `count`. Freed with collect_free_rules().
 */
struct rule_sum *collect_rules(struct daemon *d, size_t *count);
void collect_free_rules(struct rule_sum *list, size_t count);

/*
 * Adds the latencies of a class, less than LATENCY_CLASSES, since the start or the last `stats
 * reset`.
 */
void collect_latency(struct daemon *d, unsigned class, struct histogram_sum *sum);

/* Adds a point to a timeline, for all requests and all failed calls. */
void collect_timeline(struct daemon *d, struct timeline *timeline);

/* How to interpret the weights of hot keys. */
struct hot_keys_sum {
	uint64_t total; /* Weight of all keys. */
	double seconds; /* A weight divided by this is a rate; initially 0. */
	/* Number of requests with these keys. A request with several keys counts once. */
	double requests;
};

/*
 * Returns the hottest keys, the hottest first, stores their number in `count`, and fills in
 * `sum`. Weights are scaled up from the sample. The caller frees the list.
 */
struct topk_key *collect_hot_keys(
	struct daemon *d, enum hot_by by, size_t *count, struct hot_keys_sum *sum);

/*
 * Returns the largest sets and lists, the largest first, and stores their number in `count`.
 * The caller frees the list.
 */
struct large_collection *collect_largest(struct daemon *d, size_t *count);

/*
 * Returns the last slow requests, the newest first, and stores their number in `count`. `total`
 * is the number of all slow requests since the start or the last reset. The caller frees the
 * list.
 */
struct slow_request *collect_slow(struct daemon *d, size_t *count, uint64_t *total);

/*
 * collect_reset_slow() clears the slow requests; collect_reset() clears everything that was
 * counted and measured.
 */
void collect_reset_slow(struct daemon *d);
void collect_reset(struct daemon *d);

#endif
