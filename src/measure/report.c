#include "measure/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "measure/collect.h"
#include "util/clock.h"
#include "util/escape.h"
#include "util/version.h"

/* --- the table --- */

/* The form in which a value is printed. */
enum form {
	NUMBER,
	SECONDS,     /* Microseconds, printed with a point before the last six digits. */
	STATE,       /* State of a server: up or down; as a metric 1 or 0. */
	VERSION,     /* Version of a server, as in struct server_stats; as a metric, a label. */
	OWN_VERSION, /* Version of setlistd; the value is ignored. */
	RING         /* A fingerprint; as a metric, a label next to our own version. */
};

/* A row of facts.def, without its value. */
struct fact {
	const char *names[FORMATS]; /* "": not printed in that format. */
	enum form form;
	const char *label, *type, *help; /* Of the metric. */
};

static const struct fact daemon_facts[DAEMON_FACTS] = {
#define DAEMON(stats, json, form, metric, type, help, value) \
	{ { stats, json, metric }, form, "", type, help },
#include "measure/facts.def"
};

static const struct fact counter_facts[COUNTERS] = {
#define CLASS(name, stats) \
	{ { stats, "cmd_" #name, "setlistd_requests_total" }, NUMBER, "class=\"" #name "\"", \
		"counter", "Requests of clients, by class of commands." },
#define KEYS(name) \
	{ { "cmd_" #name, "keys_" #name, "setlistd_keys_total" }, NUMBER, "command=\"" #name "\"", \
		"counter", \
		"Keys in memcached's commands: get includes mg, set every command that stores, " \
		"touch gat." },
#define LOOKUP(name, command, result) \
	{ { #name, #name, "setlistd_lookups_total" }, NUMBER, \
		"command=\"" command "\",result=\"" result "\"", "counter", \
		"Hits and misses of memcached's commands, one for each key." },
#define COUNTER(name, metric, label, help) \
	{ { #name, #name, metric }, NUMBER, label, "counter", help },
#define MOVES(name, metric, help, member) { { #name, #name, metric }, NUMBER, "", "counter", help },
#define COPIES(name, metric, help, member) \
	{ { #name, #name, metric }, NUMBER, "", "counter", help },
#define LANES(name, metric, help) { { #name, #name, metric }, NUMBER, "", "counter", help },
#define HELD(name, metric, help) { { #name, #name, metric }, NUMBER, "", "gauge", help },
#include "measure/facts.def"
};

static const struct fact sum_facts[SUMS] = {
#define SUM(name) { { #name, "", "" }, NUMBER, "", "", "" },
#include "measure/facts.def"
};

static const struct fact server_facts[SERVER_FACTS] = {
#define SEEN(name, form, metric, help, value) { { #name, #name, metric }, form, "", "gauge", help },
#define SERVER(name, metric, help) { { #name, #name, metric }, NUMBER, "", "counter", help },
#include "measure/facts.def"
};

static const struct fact rule_facts[RULE_FACTS] = {
#define RULE(name, metric, label, help) { { "", #name, metric }, NUMBER, label, "counter", help },
#include "measure/facts.def"
};

enum latency_of { OF_class, OF_server };

static const struct fact latency_facts[] = {
#define LATENCY(of, metric, help) \
	[OF_##of] = { { "", #of, metric }, NUMBER, "", "histogram", help },
#include "measure/facts.def"
};

/* The number of counters in `stats`; the following ones are in `stats collections`. */
enum {
	GENERAL_COUNTERS = 0
#define CLASS(...) +1
#define KEYS(...) +1
#define LOOKUP(...) +1
#define COUNTER(...) +1
#define MOVES(...) +1
#include "measure/facts.def"
};

static const char *class_name(unsigned class)
{
	return counter_facts[class].names[FORMAT_JSON] + strlen("cmd_");
}

/* --- values --- */

static void add_version(struct buf *out, unsigned v)
{
	buf_printf(out, "%u.%u.%u", v >> 16, v >> 8 & 255, v & 255);
}

static void add_form(struct buf *out, enum form form, uint64_t value)
{
	switch (form) {
	case NUMBER:
		buf_add_u64(out, value);
		break;
	case SECONDS:
		buf_printf(out, "%" PRIu64 ".%06u", value / 1000000, (unsigned)(value % 1000000));
		break;
	case STATE:
		buf_printf(out, "%s", value ? "up" : "down");
		break;
	case VERSION:
		add_version(out, (unsigned)value);
		break;
	case OWN_VERSION:
		buf_printf(out, "%s", setlistd_version);
		break;
	case RING:
		buf_printf(out, "%016" PRIx64, value);
		break;
	}
}

/* --- texts --- */

/*
 * Appends a quoted text for JSON or a label of a metric. Labels may have bytes that are not
 * ASCII.
 */
static void add_quoted(struct buf *out, const char *text, bool only_ascii)
{
	BUF_ADD(out, "\"");
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;
		if (byte == '"' || byte == '\\')
			buf_printf(out, "\\%c", byte);
		else if (byte == '\n')
			BUF_ADD(out, "\\n");
		else if (only_ascii && (byte < ' ' || byte >= 0x7f))
			buf_printf(out, "\\u%04x", byte);
		else
			buf_add(out, text, 1);
	}
	BUF_ADD(out, "\"");
}

/* JSON: appends a comma, except before the first member, and then `begin`. */
static void next(struct buf *out, const char *begin)
{
	struct slice s = buf_slice(out);

	if (s.p[s.n - 1] != '{' && s.p[s.n - 1] != '[')
		BUF_ADD(out, ",");
	buf_printf(out, "%s", begin);
}

static void add_name(struct buf *out, const char *name, const char *begin)
{
	next(out, "\"");
	buf_printf(out, "%s\":%s", name, begin);
}

static void add_named_number(struct buf *out, const char *name, uint64_t value)
{
	add_name(out, name, "");
	buf_add_u64(out, value);
}

static void add_named_text(struct buf *out, const char *name, const char *text)
{
	add_name(out, name, "");
	add_quoted(out, text, true);
}

/* Metrics: appends name{label="value", without the closing brace. */
static void add_series(
	struct buf *out, const char *name, const char *suffix, const char *label, const char *value)
{
	buf_printf(out, "%s%s{%s=", name, suffix, label);
	add_quoted(out, value, false);
}

/* --- the encoders of rows --- */

/* The state of one report. */
struct report {
	struct daemon *d;
	const struct meter *from;
	enum format format;
	struct buf *out;
	const char *family; /* The metric of the last sample. */
};

static void report_stat_fact(
	struct report *r, const struct fact *fact, const char *server, uint64_t value)
{
	buf_printf(
		r->out, *server ? "STAT %s:%s " : "STAT %s%s ", server, fact->names[FORMAT_STATS]);
	add_form(r->out, fact->form, value);
	BUF_ADD(r->out, "\r\n");
}

static void report_json_fact(
	struct report *r, const struct fact *fact, const char *server, uint64_t value)
{
	const char *quote = fact->form == NUMBER ? "" : "\"";

	(void)server;
	add_name(r->out, fact->names[FORMAT_JSON], quote);
	add_form(r->out, fact->form, value);
	buf_printf(r->out, "%s", quote);
}

/* The rows of one metric are adjacent. */
static void begin_metric(struct report *r, const struct fact *fact)
{
	const char *name = fact->names[FORMAT_METRICS];

	if (strcmp(r->family, name) != 0)
		buf_printf(
			r->out, "# HELP %s %s\n# TYPE %s %s\n", name, fact->help, name, fact->type);
	r->family = name;
}

static void report_metric_fact(
	struct report *r, const struct fact *fact, const char *server, uint64_t value)
{
	const char *name = fact->names[FORMAT_METRICS];

	if (value == FACT_UNKNOWN)
		return;
	begin_metric(r, fact);
	if (*server)
		add_series(r->out, name, "", "server", server);
	else
		buf_printf(r->out, *fact->label ? "%s{%s" : "%s%s", name, fact->label);
	switch (fact->form) {
	case RING:
		buf_printf(r->out, "{version=\"%s\",ring=\"%016" PRIx64 "\"} 1\n", setlistd_version,
			value);
		return;
	case VERSION:
		BUF_ADD(r->out, ",version=\"");
		add_version(r->out, (unsigned)value);
		BUF_ADD(r->out, "\"} 1\n");
		return;
	default:
		buf_printf(r->out, *server || *fact->label ? "} " : " ");
		add_form(r->out, fact->form == SECONDS ? SECONDS : NUMBER, value);
		BUF_ADD(r->out, "\n");
	}
}

/* --- the encoders of latencies --- */

static const struct {
	const char *name;
	double part;
} quantiles[] = { { "p50", 0.5 }, { "p90", 0.9 }, { "p99", 0.99 }, { "p999", 0.999 } };

enum { QUANTILES = sizeof(quantiles) / sizeof(quantiles[0]) };

static void report_stat_latency(
	struct report *r, enum latency_of of, const char *name, const struct histogram_sum *sum)
{
	(void)of;
	buf_printf(r->out, "STAT %s:count %" PRIu64 "\r\n", name, sum->count);
	for (int i = 0; i < QUANTILES; i++)
		buf_printf(r->out, "STAT %s:%s %" PRIu64 "\r\n", name, quantiles[i].name,
			histogram_quantile(sum, quantiles[i].part));
}

/* Lists only the non-empty buckets, with their numbers. */
static void report_json_latency(
	struct report *r, enum latency_of of, const char *name, const struct histogram_sum *sum)
{
	(void)of;
	(void)name;
	add_named_number(r->out, "count", sum->count);
	add_named_number(r->out, "untimed", sum->untimed);
	add_named_number(r->out, "sum_us", sum->total);
	for (int i = 0; i < QUANTILES; i++) {
		next(r->out, "\"");
		buf_printf(r->out, "%s_us\":%" PRIu64, quantiles[i].name,
			histogram_quantile(sum, quantiles[i].part));
	}
	add_name(r->out, "buckets", "[");
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (!sum->counts[i])
			continue;
		next(r->out, "[");
		buf_printf(r->out, "%u,%" PRIu64 "]", i, sum->counts[i]);
	}
	BUF_ADD(r->out, "]");
}

/*
 * The bounds are 10, 20, 40 us and so on, which are also bounds of our buckets. A bucket here
 * counts durations less than its bound, not equal to it: times are whole microseconds, so the
 * actual bound is one microsecond less than the printed one.
 */
static void report_metric_latency(
	struct report *r, enum latency_of of, const char *name, const struct histogram_sum *sum)
{
	const struct fact *fact = &latency_facts[of];
	const char *metric = fact->names[FORMAT_METRICS], *kind = fact->names[FORMAT_JSON];
	uint64_t bound = HISTOGRAM_LEAST, below = 0;

	begin_metric(r, fact);
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		below += sum->counts[i];
		if (histogram_to(i) != bound)
			continue;
		add_series(r->out, metric, "_bucket", kind, name);
		buf_printf(r->out, ",le=\"%.12g\"} %" PRIu64 "\n", (double)bound / 1e6, below);
		bound *= 2;
	}
	add_series(r->out, metric, "_bucket", kind, name);
	buf_printf(r->out, ",le=\"+Inf\"} %" PRIu64 "\n", below);
	add_series(r->out, metric, "_sum", kind, name);
	buf_printf(r->out, "} %.6f\n", (double)sum->total / 1e6);
	add_series(r->out, metric, "_count", kind, name);
	buf_printf(r->out, "} %" PRIu64 "\n", below);
}

/* --- the traversal --- */

static const struct encoder {
	/* Prints a row with its value: of a server, or of the daemon if `server` is "". */
	void (*fact)(struct report *r, const struct fact *fact, const char *server, uint64_t value);
	/* Prints the latencies of a class or server with this name. */
	void (*latency)(struct report *r, enum latency_of of, const char *name,
		const struct histogram_sum *sum);
} encoders[] = {
	[FORMAT_STATS] = { report_stat_fact, report_stat_latency },
	[FORMAT_JSON] = { report_json_fact, report_json_latency },
	[FORMAT_METRICS] = { report_metric_fact, report_metric_latency },
};

static void walk(struct report *r, const struct fact *facts, size_t n, const char *server,
	const uint64_t *values)
{
	for (size_t i = 0; i < n; i++) {
		if (*facts[i].names[r->format])
			encoders[r->format].fact(r, &facts[i], server, values[i]);
	}
}

static bool is_json(const struct report *r)
{
	return r->format == FORMAT_JSON;
}

/* --- classes and servers --- */

static void print_classes(struct report *r)
{
	for (unsigned class = 0; class < LATENCY_CLASSES; class ++) {
		struct histogram_sum sum = { .count = 0 };
		collect_latency(r->d, class, &sum);
		if (is_json(r)) {
			next(r->out, "{");
			add_named_text(r->out, "class", class_name(class));
		}
		encoders[r->format].latency(r, OF_class, class_name(class), &sum);
		if (is_json(r))
			BUF_ADD(r->out, "}");
	}
}

static void stat_texts(struct report *r, const struct server_sum *s)
{
	if (*s->host)
		buf_printf(r->out, "STAT %s:host %s\r\n", s->name, s->host);
	if (*s->why)
		buf_printf(r->out, "STAT %s:why %s\r\n", s->name, s->why);
}

/* Prints the rows, the latencies, or both, for each server. */
static void print_servers(struct report *r, bool rows, bool latencies)
{
	size_t count;
	struct server_sum *servers = collect_servers(r->d, r->from, &count);

	for (const struct server_sum *s = servers; s < servers + count; s++) {
		if (is_json(r)) {
			next(r->out, "{");
			add_named_text(r->out, "name", s->name);
			add_named_text(r->out, "why", s->why);
		}
		if (rows)
			walk(r, server_facts, SERVER_FACTS, s->name, s->values);
		if (rows && !is_json(r))
			stat_texts(r, s);
		if (latencies)
			encoders[r->format].latency(r, OF_server, s->name, &s->latency);
		if (is_json(r))
			BUF_ADD(r->out, "}");
	}
	free(servers);
}

/* Prints each row for all servers, since the samples of one metric must be adjacent. */
static void print_server_metrics(struct report *r)
{
	size_t count;
	struct server_sum *servers = collect_servers(r->d, r->from, &count);

	for (int i = 0; i < SERVER_FACTS; i++) {
		for (const struct server_sum *s = servers; s < servers + count; s++)
			walk(r, &server_facts[i], 1, s->name, &s->values[i]);
	}
	for (const struct server_sum *s = servers; s < servers + count; s++)
		encoders[r->format].latency(r, OF_server, s->name, &s->latency);
	free(servers);
}

static void print_rules(struct report *r)
{
	size_t count;
	struct rule_sum *rules = collect_rules(r->d, &count);

	for (const struct rule_sum *rule = rules; rule < rules + count; rule++) {
		next(r->out, "{");
		add_named_text(r->out, "prefix", rule->prefix);
		walk(r, rule_facts, RULE_FACTS, "", rule->values);
		BUF_ADD(r->out, "}");
	}
	collect_free_rules(rules, count);
}

static void print_rule_metrics(struct report *r)
{
	size_t count;
	struct rule_sum *rules = collect_rules(r->d, &count);

	for (int i = 0; i < RULE_FACTS; i++) {
		const struct fact *fact = &rule_facts[i];
		begin_metric(r, fact);
		for (const struct rule_sum *rule = rules; rule < rules + count; rule++) {
			add_series(r->out, fact->names[FORMAT_METRICS], "", "rule", rule->prefix);
			buf_printf(r->out, ",%s} %" PRIu64 "\n", fact->label, rule->values[i]);
		}
	}
	collect_free_rules(rules, count);
}

/* --- lists: an entry is a line of values in `stats`, and an object of named values in JSON --- */

static void begin_entry(struct report *r, const char *list, size_t i)
{
	if (is_json(r))
		next(r->out, "{");
	else
		buf_printf(r->out, "STAT %s:%zu", list, i + 1);
}

static void entry_number(struct report *r, const char *name, uint64_t value)
{
	if (is_json(r))
		add_named_number(r->out, name, value);
	else
		buf_printf(r->out, " %" PRIu64, value);
}

static void entry_text(struct report *r, const char *name, const char *text)
{
	if (is_json(r))
		add_named_text(r->out, name, text);
	else
		buf_printf(r->out, " %s", *text ? text : "-");
}

/* Ends an entry. The key is the last value, since it may contain any byte. */
static void end_entry(struct report *r, const struct topk_key *key)
{
	char text[ESCAPE_SIZE(TOPK_KEY)];

	if (key) {
		escape_text(text, slice_of(key->key, key->n), TOPK_KEY);
		entry_text(r, "key", text);
	}
	buf_printf(r->out, "%s", is_json(r) ? "}" : "\r\n");
}

static void print_hot_keys(struct report *r, enum hot_by by)
{
	static const char *const names[HOT_KINDS] = { "requests", "bytes" };
	struct hot_keys_sum sum;
	size_t count;
	struct topk_key *list = collect_hot_keys(r->d, by, &count, &sum);

	if (is_json(r)) {
		next(r->out, "\"hot_by_");
		buf_printf(r->out,
			"%s\":{\"total\":%" PRIu64 ",\"requests\":%.1f,\"seconds\":%.3f,\"keys\":[",
			names[by], sum.total, sum.requests, sum.seconds);
	} else {
		if (by == 0)
			buf_printf(r->out, "STAT seconds %.3f\r\n", sum.seconds);
		buf_printf(r->out, "STAT %s %" PRIu64 "\r\n", names[by], sum.total);
	}
	for (size_t i = 0; i < count; i++) {
		begin_entry(r, names[by], i);
		entry_number(r, "weight", list[i].weight);
		end_entry(r, &list[i]);
	}
	if (is_json(r))
		BUF_ADD(r->out, "]}");
	free(list);
}

/* `stats` has the number of seconds since a set was last seen. */
static void print_largest(struct report *r)
{
	int64_t now = (int64_t)time(NULL);
	size_t count;
	struct large_collection *list = collect_largest(r->d, &count);

	for (size_t i = 0; i < count; i++) {
		int64_t seen = list[i].seen, ago = now > seen ? now - seen : 0;
		begin_entry(r, "largest", i);
		entry_number(r, "bytes", list[i].top.weight);
		entry_number(r, "members", list[i].members);
		entry_number(r, "seen", (uint64_t)(is_json(r) ? seen : ago));
		end_entry(r, &list[i].top);
	}
	free(list);
}

static void print_slow(struct report *r)
{
	uint64_t total;
	size_t count;
	struct slow_request *list = collect_slow(r->d, &count, &total);

	if (!is_json(r))
		buf_printf(r->out, "STAT slow %" PRIu64 "\r\n", total);
	for (size_t i = 0; i < count; i++) {
		const struct slow_request *s = &list[i];
		begin_entry(r, "slow", i);
		if (is_json(r))
			add_named_number(r->out, "time_ms", s->time);
		else
			buf_printf(r->out, " %" PRIu64 ".%03u", s->time / 1000,
				(unsigned)(s->time % 1000));
		entry_text(r, "client", s->client);
		entry_text(r, "command", s->command);
		entry_text(r, "key", s->key);
		entry_text(r, "server", s->server);
		entry_number(r, "took_us", s->took);
		entry_number(r, "waited_us", s->waited);
		entry_number(r, "on_server_us", s->on_server);
		entry_number(r, "on_client_us", s->on_client);
		end_entry(r, NULL);
	}
	free(list);
}

/* --- only in JSON --- */

static void print_identity(struct report *r)
{
	char host[256] = "";

	(void)!gethostname(host, sizeof(host) - 1);
	add_named_text(r->out, "version", setlistd_version);
	add_named_text(r->out, "host", host);
	add_named_text(r->out, "listens", r->d->listens);
}

enum column { AGE, REQUESTS, FAILED, P50, P99, COLUMNS };

/*
 * Prints a list of numbers for each column, the oldest first. This takes a fifth of the bytes
 * of an object for each point.
 */
static void print_timeline(struct report *r, const struct timeline *timeline)
{
	static const char *const names[COLUMNS] = { "age_ms", "requests", "failed", "p50_us",
		"p99_us" };
	uint64_t now = clock_us(CLOCK_MONOTONIC) / 1000;

	add_name(r->out, "timeline", "{");
	for (enum column c = 0; c < COLUMNS; c++) {
		add_name(r->out, names[c], "[");
		for (size_t i = 0; i < timeline_count(timeline); i++) {
			const struct timeline_point *p = timeline_get(timeline, i);
			const uint64_t values[COLUMNS] = { now - p->at, p->requests, p->failed,
				p->p50, p->p99 };
			next(r->out, "");
			buf_add_u64(r->out, values[c]);
		}
		BUF_ADD(r->out, "]");
	}
	BUF_ADD(r->out, "}");
}

/* --- the three reports --- */

static void print_counters(struct report *r, size_t from, size_t to)
{
	uint64_t values[COUNTERS];

	collect_counters(r->d, values);
	walk(r, counter_facts + from, to - from, "", values + from);
}

static void print_daemon(struct report *r, const char *obstacle)
{
	uint64_t values[DAEMON_FACTS];

	collect_daemon(r->d, r->from, r->format, obstacle, values);
	walk(r, daemon_facts, DAEMON_FACTS, "", values);
}

static void print_sums(struct report *r)
{
	struct sums sums;

	collect_sums(r->d, &sums);
	walk(r, sum_facts, SUMS, "", sums.values);
}

bool report_stats(struct daemon *d, const struct meter *from, struct slice group, struct buf *out)
{
	struct report r = { d, from, FORMAT_STATS, out, "" };

	if (group.n == 0) {
		print_daemon(&r, NULL);
		print_counters(&r, 0, GENERAL_COUNTERS);
		print_sums(&r);
	} else if (slice_equal(group, SLICE("collections"))) {
		print_counters(&r, GENERAL_COUNTERS, COUNTERS);
	} else if (slice_equal(group, SLICE("upstream"))) {
		print_servers(&r, true, false);
	} else if (slice_equal(group, SLICE("latency"))) {
		print_classes(&r);
		print_servers(&r, false, true);
	} else if (slice_equal(group, SLICE("hotkeys"))) {
		buf_printf(out, "STAT sample %d\r\nSTAT half_life %d\r\n", TOPK_SAMPLE,
			NOTES_HALF_LIFE);
		print_hot_keys(&r, HOT_BY_REQUESTS);
		print_hot_keys(&r, HOT_BY_BYTES);
	} else if (slice_equal(group, SLICE("largest"))) {
		print_largest(&r);
	} else if (slice_equal(group, SLICE("slow"))) {
		print_slow(&r);
	} else {
		return false;
	}
	return true;
}

void report_version(struct daemon *d, struct buf *out)
{
	add_version(out, collect_version(d));
}

void report_json(
	struct daemon *d, const struct timeline *timeline, const char *obstacle, struct buf *out)
{
	struct report r = { d, d->meters[0], FORMAT_JSON, out, "" };

	BUF_ADD(out, "{");
	print_identity(&r);
	add_named_text(out, "state", obstacle ? obstacle : "ready");
	print_daemon(&r, obstacle);
	add_name(out, "counters", "{");
	print_counters(&r, 0, COUNTERS);
	BUF_ADD(out, "},\"bucket_bounds_us\":[");
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS - 1; i++) {
		next(out, "");
		buf_add_u64(out, histogram_to(i));
	}
	BUF_ADD(out, "],\"latency\":[");
	print_classes(&r);
	BUF_ADD(out, "],\"servers\":[");
	print_servers(&r, true, true);
	BUF_ADD(out, "],\"rules\":[");
	print_rules(&r);
	BUF_ADD(out, "]");
	print_hot_keys(&r, HOT_BY_REQUESTS);
	print_hot_keys(&r, HOT_BY_BYTES);
	BUF_ADD(out, ",\"largest\":[");
	print_largest(&r);
	BUF_ADD(out, "],\"slow\":[");
	print_slow(&r);
	BUF_ADD(out, "]");
	print_timeline(&r, timeline);
	BUF_ADD(out, "}\n");
}

void report_metrics(struct daemon *d, const char *obstacle, struct buf *out)
{
	struct report r = { d, d->meters[0], FORMAT_METRICS, out, "" };

	print_daemon(&r, obstacle);
	print_counters(&r, 0, COUNTERS);
	print_classes(&r);
	print_rule_metrics(&r);
	print_server_metrics(&r);
}
