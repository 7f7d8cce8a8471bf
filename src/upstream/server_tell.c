#include "upstream/server_tell.h"

#include <stdio.h>
#include <string.h>

#include "upstream/greeting.h"
#include "upstream/news.h"
#include "util/log.h"

void server_tell_failure(
	struct server_told *told, const char *name, uint64_t now, size_t calls, const char *why)
{
	bool is_news = news_fail(told->news, told->lost, now, why);
	const char *fail = calls == 1 ? "call failed" : "calls failed";

	if (is_news && !told->refused)
		log_warn("upstream %s: down: %s; %zu %s", name, why, calls, fail);
	else
		log_debug("upstream %s: %s; %zu %s", name, why, calls, fail);
	told->lost = true;
}

void server_tell_connected(struct server_told *told, const char *name, uint64_t now,
	const struct greeting *g, size_t value_max)
{
	unsigned major = g->version >> 16, minor = g->version >> 8 & 255, patch = g->version & 255;
	uint64_t since;
	enum news_arrival which = news_arrive(told->news, told->lost, &since);

	told->lost = false;
	if (which == NEWS_NONE)
		return;
	if (which == NEWS_BACK)
		log_warn("upstream %s: up again after %.3f s, version %u.%u.%u", name,
			(double)(now - since) / 1000, major, minor, patch);
	else
		log_info("upstream %s: up, version %u.%u.%u%s%s", name, major, minor, patch,
			g->meta ? "" : ", no meta commands", g->cas ? "" : ", no cas ids");
	if (g->item_max > value_max)
		log_warn("upstream %s: stores items of up to %llu bytes, but max_value is %zu: a "
			 "larger item closes the "
			 "connection",
			name, (unsigned long long)g->item_max, value_max);
	if (!g->cas)
		log_warn("upstream %s: returns no cas ids (memcached -C): sets and lists cannot be "
			 "rewritten",
			name);
}

void server_tell_refusal(struct server_told *told, const char *name, bool expected, const char *why)
{
	if (!expected && strcmp(told->refusal, why) != 0)
		log_warn("upstream %s: %s", name, why);
	snprintf(told->refusal, sizeof(told->refusal), "%s", why);
}
