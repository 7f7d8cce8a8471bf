/*
 * loadgen: loads a memcached or Redis server, or a proxy that speaks like one, and reports
 * throughput, latency and what the servers spent. One thread, one event loop; the requests are
 * rendered before the run, so that little but system calls is left to do during it.
 */
#include "engine.h"
#include "options.h"
#include "report.h"
#include "workload.h"

#include <stdio.h>

#define LOAD_DEPTH 8

/* Stores what the op needs to find; anything but a clean success is a failure. */
static bool prefill(const struct options *options, struct result *result)
{
	struct options load = *options;
	struct pool pool;
	bool good = true;

	if (!workload_render_load(&options->workload, &pool))
		return false;
	load.requests = pool.count;
	load.depth = LOAD_DEPTH;
	load.batch = 1;
	load.rate = 0;
	load.reconnect = false;
	load.pid_count = 0;
	if (pool.count) {
		good = engine_run(&load, &pool, result);
		if (good && (result->errors || result->misses)) {
			fprintf(stderr, "loadgen: prefill: %llu errors, %llu not stored; %s\n",
				(unsigned long long)result->errors, (unsigned long long)result->misses,
				result->first_error);
			good = false;
		}
	}
	pool_free(&pool);
	return good;
}

int main(int argc, char **argv)
{
	static struct result result;
	struct options options;
	struct pool pool;
	bool good;

	options_parse(&options, argc, argv);
	if (!workload_render(&options.workload, &pool))
		return 2;
	if (options.prefill && !prefill(&options, &result)) {
		pool_free(&pool);
		return 1;
	}
	good = engine_run(&options, &pool, &result);
	pool_free(&pool);
	if (!good)
		return 1;
	report_print(&options, &result);
	return result.errors || result.lost ? 1 : 0;
}
