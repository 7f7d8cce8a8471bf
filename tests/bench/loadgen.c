/*
 * loadgen: loads a memcached or Redis server, or a compatible proxy, and reports throughput,
 * latency and the CPU time of the servers. One thread, one event loop; the requests are rendered
 * before the run, so that little except system calls is done during it.
 */
#include "engine.h"
#include "options.h"
#include "workload.h"

#include <err.h>
#include <stdio.h>

#define LOAD_DEPTH 8

/* Stores the data that the op needs. Anything but success is a failure. */
static void prefill(const struct options *options, struct result *result)
{
	struct options load = *options;
	struct pool pool;

	workload_render_load(&options->workload, &pool);
	load.requests = pool.count;
	load.depth = LOAD_DEPTH;
	load.batch = 1;
	load.rate = 0;
	load.reconnect = false;
	load.pids.count = 0;
	if (pool.count)
		engine_run(&load, &pool, result);
	if (result->errors || result->misses)
		errx(1, "prefill: %llu errors, %llu not stored; %s",
			(unsigned long long)result->errors, (unsigned long long)result->misses,
			result->first_error);
	pool_free(&pool);
}

static void print_json_string(const char *text)
{
	putchar('"');
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
	putchar('"');
}

static void print_json_head(const struct options *options, const struct result *result)
{
	const struct workload *work = &options->workload;

	printf("{\"op\":\"%s\",\"proto\":\"%s\",\"conns\":%zu,\"depth\":%zu,", work->op,
		work->resp ? "resp" : "memcache", options->conns, options->depth);
	printf("\"first_error\":");
	print_json_string(result->first_error);
}

static void field(const struct options *options, const char *name, int digits, double value)
{
	if (options->json)
		printf(",\"%s\":%.*f", name, digits, value);
	else
		printf("%-16s %.*f\n", name, digits, value);
}

static void print_processes(const struct options *options, const struct result *result)
{
	if (options->json)
		printf(",\"processes\":[");
	for (size_t i = 0; i < options->pids.count; i++) {
		const struct process *process = &result->processes[i];
		double cpu = result->requests ? process->cpu_us / (double)result->requests : 0;
		long pid = (long)options->pids.list[i];

		if (options->json) {
			printf("%s{\"name\":", i ? "," : "");
			print_json_string(process->name);
			printf(",\"pid\":%ld,\"cpu_us\":%.3f,\"rss_kb\":%llu}", pid, cpu,
				process->rss_kb);
		} else {
			printf("%-16s %s pid %ld cpu_us %.3f rss_kb %llu\n", "process",
				process->name, pid, cpu, process->rss_kb);
		}
	}
	if (options->json)
		printf("]}\n");
}

/* Prints "name value" lines, or one JSON object if the options ask for it. */
static void report(const struct options *options, const struct result *result)
{
	const struct hist *latency = &result->latency;
	double requests = (double)result->requests;

	if (options->json)
		print_json_head(options, result);
	field(options, "seconds", 3, result->seconds);
	field(options, "requests", 0, requests);
	field(options, "rate", 1, result->seconds > 0 ? requests / result->seconds : 0);
	field(options, "p50_us", 1, (double)hist_quantile(latency, 0.5) / 1e3);
	field(options, "p95_us", 1, (double)hist_quantile(latency, 0.95) / 1e3);
	field(options, "p99_us", 1, (double)hist_quantile(latency, 0.99) / 1e3);
	field(options, "p999_us", 1, (double)hist_quantile(latency, 0.999) / 1e3);
	field(options, "max_us", 1, (double)latency->max / 1e3);
	field(options, "misses", 0, (double)result->misses);
	field(options, "errors", 0, (double)result->errors);
	field(options, "lost", 0, (double)result->lost);
	field(options, "loadgen_cpu_us", 3, requests > 0 ? result->own_cpu_us / requests : 0);
	if (result->first_error[0] != '\0' && !options->json)
		printf("%-16s %s\n", "first_error", result->first_error);
	print_processes(options, result);
}

int main(int argc, char **argv)
{
	static struct result result;
	struct options options;
	struct pool pool;

	options_parse(&options, argc, argv);
	if (options.prefill)
		prefill(&options, &result);
	workload_render(&options.workload, &pool);
	engine_run(&options, &pool, &result);
	pool_free(&pool);
	report(&options, &result);
	return result.errors || result.lost ? 1 : 0;
}
