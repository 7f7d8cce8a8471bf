#include "measure/stats_json.h"

#include <inttypes.h>
#include <sys/time.h>
#include <unistd.h>

#include "measure/measures.h"
#include "measure/process_facts.h"
#include "util/alloc.h"
#include "util/escape.h"

enum { SHOWN = 20 /* keys of each kind, and slow requests */ };

/* --- the format --- */

/* Texts are ASCII without control bytes, or become so: they are names of servers, keys that were escaped, and our own. */
static void add_text(struct buf *out, const char *text)
{
	BUF_ADD(out, "\"");
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;
		if (byte == '"' || byte == '\\')
			buf_printf(out, "\\%c", byte);
		else if (byte < ' ' || byte >= 0x7f)
			buf_printf(out, "\\u%04x", byte);
		else
			buf_add(out, text, 1);
	}
	BUF_ADD(out, "\"");
}

/* A comma before each member but the first one. */
static void next(struct buf *out)
{
	struct slice s = buf_slice(out);

	if (s.p[s.n - 1] != '{' && s.p[s.n - 1] != '[')
		BUF_ADD(out, ",");
}

static void add_name(struct buf *out, const char *name)
{
	next(out);
	buf_printf(out, "\"%s\":", name);
}

static void add_number(struct buf *out, const char *name, uint64_t value)
{
	add_name(out, name);
	buf_add_u64(out, value);
}

static void add_string(struct buf *out, const char *name, const char *text)
{
	add_name(out, name);
	add_text(out, text);
}

static void add_version(struct buf *out, const char *name, unsigned v)
{
	add_name(out, name);
	buf_printf(out, "\"%u.%u.%u\"", v >> 16, v >> 8 & 255, v & 255);
}

/* A key of a client, in which any byte may be. */
static void add_key(struct buf *out, struct slice key)
{
	char text[ESCAPE_SIZE(TOPK_KEY)];

	escape_text(text, key, TOPK_KEY);
	add_string(out, "key", text);
}

/* --- parts --- */

static void add_counters(const struct snapshot *s, struct buf *out)
{
	add_name(out, "counters");
	BUF_ADD(out, "{");
	for (enum counter i = 0; i < COUNTERS; i++)
		add_number(out, snapshot_counter_name(i), s->counters[i]);
	BUF_ADD(out, "}");
}

/* Only the buckets that have anything, with their numbers. */
static void add_latency(struct buf *out, const struct histogram_sum *sum)
{
	add_number(out, "count", sum->count);
	add_number(out, "sum_us", sum->total);
	add_number(out, "p50_us", histogram_quantile(sum, 0.5));
	add_number(out, "p90_us", histogram_quantile(sum, 0.9));
	add_number(out, "p99_us", histogram_quantile(sum, 0.99));
	add_number(out, "p999_us", histogram_quantile(sum, 0.999));
	add_name(out, "buckets");
	BUF_ADD(out, "[");
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (!sum->counts[i])
			continue;
		next(out);
		buf_printf(out, "[%u,%" PRIu64 "]", i, sum->counts[i]);
	}
	BUF_ADD(out, "]");
}

static void add_bounds(struct buf *out)
{
	add_name(out, "bucket_bounds_us");
	BUF_ADD(out, "[");
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS - 1; i++) {
		next(out);
		buf_add_u64(out, histogram_to(i));
	}
	BUF_ADD(out, "]");
}

static void add_classes(struct daemon *d, struct buf *out)
{
	add_name(out, "latency");
	BUF_ADD(out, "[");
	for (unsigned class = 0; class < LATENCY_CLASSES; class ++) {
		struct histogram_sum sum = { .count = 0 };
		latency_collect(d, class, &sum);
		next(out);
		BUF_ADD(out, "{");
		add_string(out, "class", latency_class_name(class));
		add_latency(out, &sum);
		BUF_ADD(out, "}");
	}
	BUF_ADD(out, "]");
}

static void add_servers(struct daemon *d, struct buf *out)
{
	size_t count;
	struct snapshot_server *servers = snapshot_servers(d, d->workers[0], &count);

	add_name(out, "servers");
	BUF_ADD(out, "[");
	for (const struct snapshot_server *v = servers; v < servers + count; v++) {
		next(out);
		BUF_ADD(out, "{");
		add_string(out, "name", v->name);
		add_string(out, "state", v->up ? "up" : "down");
		add_version(out, "version", v->version);
		add_number(out, "connections", (uint64_t)v->up);
		add_number(out, "connects", v->connects);
		add_number(out, "calls", v->calls);
		add_number(out, "unavailable", v->unavailable);
		add_number(out, "busy", v->busy);
		add_number(out, "timeouts", v->timeouts);
		add_number(out, "lost_connections", v->lost);
		add_latency(out, &v->latency);
		BUF_ADD(out, "}");
	}
	BUF_ADD(out, "]");
	free(servers);
}

