/* Results for people, for shell scripts (name, blanks, value) and for programs (JSON). */
#include "report.h"

#include <stdio.h>

static double cpu_per_request(const struct result *result, size_t process)
{
	double spent = result->after[process].cpu_us - result->before[process].cpu_us;

	return result->requests ? spent / (double)result->requests : 0;
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

static void print_json(const struct options *options, const struct result *result)
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
	for (size_t i = 0; i < options->pid_count; i++) {
		const struct process_sample *after = &result->after[i];
		double cpu = cpu_per_request(result, i);

		if (options->json) {
			printf("%s{\"name\":", i ? "," : "");
			print_json_string(after->name);
			printf(",\"pid\":%ld,\"cpu_us\":%.3f,\"rss_kb\":%llu}", (long)options->pids[i], cpu,
				(unsigned long long)after->rss_kb);
		} else {
			printf("%-16s %s pid %ld cpu_us %.3f rss_kb %llu\n", "process", after->name,
				(long)options->pids[i], cpu, (unsigned long long)after->rss_kb);
		}
	}
	if (options->json)
		printf("]}\n");
}

void report_print(const struct options *options, const struct result *result)
{
	const struct hist *latency = &result->latency;
	double requests = (double)result->requests;

	if (options->json)
		print_json(options, result);
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
