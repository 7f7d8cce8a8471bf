#include "upstream/news.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/alloc.h"

struct news_entry {
	struct news *news;
	struct news_entry *next;
	char *name;
	unsigned lost; /* Number of workers without a connection. */
	bool known;    /* A worker has been connected before. */
	bool down;     /* The server was logged as down. */
	struct news_outage outage;
};

struct news {
	pthread_mutex_t lock;
	struct news_entry *entries;
};

struct news *news_create(void)
{
	struct news *news = xcalloc(1, sizeof(*news));

	pthread_mutex_init(&news->lock, NULL);
	return news;
}

void news_destroy(struct news *news)
{
	struct news_entry *e;

	while ((e = news->entries)) {
		news->entries = e->next;
		free(e->name);
		free(e);
	}
	pthread_mutex_destroy(&news->lock);
	free(news);
}

struct news_entry *news_of(struct news *news, const char *name)
{
	struct news_entry *e;

	pthread_mutex_lock(&news->lock);
	e = news->entries;
	while (e && strcmp(e->name, name) != 0)
		e = e->next;
	if (!e) {
		e = xcalloc(1, sizeof(*e));
		e->news = news;
		e->name = xstrdup(name);
		e->next = news->entries;
		news->entries = e;
	}
	pthread_mutex_unlock(&news->lock);
	return e;
}

bool news_fail(struct news_entry *e, bool lost, uint64_t now, const char *why)
{
	bool is_news;

	pthread_mutex_lock(&e->news->lock);
	is_news = !lost && !e->down;
	e->lost += !lost;
	e->down = true;
	if (is_news)
		e->outage.since = now;
	snprintf(e->outage.why, sizeof(e->outage.why), "%s", why);
	pthread_mutex_unlock(&e->news->lock);
	return is_news;
}

enum news_arrival news_arrive(struct news_entry *e, bool lost, uint64_t *since)
{
	enum news_arrival which = NEWS_NONE;

	pthread_mutex_lock(&e->news->lock);
	e->lost -= lost;
	*since = e->outage.since;
	if (e->down && e->lost == 0) {
		which = NEWS_BACK;
		e->down = false;
	} else if (!e->down && !e->known) {
		which = NEWS_FIRST;
	}
	e->known = true;
	pthread_mutex_unlock(&e->news->lock);
	return which;
}

void news_drop(struct news_entry *e)
{
	pthread_mutex_lock(&e->news->lock);
	if (--e->lost == 0)
		e->down = e->known = false;
	pthread_mutex_unlock(&e->news->lock);
}

bool news_outage(struct news_entry *e, struct news_outage *outage)
{
	bool down;

	pthread_mutex_lock(&e->news->lock);
	down = e->down;
	*outage = e->outage;
	pthread_mutex_unlock(&e->news->lock);
	return down;
}
