/*
 * Which servers are down, for all workers together. So the log has one line when a server goes down, and one when it has returned,
 * however many workers and requests notice. It is down when the first worker has lost its connection, until all have one again.
 */
#ifndef UPSTREAM_NEWS_H
#define UPSTREAM_NEWS_H

#include <stdbool.h>
#include <stdint.h>

struct news;
struct news_entry;

struct news *news_create(void);
void news_destroy(struct news *news);

/* The entry of the server with this name, until news_destroy. All functions below may be called from any thread. */
struct news_entry *news_of(struct news *news, const char *name);

/*
 * A worker has lost its connection; or, if it was `lost` before, its attempt to get one has failed. Gives whether it is news that the
 * server is down. `now` is in milliseconds, of a clock that all workers share.
 */
bool news_fail(struct news_entry *e, bool lost, uint64_t now, const char *why);

/* What a connection means: nothing new, the first one to this server, or that the server is back. */
enum news_arrival { NEWS_NONE, NEWS_FIRST, NEWS_BACK };

/* A worker, which had `lost` its connection, has one. `since` is when the server went down, if it is back. */
enum news_arrival news_arrive(struct news_entry *e, bool lost, uint64_t *since);

/* A worker that has lost its connection wants none any more. */
void news_drop(struct news_entry *e);

struct news_outage {
	uint64_t since; /* milliseconds, as news_fail has got them */
	char why[160];  /* the last failure of any worker */
};

/* Fills in since when a server is down, and why. Gives false if it is not down. */
bool news_outage(struct news_entry *e, struct news_outage *outage);

#endif
