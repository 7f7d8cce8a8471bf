/*
 * Repairs in the background: a queue of the sets and counters whose copies differ. One that cannot
 * be repaired, because a server is unreachable, is tried again, less and less often.
 */
#ifndef COLLECTION_COPIES_REPAIRS_H
#define COLLECTION_COPIES_REPAIRS_H

#include "collection/env.h"

struct repairs;

/* The base of a set, a base with its parts, or a counter. */
enum repair_kind { REPAIR_BASE, REPAIR_PARTS, REPAIR_COUNTER };

struct repairs_options {
	struct env *env; /* `now` and `later` */
	/* Starts a repair, of which repairs_ended is called when it is over, but not before. */
	void (*start)(void *arg, struct slice key, enum repair_kind kind);
	void *arg;
	unsigned first, least; /* milliseconds before the first attempt, and between two */
};

struct repairs *repairs_create(const struct repairs_options *options);
/* Requires repairs_idle. */
void repairs_destroy(struct repairs *repairs);

/* Starts no more repairs. */
void repairs_stop(struct repairs *repairs);
/* Whether none is in progress, nor will be started by a timer. */
bool repairs_idle(const struct repairs *repairs);

/* Repairs the set of a base or part, or the counter. Returns false if too many are waiting. */
bool repairs_add(struct repairs *repairs, struct slice key, enum repair_kind kind);

/* `done`: the copies are equal, and either can be believed without the other. */
void repairs_ended(struct repairs *repairs, struct slice key, bool done);

/* Returns how many repairs are waiting or running. */
size_t repairs_count(const struct repairs *repairs);

#endif
