/*
 * Counts hits and misses of memcached's own commands, one for each key, as memcached does. Commands of sets, lists and events count
 * none.
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

/* What became of one key of a task. Failures are not counted. */
enum lookup_end { LOOKUP_HIT, LOOKUP_MISS, LOOKUP_CHANGED };

/* Whether tasks of this command count their keys themselves; false for NULL. */
bool lookup_counts(const struct command *command);

void lookup_count(const struct task *task, struct slice key, enum lookup_end end);
void lookup_result(const struct task *task, struct slice key, const struct result *result);
/* For a task with one key. */
void lookup_outcome(const struct task *task, enum outcome_status status);

/* A meta command with these flags, which are also in its line, was answered with a line that begins with the code. */
void lookup_meta(const struct task *task, const struct metaflags *flags, bool decrements, struct slice code);

#endif
