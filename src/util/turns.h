/*
 * Schedules access to a shared resource, such as a server's connection or the processor.
 * Clients that must wait are queued. Each turn is worth a number of units, which are bytes or
 * microseconds; a client that has taken more pays with its next turns. So clients get equal
 * shares, however much each takes at once.
 *
 * A client that has had no turn yet is queued separately, and every second turn is given to
 * that queue. So a new client is not delayed by the clients with very large requests.
 *
 * This is deficit round robin (Shreedhar and Varghese, 1995), with the debt of surplus round
 * robin, and new flows as in RFC 8290.
 */
#ifndef UTIL_TURNS_H
#define UTIL_TURNS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* The place of one client, to be embedded. Initially all zeroes. */
struct turn {
	TAILQ_ENTRY(turn) link;
	int64_t credit; /* Units that it may still take; negative if it has a debt. */
	bool waits;     /* It is queued. */
	bool is_known;  /* It has taken units before. */
	bool was_known; /* Value of `is_known` when it was queued, which determines its queue. */
};

TAILQ_HEAD(turn_list, turn);

/* The queues for one resource. */
struct turns {
	struct turn_list known, fresh;
	int64_t worth;       /* Units of each turn. */
	bool fresh_had_last; /* The last turn was given to a new client. */
};

void turns_init(struct turns *turns, int64_t worth);

/* Returns whether no client is queued. */
bool turns_are_empty(const struct turns *turns);

/*
 * Queues a client, which must not be queued yet. Borrows `turn` until turns_leave(), or until
 * turns_next() returns it.
 */
void turns_wait(struct turns *turns, struct turn *turn);

/* Removes a client from its queue. */
void turns_leave(struct turns *turns, struct turn *turn);

/*
 * Removes the next client from its queue and returns it, with a credit above 0. Returns NULL if
 * no client is queued.
 */
struct turn *turns_next(struct turns *turns);

/* Charges a client for units that it takes; it may be queued. */
void turn_charge(struct turn *turn, uint64_t units);

/* Records that a client takes units while no other client is queued: its debt is cancelled. */
void turn_free_of_charge(struct turn *turn);

#endif