static void add_hot_keys(struct daemon *d, const char *name, enum hotkeys_by by, struct buf *out)
{
	struct hot_key keys[SHOWN];
	struct hot_keys_sum sum;
	size_t n = hotkeys_collect(d, by, keys, SHOWN, &sum);

	add_name(out, name);
	BUF_ADD(out, "{");
	add_number(out, "total", sum.total);
	add_name(out, "seconds");
	buf_printf(out, "%.3f", sum.seconds);
	add_name(out, "keys");
	BUF_ADD(out, "[");
	for (size_t i = 0; i < n; i++) {
		next(out);
		BUF_ADD(out, "{");
		add_key(out, slice_of(keys[i].key, keys[i].n));
		add_number(out, "weight", keys[i].weight);
		BUF_ADD(out, "}");
	}
	BUF_ADD(out, "]}");
}

static void add_largest(struct daemon *d, struct buf *out)
{
	struct large_collection list[SHOWN];
	size_t n = largest_collect(d, list, SHOWN);

	add_name(out, "largest");
	BUF_ADD(out, "[");
	for (size_t i = 0; i < n; i++) {
		next(out);
		BUF_ADD(out, "{");
		add_key(out, slice_of(list[i].key, list[i].n));
		add_number(out, "bytes", list[i].bytes);
		add_number(out, "members", list[i].members);
		add_number(out, "seen", (uint64_t)list[i].seen);
		BUF_ADD(out, "}");
	}
	BUF_ADD(out, "]");
}

static void add_slow(struct daemon *d, struct buf *out)
{
	struct slow_request *list = xmalloc(SLOW_REQUESTS * sizeof(*list));
	uint64_t count;
	size_t n = slow_collect(d, list, SLOW_REQUESTS, &count);

	add_name(out, "slow");
	BUF_ADD(out, "[");
	for (const struct slow_request *s = list; s < list + n; s++) {
		next(out);
		BUF_ADD(out, "{");
		add_number(out, "time_ms", s->time);
		add_string(out, "client", s->client);
		add_string(out, "command", s->command);
		add_string(out, "key", s->key);
		add_string(out, "server", s->server);
		add_number(out, "took_us", s->took);
		add_number(out, "waited_us", s->waited);
		add_number(out, "on_server_us", s->on_server);
		add_number(out, "on_client_us", s->on_client);
		BUF_ADD(out, "}");
	}
	BUF_ADD(out, "]");
	free(list);
}

static void add_general(const struct snapshot *s, const char *state, struct buf *out)
{
	struct timeval now;

	gettimeofday(&now, NULL);
	add_string(out, "version", DAEMON_VERSION);
	add_string(out, "state", state);
	add_number(out, "ready", s->ready);
	add_number(out, "pid", (uint64_t)getpid());
	add_number(out, "time_ms", (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_usec / 1000);
	add_number(out, "started", (uint64_t)s->started);
	add_name(out, "ring");
	buf_printf(out, "\"%016" PRIx64 "\"", s->ring);
	add_number(out, "threads", s->threads);
	add_number(out, "connections", s->connections);
	add_number(out, "connections_max", s->connections_max);
	add_number(out, "accepted", s->accepted);
	add_number(out, "rejected", s->rejected);
	add_number(out, "client_bytes", s->client_bytes);
	add_number(out, "client_bytes_max", s->client_bytes_max);
	add_number(out, "cache_bytes_max", s->cache_max);
	add_number(out, "resident_bytes", process_facts_memory());
	add_number(out, "slow_requests", s->slow);
}

void stats_json_print(struct daemon *d, const struct snapshot *s, const char *state, struct buf *out)
{
	BUF_ADD(out, "{");
	add_general(s, state, out);
	add_counters(s, out);
	add_bounds(out);
	add_classes(d, out);
	add_servers(d, out);
	add_hot_keys(d, "hot_by_requests", HOTKEYS_REQUESTS, out);
	add_hot_keys(d, "hot_by_bytes", HOTKEYS_BYTES, out);
	add_largest(d, out);
	add_slow(d, out);
	BUF_ADD(out, "}\n");
}
