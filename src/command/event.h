/* The event commands among themselves. */
#ifndef COMMAND_EVENT_H
#define COMMAND_EVENT_H

#include "collection/event/time_bucket.h"
#include "command/start.h"
#include "command/task.h"

/* Refuses a request whose type is so long that the keys of its events would not fit; true when it did. */
bool event_refuses_type(struct host *host, const struct request *request, void *owner);

/* What a word of the request means, as time_bucket_parse has it; an empty one is `now`. */
bool event_buckets(
	const struct host *host, const struct event_rule *rule, struct slice word, struct time_bucket_range *out);

#endif
