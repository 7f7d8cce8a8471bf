/*
 * Leases in the simulated world. Set s3 is often missing. Clients take its lease, load it, and add and remove members meanwhile; they
 * also use tokens of leases that have ended. The truth says what was loaded and what the words are, at each moment.
 */
#ifndef SIM_LEASES_H
#define SIM_LEASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stored_set.h"

enum { LEASES_KEY = 3, LEASES_GIVEN = 512 };

struct buf;
struct message;
struct sim_op;
struct slice;
struct world;

struct leases {
	bool runs;
	uint64_t since; /* tick at which this lease began */
	uint64_t ended; /* and at which the last one ended */
	struct stored_lease truth;
	struct given {
		char token[STORED_TOKEN];
		uint64_t tick;
		bool told;
	} given[LEASES_GIVEN];
	size_t given_count;
	/* The numbers of the last leases that clients were told of, each and all, from 1 on; 0 for none. */
	size_t last[SIM_CLIENTS], last_told;
};

/* A command for this set; the rest of its line, for those that have a token. */
int leases_choose(struct world *w);
void leases_write_line(struct sim_op *op, struct buf *line);

/* Whether somebody loaded the set at some moment since that tick. */
bool leases_ran(const struct world *w, int key, uint64_t since);

/* A word was appended. False if no lease runs. */
bool leases_word(struct world *w, int key, int member, bool added);

/* A base was written whole: true if that concerns a lease, and all is said about it. */
bool leases_written(struct world *w, const struct message *m, int key, struct slice before);

/* What is stored now: checks it if somebody loads it, else no lease runs. */
void leases_check(struct world *w, int key, enum stored_state state);

/* Whether the command is one of a lease, whose reply is checked here. */
bool leases_reply(struct sim_op *op);

#endif
