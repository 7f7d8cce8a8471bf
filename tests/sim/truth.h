/*
 * The true members of each set at each moment, derived from the executed calls: an append adds and
 * removes, a rewrite changes nothing. All replies are checked against this.
 */
#ifndef SIM_TRUTH_H
#define SIM_TRUTH_H

#include <stdbool.h>
#include <stdint.h>

#include "unit/memcached.h"

enum { SIM_KEYS = 4, SIM_CLIENTS = 6, SIM_OWN = 8, SIM_MEMBERS = SIM_CLIENTS * SIM_OWN };

/* The changes of a value: their times and the new values. */
struct history {
	struct change {
		uint64_t tick;
		bool value;
	} * changes;
	size_t count, capacity;
};

struct truth_set {
	struct history members[SIM_MEMBERS];
	struct history absent; /* there is no base, or a segment is missing */
	struct history gone;   /* there is no base; maintained only for oplog */
	bool in[SIM_MEMBERS];
};

struct truth {
	struct truth_set sets[SIM_KEYS];
	uint64_t tick; /* incremented by each event */
};

void truth_init(struct truth *truth);
void truth_fini(struct truth *truth);

/* Sets a member, all members of a set to `out`, or whether a set is absent, from now on. */
void truth_set_member(struct truth *truth, int key, int member, bool in);
void truth_wipe(struct truth *truth, int key);
void truth_set_absent(struct truth *truth, int key, bool absent);
void truth_set_gone(struct truth *truth, int key, bool gone);

/* Returns whether the history had this value at some moment from `from` on. */
bool truth_was(const struct history *history, uint64_t from, bool value);

/* Returns the value at the end of that tick. */
bool truth_at(const struct history *history, uint64_t tick);

/*
 * Members are named ^<client>m<number>, which begins like the guard of flip; returns -1 for any
 * other name.
 */
int truth_member(struct slice name);
void truth_name(int member, char name[16]);

#endif
