/*
 * Which servers are down, for all workers together: so the log has one line when a server goes down, and one when it has returned,
 * however many workers and requests notice. It is down when the first worker has lost its connection, until all have one again.
 *
 * All functions may be called from any thread. Servers are known by their names. Times are milliseconds of the monotonic clock.
 */
#ifndef UPSTREAM_SERVER_NEWS_H
#define UPSTREAM_SERVER_NEWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct greeting;
struct server_news;

struct server_news *server_news_create(void);
void server_news_destroy(struct server_news *news);

/* A worker has lost its connection, or failed to make one. All is borrowed. */
struct server_failure {
	const char *name, *why;
	uint64_t now;
	size_t calls;   /* that fail */
	bool was_lost;  /* the worker has reported that it has no connection */
	bool was_told;  /* the log says why already */
	bool is_reason; /* the reason is worth a line though the server is down */
};

void server_news_failed(struct server_news *news, const struct server_failure *failure);

/*
 * A worker has a connection, on which this is the greeting. `was_lost` is as in struct server_failure. If it is news, what the server
 * lacks is logged as well.
 */
void server_news_connected(struct server_news *news, const char *name, bool was_lost, uint64_t now,
	const struct greeting *greeting, size_t value_max);

/* A worker that had reported that it has no connection wants none any more. */
void server_news_dropped(struct server_news *news, const char *name);

#endif
