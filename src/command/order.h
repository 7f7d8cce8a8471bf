/*
 * Ordering of the requests of a connection. Requests run in parallel, and lanes keep the order
 * of operations on one key. That is not enough for tasks that send more calls after they have
 * started. Until such a task is done, some later requests must wait:
 *
 *     staged reads     the task will read more keys; a later request must not change them first
 *     hidden writes    the task will write keys that are not known yet; a later read must see them
 *     later writes     the task will write more keys; no later request may start before that
 */
#ifndef COMMAND_ORDER_H
#define COMMAND_ORDER_H

#include "protocol/request.h"

/*
 * The number of keys that a request reads before the size of their values is known. A request
 * of more keys reads in stages.
 */
enum { ORDER_KEYS_FIRST = 32, ORDER_SETS_FIRST = 8 };

/*
 * Maximum calls in flight of a connection before its next request waits, which leaves other
 * clients their share of a server's queue; and the number of calls that is assumed for a
 * request that reads the counters of many buckets, or of a limit.
 */
enum { ORDER_CALLS_MAX = 4096, ORDER_EVENT_CALLS = 2048, ORDER_LIMIT_CALLS = 64 };

/*
 * The unfinished tasks of a connection: their number, the number of each kind, and the maximum
 * number of their calls in flight. Initially all zeroes.
 */
struct order {
	size_t tasks, calls, staged_reads, hidden_writes, later_writes;
};

/* The kinds of one task. Most tasks have none. */
struct order_effect {
	uint16_t calls;
	union {
		struct {
			bool stages_reads : 1, hides_writes : 1, writes_later : 1;
		};
		uint8_t kinds; /* All kinds, to test them in one step. */
	};
};

/*
 * The needs of a request whose keys are commands, as input of order.c. See
 * command/target.h.
 */
struct order_needs {
	uint16_t classes; /* A bit for the enum order_class of each of these requests. */
	struct order_effect effect;
	const struct command *inside; /* The command that a single key names, or NULL. */
};

/* Returns the effect of this request's task. A refused request has none. */
struct order_effect order_effect(const struct request *request);

/*
 * Returns the effect of a task of this command with `keys` keys; 0 if the command takes only
 * one key.
 */
struct order_effect order_effect_of(const struct command *command, size_t keys);

/* Count a task with this effect when it begins and when it is done. */
static inline void order_begin(struct order *order, struct order_effect effect)
{
	order->tasks++;
	order->calls += effect.calls;
	if (effect.kinds) {
		order->staged_reads += effect.stages_reads;
		order->hidden_writes += effect.hides_writes;
		order->later_writes += effect.writes_later;
	}
}

static inline void order_end(struct order *order, struct order_effect effect)
{
	order->tasks--;
	order->calls -= effect.calls;
	if (effect.kinds) {
		order->staged_reads -= effect.stages_reads;
		order->hidden_writes -= effect.hides_writes;
		order->later_writes -= effect.writes_later;
	}
}

/* Returns whether a request of this class must wait until all tasks are done. */
bool order_class_must_wait(const struct order *order, enum order_class class);

/* Returns whether this request must wait until all tasks are done. */
bool order_must_wait(const struct order *order, const struct request *request);

/* Returns whether requests of this class change anything. */
bool order_class_changes(enum order_class class);

#endif
