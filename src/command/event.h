/* What the event commands share. */
#ifndef COMMAND_EVENT_H
#define COMMAND_EVENT_H

#include "collection/event/time_bucket.h"
#include "command/start.h"
#include "command/task.h"

/* If the type is so long that the keys of its events would exceed KEY_MAX: refuses the request, and gives true. */
bool event_refuses_type(struct host *host, const struct request *request, void *owner);

/* Parses the name of a bucket or range, as time_bucket_parse. An empty word means `now`. False if it is invalid. */
bool event_buckets(
	const struct host *host, const struct event_rule *rule, struct slice word, struct time_bucket_range *out);

#endif
