#include "upstream/server_news.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "upstream/greeting.h"
#include "util/alloc.h"
#include "util/log.h"

struct entry {
	struct entry *next;
	char *name;
	unsigned lost; /* workers without a connection */
	bool known;    /* a worker had a connection */
	bool down;     /* as the log says */
	uint64_t since;
};

struct server_news {
	pthread_mutex_t lock;
	struct entry *entries;
};

struct server_news *server_news_create(void)
{
	struct server_news *news = xcalloc(1, sizeof(*news));

	pthread_mutex_init(&news->lock, NULL);
	return news;
}

void server_news_destroy(struct server_news *news)
{
	struct entry *e;

	while ((e = news->entries)) {
		news->entries = e->next;
		free(e->name);
		free(e);
	}
	pthread_mutex_destroy(&news->lock);
	free(news);
}

static struct entry *entry_of(struct server_news *news, const char *name)
{
	struct entry *e = news->entries;

	while (e && strcmp(e->name, name) != 0)
		e = e->next;
	if (!e) {
		e = xcalloc(1, sizeof(*e));
		e->name = xstrdup(name);
		e->next = news->entries;
		news->entries = e;
	}
	return e;
}

/* Whether it is news that a worker has no connection. */
static bool lose(struct server_news *news, const struct server_failure *f)
{
	struct entry *e;
	bool is_news;

	pthread_mutex_lock(&news->lock);
	e = entry_of(news, f->name);
	e->lost++;
	is_news = !e->down;
	e->down = true;
	if (is_news)
		e->since = f->now;
	pthread_mutex_unlock(&news->lock);
	return is_news;
}

void server_news_failed(struct server_news *news, const struct server_failure *f)
{
	bool is_news = !f->was_lost && lose(news, f);

	if (is_news && !f->was_told)
		log_warn("upstream %s: down: %s; %zu calls fail", f->name, f->why, f->calls);
	else if (f->was_lost && f->is_reason)
		log_warn("upstream %s: still down: %s", f->name, f->why);
	else
		log_debug("upstream %s: %s; %zu calls fail", f->name, f->why, f->calls);
}

enum arrival { KNOWN, FIRST, BACK };

static enum arrival arrive(struct server_news *news, const char *name, bool was_lost, uint64_t *down_since)
{
	enum arrival which = KNOWN;
	struct entry *e;

	pthread_mutex_lock(&news->lock);
	e = entry_of(news, name);
	e->lost -= was_lost;
	*down_since = e->since;
	if (e->down && e->lost == 0) {
		which = BACK;
		e->down = false;
	} else if (!e->down && !e->known) {
		which = FIRST;
	}
	e->known = true;
	pthread_mutex_unlock(&news->lock);
	return which;
}

void server_news_connected(struct server_news *news, const char *name, bool was_lost, uint64_t now,
	const struct greeting *g, size_t value_max)
{
	unsigned major = g->version >> 16, minor = g->version >> 8 & 255, patch = g->version & 255;
	uint64_t since;
	enum arrival which = arrive(news, name, was_lost, &since);

	if (which == KNOWN)
		return;
	if (which == BACK)
		log_warn("upstream %s: up again after %.3f s, version %u.%u.%u", name, (double)(now - since) / 1000,
			major, minor, patch);
	else
		log_info("upstream %s: up, version %u.%u.%u%s%s", name, major, minor, patch,
			g->meta ? "" : ", no meta commands", g->cas ? "" : ", no cas ids");
	if (g->item_max > value_max)
		log_warn("upstream %s: stores items of up to %llu bytes, but max_value is %zu: a larger item costs the "
			 "connection",
			name, (unsigned long long)g->item_max, value_max);
	if (!g->cas)
		log_warn("upstream %s: gives no cas ids (memcached -C): sets and lists cannot be rewritten", name);
}

void server_news_dropped(struct server_news *news, const char *name)
{
	struct entry *e;

	pthread_mutex_lock(&news->lock);
	e = entry_of(news, name);
	if (--e->lost == 0)
		e->down = e->known = false;
	pthread_mutex_unlock(&news->lock);
}
