/*
 * Tracks which servers are down, for all workers together. So the log has one line when a
 * server goes down and one when it has returned, however many workers and requests notice it. A
 * server is down from the moment when the first worker loses its connection until all workers
 * are connected again.
 */
#ifndef UPSTREAM_NEWS_H
#define UPSTREAM_NEWS_H

#include <stdbool.h>
#include <stdint.h>

struct news;
struct news_entry;

struct news *news_create(void);
void news_destroy(struct news *news);

/*
 * Returns the entry of the server with this name, valid until news_destroy(). All functions
 * below may be called from any thread.
 */
struct news_entry *news_of(struct news *news, const char *name);

/*
 * Reports that a worker has lost its connection or, if `lost` is set because it had none
 * before, that an attempt to connect has failed. `now` is in milliseconds of a clock that all
 * workers share. Returns whether the server was not known to be down.
 */
bool news_fail(struct news_entry *e, bool lost, uint64_t now, const char *why);

/* What a new connection means: no change, the first one to this server, or the end of an outage. */
enum news_arrival { NEWS_NONE, NEWS_FIRST, NEWS_BACK };

/*
 * Reports that a worker is connected; `lost` is whether it had lost its connection before. For
 * NEWS_BACK, stores in `since` when the server went down.
 */
enum news_arrival news_arrive(struct news_entry *e, bool lost, uint64_t *since);

/* Reports that a worker that has lost its connection will not reconnect. */
void news_drop(struct news_entry *e);

struct news_outage {
	uint64_t since; /* Milliseconds, from the clock of news_fail(). */
	char why[160];  /* The last failure of any worker. */
};

/* Fills in when a server went down, and why. Returns false if it is not down. */
bool news_outage(struct news_entry *e, struct news_outage *outage);

#endif
