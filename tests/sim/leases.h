/*
 * Leases in the simulated world. Set s3 is often missing. Clients take its lease, load it, and add
 * and remove members meanwhile; they also use tokens of expired leases. The truth records the
 * loaded members and the words at each moment.
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
	/*
	 * The numbers of the last leases that clients received, for each client and in total, from
	 * 1 on; 0 for none.
	 */
	size_t last[SIM_CLIENTS], last_told;
};

/* Chooses a command for this set; the rest of its line, for commands with a token. */
int leases_choose(struct world *w);
void leases_write_line(struct sim_op *op, struct buf *line);

/* Returns whether a client was loading the set at some moment since that tick. */
bool leases_ran(const struct world *w, int key, uint64_t since);

/* A word was appended, perhaps with a date. Returns false if there is no lease. */
bool leases_word(struct world *w, int key, int member, bool added, uint32_t date);

/*
 * A base was written completely. Returns true if this concerns a lease, and all its effects were
 * recorded.
 */
bool leases_written(struct world *w, const struct message *m, int key, struct slice before);

/* Checks the stored base if the set is being loaded; otherwise there is no lease. */
void leases_check(struct world *w, int key, enum stored_state state);

/* Returns whether the command belongs to a lease, whose reply is checked here. */
bool leases_reply(struct sim_op *op);

#endif
