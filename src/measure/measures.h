/*
 * What the workers have measured, summed over all of them: latencies, hot keys, large sets and lists, slow requests. All functions
 * may be called from any thread, as long as the workers exist.
 */
#ifndef MEASURE_MEASURES_H
#define MEASURE_MEASURES_H

#include "measure/hotkeys.h"
#include "measure/largest.h"
#include "measure/latency.h"
#include "measure/slow.h"
#include "worker/daemon.h"

/*
 * Latencies since the start or the last `stats reset`. `class` is a counter from COUNT_cmd_get to COUNT_cmd_refused, less than
 * LATENCY_CLASSES; `server` is the name of a server, as struct server has it. Each adds to `sum`.
 */
void latency_collect(struct daemon *d, unsigned class, struct histogram_sum *sum);
void latency_collect_server(struct daemon *d, const char *server, struct histogram_sum *sum);

/* The name of a class: "get", "set" and so on. */
const char *latency_class_name(unsigned class);

struct hot_key {
	uint64_t weight; /* requests or bytes, scaled by the sample */
	uint8_t n;       /* bytes of the key */
	char key[TOPK_KEY];
};

/* What the weights of hot keys stand for. */
struct hot_keys_sum {
	uint64_t total; /* weight of all keys, scaled by the sample */
	double seconds; /* a weight divided by them is a rate; 0 at first */
};

/* Copies the `n` hottest keys to `out`, the hottest first. Gives their number, and fills in `sum`. */
size_t hotkeys_collect(struct daemon *d, enum hotkeys_by by, struct hot_key *out, size_t n, struct hot_keys_sum *sum);

/* Copies the `n` largest sets and lists to `out`, the largest first. Gives their number. */
size_t largest_collect(struct daemon *d, struct large_collection *out, size_t n);

/* Copies the last `n` slow requests to `out`, the newest first. Gives their number; `count` is that of all. */
size_t slow_collect(struct daemon *d, struct slow_request *out, size_t n, uint64_t *count);

/* Forgets the slow requests, or all measures. */
void measures_reset_slow(struct daemon *d);
void measures_reset(struct daemon *d);

#endif
