/*
 * Polls of the servers, which detect pushes through other proxies: one read of the presence and
 * CAS id of a key, for all commands that are queued for it, after pauses that grow from 5 to
 * 250 ms. One worker polls for all, and puts the changes on the board.
 *
 * All workers of a process together send at most POLLS_MOST polls a second. Each worker has a
 * share in proportion to its queues, and polls the one first that has been due longest. So no
 * key is polled later than 250 ms and one second for each POLLS_MOST keys after its last poll.
 */
#ifndef WAITING_POLLS_H
#define WAITING_POLLS_H

#include <stdint.h>

struct waiting;

enum { POLLS_MOST = 10000 };

/* Sends the polls that are due and permitted. */
void polls_send(struct waiting *room);

/* Returns the time of the next poll, in the time of env.now, at most `latest`. */
uint64_t polls_next(const struct waiting *room, uint64_t latest);

#endif
