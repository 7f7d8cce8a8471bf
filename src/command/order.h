/*
 * The order of the requests of a connection. They run in parallel, and lanes keep the order of operations on one key. That does
 * not suffice for tasks that send more calls after they have started. Until they are done, some requests must wait:
 *
 *     staged reads     a task will read more keys: a later request must not change them before
 *     hidden writes    a task will write keys that are not known yet: a later request must not miss them
 *     later writes     a task will write more keys: no later request may start before
 */
#ifndef COMMAND_ORDER_H
#define COMMAND_ORDER_H

#include "protocol/request.h"

/*
 * How many keys a request reads before it knows how large their values are. A request of more keys reads in stages.
 */
enum { ORDER_KEYS_FIRST = 32, ORDER_SETS_FIRST = 8 };

/*
 * The calls that a connection may have unanswered before its next request waits, so that it leaves other clients their share of a
 * server's queue; and the calls of a request that reads the counters of many buckets, or of those of a limit, as counted here.
 */
enum { ORDER_CALLS_MAX = 4096, ORDER_EVENT_CALLS = 2048, ORDER_LIMIT_CALLS = 64 };

/*
 * The numbers of unfinished tasks of a connection, and of those of each kind; and of the calls that they may have unanswered. All
 * zeroes at first.
 */
struct order {
	size_t tasks, calls, staged_reads, hidden_writes, later_writes;
};

/* The kinds of one task. Most have none of them. */
struct order_effect {
	uint16_t calls;
	union {
		struct {
			bool stages_reads : 1, hides_writes : 1, writes_later : 1;
		};
		uint8_t kinds; /* all of them, to be looked at in one step */
	};
};

/* The needs of a request whose keys stand for other requests: order.c asks for them. See command/target.h. */
struct order_needs {
	uint16_t classes; /* a bit for each enum order_class of these requests */
	struct order_effect effect;
	const struct command *inside; /* of one key: the command that it names, or NULL */
};

/* The effect of this request's task. A refused request has none. */
struct order_effect order_effect(const struct request *request);

/* The effect of a task of this command, with so many keys; 0 if it takes only one. */
struct order_effect order_effect_of(const struct command *command, size_t keys);

/* A task with this effect begins, is done. */
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

/* Whether a request of this class must not start before all tasks are done. */
bool order_class_must_wait(const struct order *order, enum order_class class);

/* Whether this request must not start before all tasks are done. */
bool order_must_wait(const struct order *order, const struct request *request);

/* Whether requests of this class change anything. */
bool order_class_changes(enum order_class class);

#endif
