/*
 * Sets with a copy on each of two servers: a layer between lanes and servers. To the layers above,
 * each set has one base, and each part is one item.
 *
 *     read    the first copy; if it may not be believed, the second one as well -> their join
 *     append  both copies get the words with one stamp -> a copy is missing: repair it
 *                                                      -> a server fails: raise its absence
 *     cas     read both; if they are as the token says, cas of the first copy -> the second one
 *     part    written to and deleted from both; read from one, and if that lacks it, from the other
 *
 * See copy.h for the base of a copy, absences.h for absences, and setlistd-protocol(7), STORAGE,
 * for the guarantees.
 */
#ifndef COLLECTION_COPIES_COPIES_H
#define COLLECTION_COPIES_COPIES_H

#include "collection/copies/options.h"

struct copies;

/* Borrows what the options point to until copies_destroy, which requires copies_idle. */
struct copies *copies_create(const struct copies_options *options);
/* NULL does nothing. */
void copies_destroy(struct copies *copies);

/* The same as env.call. */
void copies_call(struct copies *copies, const struct call *call, struct waiter *waiter);

/*
 * Repairs a set in the background, with all its parts, or a counter. Returns false if too many are
 * waiting for repair.
 */
bool copies_repair(struct copies *copies, struct slice key, bool is_counter);

/* Returns true if no call and no repair is in progress. */
bool copies_idle(const struct copies *copies);

/* Begins no more repairs, so that the layer becomes idle. */
void copies_stop(struct copies *copies);

struct copies_stats copies_statistics(const struct copies *copies);

/*
 * Returns whether words were recently acknowledged, or misses reported, without a server, by this
 * proxy or another one. It is known while keys with two copies are used.
 */
bool copies_is_absent(const struct copies *copies, int server);

#endif
