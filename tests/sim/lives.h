/*
 * Times to live and flags of the bases of sets and lists in oplog. A base expires when its creation or the last touch of a
 * client said, whoever rewrites it. Its flags never change, except by sset.
 *
 * A rewrite keeps the time by seconds that are left, so each second that passes between its read and
 * its write may postpone the end by one: that is its drift. A read that was sent behind a write is for
 * the next rewrite, which takes off the seconds since. A CAS may also restore a time that a touch has
 * just changed. Its proxy must then correct it, and until it does, any time is excused. A correction
 * that undoes a touch must be corrected in turn, even if both set almost the same end.
 *
 * Two kinds of touches may be undone. They are excused, and counted in world.undone. One falls
 * between a CAS and a correction, or between two corrections, and sets an end that the same proxy set shortly before, by the CAS or by
 * the correction before the last one. The proxy reads the time to live right before its correction. It
 * reads the same seconds whether its own earlier call set that end or a client did: memcached counts no
 * touches, and a touch does not change the cas id. If the CAS wrote a date, the proxy reads the
 * server's clock too, and the two ends must be the same up to NEAR; otherwise the end of the client may
 * be later by the seconds since the CAS. Nothing can be done about it as long as the end of a base is
 * the time to live of its item; once it is a word of the base's log, each touch changes the cas id and
 * this excuse must go.
 *
 * The other falls between a CAS and a correction of two proxies that rewrite the base at once. Each may
 * take the end that the other has given for that of a client. But it is always an end that the base had
 * before, or that one of the two rewrites has given or overridden.
 */
#ifndef SIM_LIVES_H
#define SIM_LIVES_H

#include <stdbool.h>
#include <stdint.h>

#include "util/slice.h"

enum { LIVES = 8, LIVES_PROXIES = 3, LIVES_CLIENTS = 6, LIVES_LATE = 5000 /* seconds; no history takes that long */ };

struct memcached_item;
struct message;
struct lan_proxy;
struct sim_op;
struct world;

struct life {
	int64_t expires; /* as the last touch or the creation said; 0 for never */
	int64_t drift;   /* so many seconds later is right too */
	uint32_t flags;
	struct rewriter {
		bool corrects;  /* its CAS was executed, and its correction may follow */
		bool mixed;     /* another one corrected between its CAS and its correction, or the other way round */
		bool broke;     /* meanwhile it lost its connection: the correction may follow, or never come */
		bool empty;     /* it has read the base last when nothing was in it, and not written it since */
		bool ahead;     /* the last one was sent behind a write, so that its next CAS may come without one */
		int64_t read;   /* the second of its last read of the base */
		int64_t wrote;  /* the second of its last CAS */
		int64_t looked; /* the second of its last read of the time to live */
		int64_t known;  /* that of the read right before its last CAS, which a correction repeats */
		int64_t before; /* what that CAS had to keep */
		int64_t gave, gave_last; /* what that CAS gave, and what the last correction did */
		int64_t drift;           /* of the base before that CAS */
		bool exact;              /* that CAS gave a date by the server's clock */
		bool doubts;             /* it may have seen that its correction has overridden `instead` */
		int64_t instead;
	} by[LIVES_PROXIES];
	uint64_t touched[LIVES_CLIENTS]; /* the number of each client's last touch that was executed */
};

/* Sets the rules of keys of this history, some with a time to live. */
void lives_init(struct world *w, uint64_t seed);

/* An exptime for a touch: none, a late one, or a date beyond 30 days. */
int64_t lives_choose(struct world *w);
/* A late one that hardly any other touch has, so that a call shows which command sent it. */
int64_t lives_choose_late(struct world *w);

/* A call is sent; it was executed, and `before` is a copy of the base before that. */
void lives_sent(struct world *w, struct message *m);
void lives_executed(struct world *w, const struct message *m, const struct memcached_item *before);

/* Whether the proxy read the base of this call last when it had sent a write that nobody had answered. */
bool lives_read_ahead(const struct world *w, const struct message *m);

/* A proxy lost a connection: whatever it was about to correct stays. */
void lives_break(struct world *w, const struct lan_proxy *p, int server);

/* A client has the reply to its touch; all is over. */
void lives_reply(const struct sim_op *op);
void lives_end(struct world *w);

#endif
