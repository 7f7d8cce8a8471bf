/*
 * Sets of the types that were counted in a bucket, for evtop. A rule with `types` has one for each
 * bucket, under the key <prefix of the rule><separator><bucket><separator>types.
 *
 * A type is added when its counter passes 0, 16, 256 and further powers of 16. An addition after
 * the first one changes nothing, unless an earlier one was lost; and the more events of a type
 * there are, the more often it is repaired. No other event costs anything.
 */
#ifndef COMMAND_EVENT_TYPES_H
#define COMMAND_EVENT_TYPES_H

#include "collection/event/time_bucket.h"
#include "command/task.h"

/* Bytes of the longest key of such a set, for a prefix and a separator. */
static inline size_t event_types_key_size(const struct event_rule *rule)
{
	return rule->prefix.n + 2 * rule->separator.n + TIME_BUCKET_NAME_MAX + sizeof("types") - 1;
}

/* Writes the key of the set to `at`. Returns its end. `name` is that of the bucket. */
char *event_types_write_key(const struct event_rule *rule, struct slice name, char *at);

/*
 * Adds a type to the set of its bucket, if that is due after `counted`, a COUNT of the task whose
 * counter has become `number`. Returns false if not; else calls `done` later, also if it failed:
 * the event is counted.
 */
bool event_types_note(struct task *task, const struct event_rule *rule, const struct op *counted,
	uint64_t number, void (*done)(struct task *task));

#endif
