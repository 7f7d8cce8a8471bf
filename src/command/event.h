/* Start functions of the commands on events, called by event_start. */
#ifndef COMMAND_EVENT_H
#define COMMAND_EVENT_H

#include "collection/event/time_bucket.h"
#include "command/task.h"

/*
 * Starts a command on a type of events. Returns NULL, or the error line with which to refuse
 * the request.
 */
typedef const char *event_starter(struct host *host, const struct request *request, void *owner,
	const struct event_rule *rule);

/* Returns the error line of a type that cannot be counted by its rule, or NULL. */
const char *event_refuse_type(
	const struct rules *rules, struct slice type, const struct event_rule *rule);

/* evincr, evadd; evlimit; evcount, evrange, evlast, evtop. */
event_starter event_count_start, event_store_start, event_limit_start;
event_starter event_counts_start, event_range_start, event_last_start, event_top_start;

#endif
