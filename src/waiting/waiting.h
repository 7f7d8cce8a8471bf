/*
 * Clients that block on empty lists: blpop, brpop, blmpop, blmove and blhold. A room has the
 * blocked commands of one worker, with a queue for each of their keys. The first command in the
 * queue of a key pops next, as soon as the list may have an element:
 *
 *     a push by this worker           waiting_pushed, at once
 *     a push by another worker        waiting_look: the board (push_board.h) shows the keys
 *     a push through another proxy    polls.h: one read for all commands in the queue
 *     the time of a held element      polls.h: an attempt
 *
 * So the load on the servers does not grow with the number of blocked clients.
 *
 *     waiting.c   the room: who may enter, the timer, timeouts, and clients that are gone
 *     blocked.c   a command that joins queues, leaves them, and is woken
 *     polls.c     when the servers are polled, and which clients their replies wake
 *     lines.c     the table of the queues
 */
#ifndef WAITING_WAITING_H
#define WAITING_WAITING_H

#include <stdbool.h>
#include <stddef.h>

#include "util/slice.h"

struct blocked;
struct env;
struct push_board;
struct waiting;

/*
 * Creates an empty room. Borrows the pointers until waiting_destroy. All commands that block in
 * rooms with the same board have at most `max` keys together; each key of each command counts.
 * At most `calls_max` calls are in flight, as host.calls_max. `tell` makes other workers look
 * at the board, which may have changed; NULL: there are none.
 */
struct waiting *waiting_create(struct env *env, struct push_board *board, size_t max,
	size_t calls_max, void (*tell)(struct env *env));

/* Requires waiting_idle. */
void waiting_destroy(struct waiting *waiting);

/* Returns the number of blocked commands. */
size_t waiting_count(const struct waiting *waiting);

/* Returns whether no command is blocked and no call is in flight. */
bool waiting_idle(const struct waiting *waiting);

/* Returns whether commands are queued for the list `key`. */
bool waiting_has(const struct waiting *waiting, struct slice key);

/*
 * Queues a command for each of its keys, or ends it if it must not block any more. It may have
 * ended, or be about to pop, when this returns. Returns false and does nothing if there are too
 * many keys already.
 */
bool waiting_block(struct waiting *waiting, struct blocked *blocked)
	__attribute__((warn_unused_result));

/* Must be called when this worker has pushed to the list `key`. */
void waiting_pushed(struct waiting *waiting, struct slice key);

/*
 * Must be called when the list `key` has no elements, but may get some in `ms` milliseconds without
 * a write.
 */
void waiting_due(struct waiting *waiting, struct slice key, uint64_t ms);

/* Must be called when another worker may have pushed to a list. */
void waiting_look(struct waiting *waiting);

/*
 * Ends all blocked commands, many of them in later slices, and all that would block from now
 * on.
 */
void waiting_end(struct waiting *waiting);

#endif
