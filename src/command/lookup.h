/*
 * Counts hits and misses of memcached's own commands, one for each key, under memcached's
 * rules. Commands on sets, lists and events are not counted.
 */
#ifndef COMMAND_LOOKUP_H
#define COMMAND_LOOKUP_H

#include "collection/op.h"
#include "protocol/call.h"
#include "protocol/metaflags.h"

struct command;
struct task;

enum lookup_counter {
#define LOOKUP(name, ...) LOOKUP_##name,
#include "measure/facts.def"
	LOOKUPS
};

/* The result for one key of a task. Failures are not counted. */
enum lookup_end { LOOKUP_HIT, LOOKUP_MISS, LOOKUP_CHANGED };

/* Returns whether tasks of this command count their keys themselves; false for NULL. */
bool lookup_counts(const struct command *command);

void lookup_count(const struct task *task, struct slice key, enum lookup_end end);
void lookup_result(const struct task *task, struct slice key, const struct result *result);
/* Counts the result of a task with one key. */
void lookup_outcome(const struct task *task, enum outcome_status status);

/* Counts a meta command with these flags that was answered with this code. */
void lookup_meta(
	const struct task *task, const struct metaflags *flags, bool decrements, struct slice code);

#endif
