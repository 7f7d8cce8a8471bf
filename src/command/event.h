/* What the event commands share. */
#ifndef COMMAND_EVENT_H
#define COMMAND_EVENT_H

#include "collection/event/time_bucket.h"
#include "command/start.h"
#include "command/task.h"

/* Whether the type is so long that the keys of its events would exceed KEY_MAX. */
bool event_is_too_long(const struct host *host, struct slice type);

/* Parses the name of a bucket or range, as time_bucket_parse. An empty word means `now`. False if it is invalid. */
bool event_buckets(
	const struct host *host, const struct event_rule *rule, struct slice word, struct time_bucket_range *out);

/*
 * memcached's own commands on a type of events, for clients that have no others. If a rule says `plain_verbs`, incr counts events, set
 * stores one, and get reads the count of the present bucket.
 */

/* Starts a storage command, arithmetic, delete or touch on a key that is TARGET_EVENTS. */
void event_plain_start(struct host *host, const struct request *request, void *owner);

/* Carries out a GET or GAT on such a key: of its counter, whose value is 0 if it is missing. The waiter is as in env.call. */
void event_plain_read(struct host *host, const struct call *call, struct waiter *waiter);

#endif
