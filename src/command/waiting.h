/*
 * Clients that wait for elements of lists: blpop, brpop and blmove. Such a task pops as lpop does; if all its lists are empty, it waits in the line
 * of each of their keys. The first in the line of a key pops next, once there may be something:
 *
 *     a push of this worker           waiting_pushed, at once
 *     a push of another worker        waiting_look: the board (push_board.h) shows for which keys
 *     a push through another proxy    a read of the presence and cas id of the key, for all who wait for it together, after pauses
 *                                     that grow from 5 to 250 ms; one worker asks for all, and what it sees is on the board
 *
 * So a client that waits costs the servers nothing of its own. When its time is over, its reply is END.
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
 * Borrows both until waiting_destroy. At most `max` tasks wait, of all rooms that share the board; more are refused. `board` may be NULL.
 */
struct waiting *waiting_create(struct host *host, struct push_board *board, size_t max);

/* Requires waiting_idle. */
void waiting_destroy(struct waiting *waiting);

/* How many tasks wait. */
size_t waiting_count(const struct waiting *waiting);

/* Whether no task waits, and no call is under way. */
bool waiting_idle(const struct waiting *waiting);

/* Somebody has pushed to this list. */
void waiting_pushed(struct waiting *waiting, struct slice key);

/* Somebody has pushed to a list through another worker. */
void waiting_look(struct waiting *waiting);

/* All tasks that wait reply END. So do those that would wait from now on. */
void waiting_end(struct waiting *waiting);

#endif
