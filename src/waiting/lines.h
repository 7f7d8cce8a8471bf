/*
 * The queue of each key, in a hash table that grows by one bucket at a time, so that no command
 * pays for all. Idle queues wait for their next poll in lists, one for each length of the pause.
 */
#ifndef WAITING_LINES_H
#define WAITING_LINES_H

#include "waiting/room.h"

/* Milliseconds between two polls of a key, which grow while its list stays empty. */
extern const unsigned lines_pauses[ROOM_PAUSES];

struct wait_line *lines_find(const struct waiting *room, struct slice key);

/* Finds or creates a queue; it is polled for the first time after the shortest pause. */
struct wait_line *lines_get(struct waiting *room, struct slice key);

/* Frees the queue if it is not in use any more. */
void lines_settle(struct wait_line *line);

/* Polls the queue after this pause, an index of lines_pauses. lines_take cancels that. */
void lines_plan(struct wait_line *line, unsigned pause);
void lines_take(struct wait_line *line);

#endif
