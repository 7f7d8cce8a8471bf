/* The event commands among themselves. */
#ifndef COMMAND_EVENT_H
#define COMMAND_EVENT_H

#include "collection/tally.h"
#include "command/task.h"

/* One each of the commands that read; the type's keys fit. */
void event_count(struct host *host, const struct request *request, void *owner);
void event_range(struct host *host, const struct request *request, void *owner);
void event_last(struct host *host, const struct request *request, void *owner);

/* What a word of the request means, as tally_parse has it; an empty one is `now`. */
bool event_buckets(const struct host *host, const struct event_rule *rule, struct slice word, struct tally_range *out);

#endif
