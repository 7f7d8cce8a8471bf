/*
 * Reports the changes of a server's connection, in the log and to the other workers, which all
 * connect to the server: what one has reported is no news for the others.
 */
#ifndef UPSTREAM_SERVER_TELL_H
#define UPSTREAM_SERVER_TELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct greeting;

/* The last reports about a server, in the log and to other workers. */
struct server_told {
	struct news_entry *news;
	bool lost;         /* The loss of the connection was reported to `news`. */
	bool refused;      /* The refusal of the login was logged. */
	char refusal[160]; /* Last TLS failure since the server was up; "" for none. */
};

/*
 * Reports that the worker has lost its connection with this number of calls in flight, or failed
 * to establish one. `name` is the server's; `now` is in milliseconds of the loop's clock.
 */
void server_tell_failure(
	struct server_told *told, const char *name, uint64_t now, size_t calls, const char *why);

/*
 * Reports that the worker is connected. If that is news, missing features of the server are
 * logged as well, and that it stores items larger than `value_max`.
 */
void server_tell_connected(struct server_told *told, const char *name, uint64_t now,
	const struct greeting *g, size_t value_max);

/*
 * Reports a TLS failure, once for each reason. A server that was down for another reason may
 * return with a certificate that is refused. If it is `expected`, it is only noted.
 */
void server_tell_refusal(
	struct server_told *told, const char *name, bool expected, const char *why);

#endif
