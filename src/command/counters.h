/* The counters of some buckets of an event type, read all at once: one round trip to each server, however many they are. */
#ifndef COMMAND_COUNTERS_H
#define COMMAND_COUNTERS_H

#include "collection/event/time_bucket.h"
#include "command/host.h"
#include "util/buf.h"

struct counter;

struct counters {
	struct host *host;
	void (*done)(struct counters *counters); /* all were read, or `failure` says why not */
	struct buf *failure;                     /* the caller's: an error line, or empty */
	struct time_bucket_range range;
	size_t count, asked, answered, size;
	struct counter *all; /* in the order of their buckets */
};

/* Starts to read. `counters` stays where it is until `done`; `type` is borrowed for the call. */
void counters_read(struct counters *counters, struct host *host, const struct event_rule *rule, struct slice type,
	struct time_bucket_range range, struct buf *failure, void (*done)(struct counters *counters));

/* What a bucket's counter says, 0 where there is none. */
uint64_t counters_get(const struct counters *counters, int64_t bucket);

/* Gives the memory back, when all were read. */
void counters_free(struct counters *counters);

#endif
