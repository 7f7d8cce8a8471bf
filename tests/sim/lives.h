/*
 * Times to live and flags of the bases of sets and lists in oplog. A base expires at the time that
 * its creation or the last touch of a client set, whichever proxies rewrite it. Its flags never
 * change, except by sset.
 *
 * A touch appends a date to the base, and then touches the item. Until both are executed, the base
 * is open: a rewrite may set that date or keep the former end. A rewrite sets the last date of the
 * base that it was computed from. If that has none, it converts the seconds left to a date, once.
 * When a touch is acknowledged, the base has its date, or a later one, and expires then.
 */
#ifndef SIM_LIVES_H
#define SIM_LIVES_H

#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/slice.h"

enum {
	LIVES = 8,
	LIVES_PROXIES = 3,
	LIVES_CLIENTS = 6,
	LIVES_DATES = 8,
	LIVES_LATE = 5000 /* seconds; longer than any history */
};

struct memcached_item;
struct message;
struct op;
struct sim_op;
struct world;

struct life {
	int64_t expires; /* set by the last touch, rewrite or creation; 0 for never */
	bool open;       /* a touch is not complete, or was interrupted */
	uint32_t flags;
	int64_t dates[LIVES_DATES]; /* the last dates that were appended */
	size_t appends;
	int64_t given[LIVES_PROXIES]; /* the last date that each proxy appended */
	/*
	 * ticks: of its creation; of the last touch by a proxy that does not receive the reply; of
	 * the last touch as an item, which a gat makes first, and perhaps does not complete
	 */
	uint64_t made, stray, bare;
	/* of the last touch that was executed: its tick, and the number of its command or 0 */
	uint64_t last, last_by;
	/* by proxies: the second of the last read; whether it was sent after a write */
	int64_t read[LIVES_PROXIES];
	bool ahead[LIVES_PROXIES];
	uint64_t touched
		[LIVES_CLIENTS]; /* the number of each client's last touch that was executed */
};

/* Sets the rules of keys of this history, some with a time to live. */
void lives_init(struct world *w, uint64_t seed);

/* Returns an exptime for a touch: none, a late one, or a date beyond 30 days. */
int64_t lives_choose(struct world *w);
/* Returns a late one that is almost unique, so that a call shows which command sent it. */
int64_t lives_choose_late(struct world *w);

/*
 * Called when a call is sent; after it was executed, with `before` as a copy of the base before
 * it.
 */
void lives_sent(struct world *w, struct message *m);
void lives_executed(struct world *w, const struct message *m, const struct memcached_item *before);

/*
 * Returns whether the proxy's last read of the base of this call was sent while its write was
 * unanswered.
 */
bool lives_read_ahead(const struct world *w, const struct message *m);

/* Returns the operation that a lane carries out with this call; NULL if it is not known. */
const struct op *lives_sender(const struct message *m);

/* Returns whether the call has set a date that has passed. */
bool lives_has_expired(const struct world *w, const struct message *m);

/* Appends the base without its dates. */
void lives_add_undated(struct slice base, struct buf *out);

/* Called when a client has the reply to its command; at the end. */
void lives_reply(const struct sim_op *op);
void lives_end(struct world *w);

#endif
