/*
 * Times to live and flags of the bases of sets and lists in oplog. A base expires at the time that
 * its creation or the last touch of a client set, whichever proxies rewrite it. Its flags never
 * change, except by sset.
 *
 * A rewrite keeps the time as remaining seconds, so each second that passes between its read and
 * its write may postpone the end by one: this is its drift. A read that was sent after a write is
 * used for the next rewrite, which subtracts the seconds since then. A CAS may also restore a time
 * that a touch has just changed. Its proxy must then correct it, and until it does, any time is
 * accepted. A correction that undoes a touch must be corrected in turn, even if both set almost
 * the same end.
 *
 * Two kinds of touches may be undone. They are accepted, and counted in world.undone. One falls
 * between a CAS and a correction, or between two corrections, and sets an end that the same proxy
 * set shortly before, by the CAS or by the correction before the last one. The proxy reads the
 * time to live right before its correction. It reads the same seconds whether its own earlier call
 * set that end or a client did: memcached counts no touches, and a touch does not change the cas
 * id. If the CAS wrote a date, the proxy reads the server's clock too, and the two ends must be
 * the same up to NEAR; otherwise the end of the client may be later by the seconds since the CAS.
 * This cannot be avoided as long as the end of a base is the time to live of its item; once it is
 * a word of the base's log, each touch changes the cas id and this exception must be removed.
 *
 * The other falls between a CAS and a correction of two proxies that rewrite the base
 * concurrently. Each may mistake the end that the other has set for that of a client. But it is
 * always an end that the base had before, or that one of the two rewrites has set or overridden.
 */
#ifndef SIM_LIVES_H
#define SIM_LIVES_H

#include <stdbool.h>
#include <stdint.h>

#include "util/slice.h"

enum {
	LIVES = 8,
	LIVES_PROXIES = 3,
	LIVES_CLIENTS = 6,
	LIVES_LATE = 5000 /* seconds; longer than any history */
};

struct memcached_item;
struct message;
struct lan_proxy;
struct sim_op;
struct world;

struct life {
	int64_t expires; /* set by the last touch or the creation; 0 for never */
	int64_t drift;   /* an end that is later by this many seconds is correct too */
	uint32_t flags;
	struct rewriter {
		bool corrects; /* its CAS was executed, and its correction may follow */
		/*
		 * another proxy made a correction between its CAS and its correction, or vice versa
		 */
		bool mixed;
		/* it lost its connection in between: the correction may follow, or never arrive */
		bool broke;
		/*
		 * the last read was sent after a write, so that its next CAS may be sent without
		 * one
		 */
		bool ahead;
		int64_t read;   /* the second of its last read of the base */
		int64_t wrote;  /* the second of its last CAS */
		int64_t looked; /* the second of its last read of the time to live */
		/* that of the read right before its last CAS, which a correction repeats */
		int64_t known;
		int64_t before; /* the end that this CAS had to keep */
		/* the end that this CAS set, and that of the last correction */
		int64_t gave, gave_last;
		int64_t drift; /* the end of the base before this CAS */
		bool exact;    /* this CAS set a date by the server's clock */
		/* it may have detected that its correction has overridden `instead` */
		bool doubts;
		int64_t instead;
	} by[LIVES_PROXIES];
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

/* A proxy lost a connection: pending corrections are dropped. */
void lives_break(struct world *w, const struct lan_proxy *p, int server);

/* Called when a client has the reply to its touch; at the end. */
void lives_reply(const struct sim_op *op);
void lives_end(struct world *w);

#endif
