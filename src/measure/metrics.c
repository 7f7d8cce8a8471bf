#include "measure/metrics.h"

#include <inttypes.h>
#include <stdio.h>

#include "measure/measures.h"

void metrics_head(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* --- numbers of the snapshot --- */

static void print_facts(const struct snapshot *s, struct buf *out)
{
	static const char version[] = DAEMON_VERSION;

	metrics_head(out, "setlistd_build_info", "gauge", "The version, and the checksum of where keys are; always 1.");
	buf_printf(out, "setlistd_build_info{version=\"%s\",ring=\"%016" PRIx64 "\"} 1\n", version, s->ring);
#define FACT(name, type, help, value) \
	metrics_head(out, name, type, help); \
	buf_printf(out, "%s %" PRIu64 "\n", name, (uint64_t)(value));
#define COUNTED(...)
#define HELD(...)
#define SERVER(...)
#include "measure/metrics.def"
#undef FACT
#undef COUNTED
#undef HELD
#undef SERVER
}

/* A row of the table of counters. */
struct counted {
	enum counter counter;
	const char *name, *label, *help, *type;
};

static const struct counted table[] = {
#define FACT(...)
#define COUNTED(counter, name, label, help) { COUNT_##counter, name, label, help, "counter" },
#define HELD(counter, name, help) { COUNT_##counter, name, "", help, "gauge" },
#define SERVER(...)
#include "measure/metrics.def"
#undef FACT
#undef COUNTED
#undef HELD
#undef SERVER
};

static void print_counters(const struct snapshot *s, struct buf *out)
{
	bool printed[COUNTERS] = { false };
	const char *last = "";

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct counted *c = &table[i];
		if (strcmp(last, c->name) != 0)
			metrics_head(out, c->name, c->type, c->help);
		last = c->name;
		printed[c->counter] = true;
		buf_printf(out, *c->label ? "%s{%s} %" PRIu64 "\n" : "%s%s %" PRIu64 "\n", c->name, c->label,
			s->counters[c->counter]);
	}
	for (enum counter i = 0; i < COUNTERS; i++) {
		char name[128];
		if (printed[i])
			continue;
		snprintf(name, sizeof(name), "setlistd_%s_total", snapshot_counter_name(i));
		metrics_head(out, name, "counter", "As stats has it.");
		buf_printf(out, "%s %" PRIu64 "\n", name, s->counters[i]);
	}
}

/* --- labels --- */

/* As the format wants the value of a label. */
static void add_label(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\\' || *text == '"')
			buf_printf(out, "\\%c", *text);
		else if (*text == '\n')
			BUF_ADD(out, "\\n");
		else
			buf_add(out, text, 1);
	}
}

/* Gives name{label="value", without the brace at its end. */
static void add_name(struct buf *out, const char *name, const char *suffix, const char *label, const char *value)
{
	buf_printf(out, "%s%s{%s=\"", name, suffix, label);
	add_label(out, value);
	BUF_ADD(out, "\"");
}

/* --- histograms --- */

/*
 * Bounds of 10, 20, 40 us and so on, which are bounds of buckets. A bucket here counts what is less than its bound, not equal to it:
 * times are whole microseconds, so that is one microsecond less than the name says.
 */
static void print_histogram(
	const char *name, const char *label, const char *value, const struct histogram_sum *sum, struct buf *out)
{
	uint64_t bound = HISTOGRAM_LEAST, below = 0;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		below += sum->counts[i];
		if (histogram_to(i) != bound)
			continue;
		add_name(out, name, "_bucket", label, value);
		buf_printf(out, ",le=\"%.12g\"} %" PRIu64 "\n", (double)bound / 1e6, below);
		bound *= 2;
	}
	add_name(out, name, "_bucket", label, value);
	buf_printf(out, ",le=\"+Inf\"} %" PRIu64 "\n", below);
	add_name(out, name, "_sum", label, value);
	buf_printf(out, "} %.6f\n", (double)sum->total / 1e6);
	add_name(out, name, "_count", label, value);
	buf_printf(out, "} %" PRIu64 "\n", below);
}

static void print_classes(struct daemon *d, struct buf *out)
{
	static const char name[] = "setlistd_request_duration_seconds";

	metrics_head(out, name, "histogram", "From the start of a request to its reply, by class of commands.");
	for (unsigned class = 0; class < LATENCY_CLASSES; class ++) {
		struct histogram_sum sum = { .count = 0 };
		latency_collect(d, class, &sum);
		print_histogram(name, "class", latency_class_name(class), &sum, out);
	}
}

/* --- servers --- */

static void print_servers(const struct snapshot_server *servers, size_t count, struct buf *out)
{
	static const char name[] = "setlistd_server_call_duration_seconds";

	metrics_head(
		out, "setlistd_server_info", "gauge", "The version of the server, 0.0.0 if it is not known; always 1.");
	for (const struct snapshot_server *v = servers; v < servers + count; v++) {
		add_name(out, "setlistd_server_info", "", "server", v->name);
		buf_printf(
			out, ",version=\"%u.%u.%u\"} 1\n", v->version >> 16, v->version >> 8 & 255, v->version & 255);
	}
#define FACT(...)
#define COUNTED(...)
#define HELD(...)
#define SERVER(title, type, help, value) \
	metrics_head(out, title, type, help); \
	for (const struct snapshot_server *v = servers; v < servers + count; v++) { \
		add_name(out, title, "", "server", v->name); \
		buf_printf(out, "} %" PRIu64 "\n", (uint64_t)(value)); \
	}
#include "measure/metrics.def"
#undef FACT
#undef COUNTED
#undef HELD
#undef SERVER
	metrics_head(out, name, "histogram", "From a call to the reply of the server.");
	for (const struct snapshot_server *v = servers; v < servers + count; v++)
		print_histogram(name, "server", v->name, &v->latency, out);
}

void metrics_print(struct daemon *d, const struct snapshot *s, struct buf *out)
{
	size_t count;
	struct snapshot_server *servers = snapshot_servers(d, d->workers[0], &count);

	print_facts(s, out);
	print_counters(s, out);
	print_classes(d, out);
	print_servers(servers, count, out);
	free(servers);
}
