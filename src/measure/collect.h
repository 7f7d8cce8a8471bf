/*
 * What facts.def names, and what else the workers have measured, summed over all of them. All functions may be called from any thread, as
 * long as the workers exist. `from` is the meter of the worker that is asked: while a reload goes on, workers may have different servers.
 */
#ifndef MEASURE_COLLECT_H
#define MEASURE_COLLECT_H

#include <stdbool.h>

#include "measure/meter.h"
#include "measure/timeline.h"
#include "worker/daemon.h"

/* The value of a fact that cannot be read. */
#define FACT_UNKNOWN UINT64_MAX

/* The numbers of rows in facts.def. */
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

/* Where numbers are printed: in `stats`, /stats.json or /metrics. */
enum format { FORMAT_STATS, FORMAT_JSON, FORMAT_METRICS, FORMATS };

/*
 * Fills in those numbers of the daemon that have a name in the format; the others are 0. `obstacle` is why clients are not served; NULL if
 * they are. Only the main thread may ask for another format than FORMAT_STATS.
 */
void collect_daemon(struct daemon *d, const struct meter *from, enum format format, const char *obstacle,
	uint64_t values[static DAEMON_FACTS]);

/* Fills in the counters, since the start or the last `stats reset`. */
void collect_counters(struct daemon *d, uint64_t values[static COUNTERS]);

/* The newest sums of the servers' statistics. */
void collect_sums(struct daemon *d, struct sums *sums);

/* A server, as all workers together know it. */
struct server_sum {
	char name[300];
	char why[160];  /* it is down; "" if it is not, or was not tried yet */
	char host[256]; /* the name with `dns:` that has this address; "" without one */
	uint64_t values[SERVER_FACTS];
	struct histogram_sum latency; /* of its calls, since the start or the last `stats reset` */
};

/* Gives the servers of the worker, in their order: `*count` of them. */
struct server_sum *collect_servers(struct daemon *d, const struct meter *from, size_t *count);

/* All servers of all workers. A client of the oldest version uses no command that one of the servers lacks. */
struct servers_seen {
	bool any_up;
	unsigned oldest; /* version, as struct server_stats has it; 0 if none is known */
};

struct servers_seen collect_seen(struct daemon *d);

/* The version reported to clients: the oldest one of all servers, or 1.6.0 while none is known. */
unsigned collect_version(struct daemon *d);

/* Gives the counts of all rules for sets and lists that a worker uses, in the order of their prefixes: `*count` of them. */
struct rule_sum *collect_rules(struct daemon *d, size_t *count);
void collect_free_rules(struct rule_sum *list, size_t count);

/* Adds the latencies of a class, less than LATENCY_CLASSES, since the start or the last `stats reset`. */
void collect_latency(struct daemon *d, unsigned class, struct histogram_sum *sum);

/* Adds a point to a timeline, of all requests and of all calls that failed. */
void collect_timeline(struct daemon *d, struct timeline *timeline);

/* The meaning of the weights of hot keys. */
struct hot_keys_sum {
	uint64_t total; /* weight of all keys */
	double seconds; /* a weight divided by them is a rate; 0 at first */
};

/* Gives the hottest keys, the hottest first, and fills in `sum`. Weights are scaled by the sample. The list has `*count` entries. */
struct topk_key *collect_hot_keys(struct daemon *d, enum hot_by by, size_t *count, struct hot_keys_sum *sum);

/* Gives the largest sets and lists, the largest first. */
struct large_collection *collect_largest(struct daemon *d, size_t *count);

/* Gives the last slow requests, the newest first. `total` is the number of all since the start or the last reset. */
struct slow_request *collect_slow(struct daemon *d, size_t *count, uint64_t *total);

/* Forgets the slow requests, or all of them and all that was counted and measured besides. */
void collect_reset_slow(struct daemon *d);
void collect_reset(struct daemon *d);

#endif
