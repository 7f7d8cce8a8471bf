#include "measure/admin_measures.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "measure/measures.h"
#include "util/alloc.h"
#include "util/escape.h"

enum { SHOWN = 20 /* keys of each kind */ };

static void print_sum(const char *name, const struct histogram_sum *sum, struct buf *out)
{
	static const struct {
		const char *name;
		double part;
	} quantiles[] = { { "p50", 0.5 }, { "p90", 0.9 }, { "p99", 0.99 }, { "p999", 0.999 } };

	buf_printf(out, "STAT %s:count %" PRIu64 "\r\n", name, sum->count);
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
		buf_printf(out, "STAT %s:%s %" PRIu64 "\r\n", name, quantiles[i].name,
			histogram_quantile(sum, quantiles[i].part));
}

static void print_latency(struct daemon *d, const struct servers *servers, struct buf *out)
{
	for (unsigned class = 0; class < LATENCY_CLASSES; class ++) {
		struct histogram_sum sum = { .count = 0 };
		latency_collect(d, class, &sum);
		print_sum(latency_class_name(class), &sum, out);
	}
	for (int i = 0; i < servers_count(servers); i++) {
		struct histogram_sum sum = { .count = 0 };
		latency_collect_server(d, servers_get(servers, i)->name, &sum);
		print_sum(servers_get(servers, i)->name, &sum, out);
	}
}

static void print_hotkeys(struct daemon *d, struct buf *out)
{
	static const char *const names[HOTKEYS_KINDS] = { "requests", "bytes" };
	char text[ESCAPE_SIZE(TOPK_KEY)];
	struct hot_key keys[SHOWN];
	struct hot_keys_sum sum;

	buf_printf(out, "STAT sample %d\r\nSTAT half_life %d\r\n", TOPK_SAMPLE, HOTKEYS_HALF_LIFE);
	for (int by = 0; by < HOTKEYS_KINDS; by++) {
		size_t n = hotkeys_collect(d, (enum hotkeys_by)by, keys, SHOWN, &sum);
		if (by == 0)
			buf_printf(out, "STAT seconds %.3f\r\n", sum.seconds);
		buf_printf(out, "STAT %s %" PRIu64 "\r\n", names[by], sum.total);
		for (size_t i = 0; i < n; i++) {
			escape_text(text, slice_of(keys[i].key, keys[i].n), TOPK_KEY);
			buf_printf(out, "STAT %s:%zu %" PRIu64 " %s\r\n", names[by], i + 1, keys[i].weight, text);
		}
	}
}

static void print_largest(struct daemon *d, struct buf *out)
{
	struct large_collection list[SHOWN];
	size_t n = largest_collect(d, list, SHOWN);
	int64_t now = (int64_t)time(NULL);
	char text[ESCAPE_SIZE(LARGEST_KEY)];

	for (size_t i = 0; i < n; i++) {
		escape_text(text, slice_of(list[i].key, list[i].n), LARGEST_KEY);
		buf_printf(out, "STAT largest:%zu %" PRIu64 " %" PRIu64 " %" PRId64 " %s\r\n", i + 1, list[i].bytes,
			list[i].members, now > list[i].seen ? now - list[i].seen : 0, text);
	}
}

static const char *known(const char *text)
{
	return *text ? text : "-";
}

static void print_slow(struct daemon *d, struct buf *out)
{
	struct slow_request *list = xmalloc(SLOW_REQUESTS * sizeof(*list));
	uint64_t count;
	size_t n = slow_collect(d, list, SLOW_REQUESTS, &count);

	buf_printf(out, "STAT slow %" PRIu64 "\r\n", count);
	for (size_t i = 0; i < n; i++) {
		const struct slow_request *s = &list[i];
		buf_printf(out,
			"STAT slow:%zu %" PRIu64 ".%03u %s %s %s %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
			"\r\n",
			i + 1, s->time / 1000, (unsigned)(s->time % 1000), known(s->client), known(s->command),
			known(s->key), known(s->server), s->took, s->waited, s->on_server, s->on_client);
	}
	free(list);
}

bool admin_measures(struct daemon *d, const struct servers *servers, struct slice group, struct buf *out)
{
	if (slice_equal(group, SLICE("latency")))
		print_latency(d, servers, out);
	else if (slice_equal(group, SLICE("hotkeys")))
		print_hotkeys(d, out);
	else if (slice_equal(group, SLICE("largest")))
		print_largest(d, out);
	else if (slice_equal(group, SLICE("slow")))
		print_slow(d, out);
	else
		return false;
	return true;
}
