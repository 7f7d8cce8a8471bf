/*
 * The true members of each set at each moment, derived from the executed calls: an append adds and
 * removes, a rewrite changes nothing. All replies are checked against this.
 *
 * A member that expires has its date here, and stays until a call removes it or a rewrite drops it:
 * whether it has expired for a reader depends on the clock of that reader.
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
		uint32_t date; /* when a member expires; 0 for never */
	} * changes;
	size_t count, capacity;
};

struct truth_set {
	struct history members[SIM_MEMBERS];
	struct history absent; /* there is no base, or a segment is missing */
	struct history gone;   /* there is no base; maintained only for oplog */
	bool in[SIM_MEMBERS];
	uint32_t dates[SIM_MEMBERS]; /* of members that are in; 0 for none */
};

struct truth {
	struct truth_set sets[SIM_KEYS];
	uint64_t tick; /* incremented by each event */
	/* The times of ticks, in milliseconds: of each one that began at another time. */
	struct moment {
		uint64_t tick, time;
	} * moments;
	size_t moment_count, moment_capacity;
};

void truth_init(struct truth *truth);
void truth_fini(struct truth *truth);

/* Begins the next tick, at this time. truth_time returns when a tick began. */
void truth_begin_tick(struct truth *truth, uint64_t time);
uint64_t truth_time(const struct truth *truth, uint64_t tick);

/* Adds a member that expires at `date`, or never if that is 0. */
void truth_add_dated(struct truth *truth, int key, int member, uint32_t date);

/*
 * Sets a member that does not expire, or all members of a set to `out`, or whether a set is absent,
 * from now on.
 */
void truth_set_member(struct truth *truth, int key, int member, bool in);
void truth_wipe(struct truth *truth, int key);
void truth_set_absent(struct truth *truth, int key, bool absent);
void truth_set_gone(struct truth *truth, int key, bool gone);

/* Returns whether the history had this value at some moment from `from` on. */
bool truth_was(const struct history *history, uint64_t from, bool value);

/* Returns the last change up to the end of that tick, or its value. */
const struct change *truth_change(const struct history *history, uint64_t tick);
bool truth_at(const struct history *history, uint64_t tick);

/*
 * Members are named ^<client>m<number>, which begins like the guard of flip; returns -1 for any
 * other name.
 */
int truth_member(struct slice name);
void truth_name(int member, char name[16]);

#endif
