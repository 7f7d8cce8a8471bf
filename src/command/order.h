/*
 * What a request must wait for on its connection. Requests of one connection are carried out at once, and operations on one key
 * keep their order in its lane. That is not enough for two kinds of tasks, which go on sending calls after they started:
 *
 *     staged reads    a task that will ask for more keys must not see what a later request changes
 *     hidden writes   a task that will write keys which nobody can know yet must not be missed by a later request
 */
#ifndef COMMAND_ORDER_H
#define COMMAND_ORDER_H

#include "protocol/request.h"

/*
 * How many keys are asked for before it is known how large their values are: beyond that a request asks in stages. Sets may be
 * large.
 */
enum { ORDER_KEYS_FIRST = 32, ORDER_SETS_FIRST = 8 };

/*
 * Calls that one connection may have under way before its next request waits, so that it leaves others their share of a
 * server's queue; and those of a request for events, which asks for the counters of many buckets.
 */
enum { ORDER_CALLS_MAX = 4096, ORDER_EVENT_CALLS = 512 };

/* The tasks under way of one connection, and the calls that they may have under way. All zeroes for none. */
struct order {
	size_t tasks, calls, staged_reads, hidden_writes;
};

/* What a task adds to that. */
struct order_effect {
	bool stages_reads, hides_writes;
	uint16_t calls;
};

/* The effect of a task for this request. A request that was refused has none. */
struct order_effect order_effect(const struct request *request);

void order_begin(struct order *order, struct order_effect effect);
void order_end(struct order *order, struct order_effect effect);

/* Whether all tasks under way must end before this command starts. */
bool order_must_wait(const struct order *order, const struct command *command);

#endif
