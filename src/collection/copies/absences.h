/*
 * The absence of a server: a stamp up to which words may have been acknowledged without that
 * server, or misses reported that it could contradict. A copy on it that is closed only up to an
 * earlier time may lack words. The absence is an item on the servers that witness it, the next ones
 * in the list, where all proxies find it.
 *
 *     read:  answered from memory, or -> read from all witnesses -> a majority must answer
 *     raise: read and cas on all witnesses -> a majority must take it
 *                -> wait until no proxy uses what it read before (ABSENCE_LEASE_MS)
 *
 * While it is needed, an absence is raised ahead of time, so that only the first answer waits.
 */
#ifndef COLLECTION_COPIES_ABSENCES_H
#define COLLECTION_COPIES_ABSENCES_H

#include "collection/copies/stamp.h"
#include "collection/env.h"

enum {
	ABSENCE_LEASE_MS = 500, /* how long a proxy uses absences that it has read */
	/* The wait after a raise. The clock of a loop is that of the start of its turn. */
	ABSENCE_WAIT_MS = ABSENCE_LEASE_MS + 100,
	ABSENCE_AHEAD_MS = 5000, /* how far ahead an absence is raised */
	ABSENCE_SKEW_MS = 2000   /* the largest difference between the clocks of two proxies */
};

struct absences;

struct absences_options {
	struct env *env; /* `now`, and `later`, which is required */
	/* As env.call: sends a call to call->server. */
	void (*call)(struct env *env, const struct call *call, struct waiter *waiter);
	/*
	 * Returns the name of a server, which is the same in all proxies, and valid and short
	 * enough to be part of a key.
	 */
	struct slice (*name)(void *arg, int server);
	/* Returns Unix time in milliseconds. */
	uint64_t (*clock)(void *arg);
	void *arg;
	int servers; /* at least 3 */
	struct stamp_clock *stamps;
};

/* Borrows what the options point to until absences_destroy, which requires absences_idle. */
struct absences *absences_create(const struct absences_options *options);
void absences_destroy(struct absences *absences);

/* Returns true if no call and no timer is pending, so that no waiter is queued either. */
bool absences_idle(const struct absences *absences);

/*
 * Receives whether the request succeeded. `done` is called once, and may make other requests; the
 * waiter must stay valid until then.
 */
struct absence_waiter {
	void (*done)(struct absence_waiter *waiter, bool ok);
	struct absence_waiter *next;
};

/*
 * Returns true if all absences are in memory, from a read that was sent at most ABSENCE_LEASE_MS
 * ago. Else reads them, and calls the waiter: with false if a majority did not answer for some
 * server. Requests made within ABSENCE_LEASE_MS of a read in flight share it.
 */
bool absences_request(struct absences *absences, struct absence_waiter *waiter);

/* Returns whether they are in memory. */
bool absences_known(const struct absences *absences);

/* Returns the absence of a server as it was last read or raised; 0 for none. */
uint64_t absences_of(const struct absences *absences, int server);

/* Returns the largest of all servers. */
uint64_t absences_latest(const struct absences *absences);

/* Returns a number that changes when any of them does. */
uint64_t absences_changes(const struct absences *absences);

/*
 * Makes sure that all proxies see that the server was absent until now. Returns true if they
 * already do. Else the waiter is called when they do, or with false if no majority took it.
 */
bool absences_raise(struct absences *absences, int server, struct absence_waiter *waiter);

/*
 * Raises an absence that ended at this Unix time, in milliseconds, unless a later one is known.
 * Nobody waits for it, and it may fail.
 */
void absences_raise_until(struct absences *absences, int server, uint64_t ms);

/* Returns how often this proxy has raised an absence. */
uint64_t absences_raised(const struct absences *absences);

/* Returns whether a server was absent during the last ABSENCE_AHEAD_MS. */
bool absences_is_absent(const struct absences *absences, int server);

/* Returns the number of such servers. */
int absences_now(const struct absences *absences);

#endif
