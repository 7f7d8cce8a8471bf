/*
 * Whose turn it is to use what all share, such as a server's connection or the processor. Clients that must wait stand in line. Each
 * turn is worth a number of units, which are bytes or microseconds, and a client that has taken more pays with its next turns. So
 * clients get equal shares, however much each takes at once.
 *
 * A client that has had no turn yet stands in another line, and every second turn goes to that line. So a new client does not wait
 * behind the clients that ask for very much.
 *
 * This is deficit round robin (Shreedhar and Varghese, 1995), with the debt of surplus round robin, and new flows as in RFC 8290.
 */
#ifndef UTIL_TURNS_H
#define UTIL_TURNS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* One client's place, to be embedded. All zeroes at first. */
struct turn {
	TAILQ_ENTRY(turn) link;
	int64_t credit; /* units that it may still take; below 0: its debt */
	bool waits;     /* stands in line */
	bool is_known;  /* has taken some before */
	bool was_known; /* when it began to wait, which says in which line it stands */
};

TAILQ_HEAD(turn_list, turn);

/* The lines for one thing. */
struct turns {
	struct turn_list known, fresh;
	int64_t worth;       /* units of each turn */
	bool fresh_had_last; /* the last turn went to a new client */
};

void turns_init(struct turns *turns, int64_t worth);

/* Whether no client stands in line. */
bool turns_are_empty(const struct turns *turns);

/* Puts one in line, which must not stand in any. Borrows it until it leaves, or until turns_next gives it. */
void turns_wait(struct turns *turns, struct turn *turn);

/* Takes one out of the line in which it stands. */
void turns_leave(struct turns *turns, struct turn *turn);

/* Takes the next one out of its line, and gives it with a credit above 0. NULL if no client stands in line. */
struct turn *turns_next(struct turns *turns);

/* It takes so many units, also while it stands in line. */
void turn_charge(struct turn *turn, uint64_t units);

/* It takes some while no other client waits: it owes nothing. */
void turn_free_of_charge(struct turn *turn);

#endif
