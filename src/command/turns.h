/*
 * Whose turn it is to ask a server for large values. Clients that must wait stand in line. Each turn is worth TURN_BYTES, and a
 * client that has taken more pays with its next turns. So clients get equal bytes, however large their values are.
 *
 * A client that has had no turn yet stands in another line, and every second turn goes to that line. So a new client does not wait
 * behind the clients that ask for very much.
 *
 * This is deficit round robin (Shreedhar and Varghese, 1995), with the debt of surplus round robin, and new flows as in RFC 8290.
 */
#ifndef COMMAND_TURNS_H
#define COMMAND_TURNS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

enum { TURN_BYTES = 1 << 20 };

/* One client's place, to be embedded. All zeroes at first. */
struct turn {
	TAILQ_ENTRY(turn) link;
	int64_t credit; /* bytes that it may still ask for; below 0: its debt */
	bool waits;     /* stands in line */
	bool is_known;  /* has asked before */
};

TAILQ_HEAD(turn_list, turn);

/* The lines of one server. */
struct turns {
	struct turn_list known, fresh;
	bool fresh_had_last; /* the last turn went to a new client */
};

void turns_init(struct turns *turns);

/* Whether no client stands in line. */
bool turns_are_empty(const struct turns *turns);

/* Puts one in line, which must not stand in any. Borrows it until it leaves, or until turns_next gives it. */
void turns_wait(struct turns *turns, struct turn *turn);

/* Takes one out of the line in which it stands. */
void turns_leave(struct turns *turns, struct turn *turn);

/* Takes the next one out of its line, and gives it with a credit above 0. NULL if no client stands in line. */
struct turn *turns_next(struct turns *turns);

/* It asks for this number of bytes. */
void turn_charge(struct turn *turn, uint64_t bytes);

/* It asks while no other client waits: it owes nothing. */
void turn_free_of_charge(struct turn *turn);

#endif
