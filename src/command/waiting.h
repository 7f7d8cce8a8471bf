/*
 * Clients that block on empty lists: blpop, brpop and blmove. Such a task pops like lpop. If
 * all its lists are empty, it is queued on each of its keys. The first task in the queue of a
 * key pops next, as soon as the list may have an element:
 *
 *     a push by this worker           waiting_pushed, at once
 *     a push by another worker        waiting_look: the board (push_board.h) shows the keys
 *     a push through another proxy    one read of the presence and CAS id of the key for all tasks
 *                                     queued on it, after pauses that grow from 5 to 250 ms; one
 *                                     worker polls for all, and puts the changes on the board
 *
 * So the load on the servers does not grow with the number of blocked clients. A task that
 * times out replies END.
 */
#ifndef COMMAND_WAITING_H
#define COMMAND_WAITING_H

#include <stdbool.h>
#include <stddef.h>

#include "util/slice.h"

struct host;
struct push_board;
struct waiting;

/*
 * Creates the queues; borrows both pointers until waiting_destroy. At most `max` tasks may
 * block, in all rooms that share the board; more are refused. `board` may be NULL.
 */
struct waiting *waiting_create(struct host *host, struct push_board *board, size_t max);

/* Requires waiting_idle. */
void waiting_destroy(struct waiting *waiting);

/* Returns the number of blocked tasks. */
size_t waiting_count(const struct waiting *waiting);

/* Returns whether no task is blocked and no call is in flight. */
bool waiting_idle(const struct waiting *waiting);

/* Must be called when this worker has pushed to the list `key`. */
void waiting_pushed(struct waiting *waiting, struct slice key);

/* Must be called when another worker may have pushed to a list. */
void waiting_look(struct waiting *waiting);

/* Replies END to all blocked tasks, and to all tasks that would block from now on. */
void waiting_end(struct waiting *waiting);

#endif
