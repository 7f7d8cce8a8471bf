/*
 * Members of sets in oplog that expire. In a third of the histories, clients add members with
 * seconds to live and change these, some keys have a rule with member_ttl, and the time goes to
 * moments right before and after dates. The estimates that proxies have of the clocks of servers
 * differ by up to EXPIRING_ERROR, and change.
 *
 * So a reader may take a member for expired from EXPIRING_ERROR before its date on, and must do so
 * from EXPIRING_ERROR after it on. From the first of these moments on, a rewrite may drop it.
 */
#ifndef SIM_EXPIRING_H
#define SIM_EXPIRING_H

#include <stdbool.h>
#include <stdint.h>

#include "util/slice.h"

struct lan_proxy;
struct message;
struct sim_op;
struct world;

enum { EXPIRING_ERROR = 900 /* milliseconds */, EXPIRING_DATES = 16 };

/* Chooses whether a history has members that expire, after its rules, to which it may add some. */
void expiring_init(struct world *w, uint64_t seed);

/* Between steps: changes estimates, and perhaps the time. */
void expiring_act(struct world *w);

/* Returns the seconds of a saddex or sexpire. */
uint64_t expiring_seconds(struct world *w);

/* Returns by how many milliseconds the estimate of the clock of this server is off. */
int64_t expiring_error(const struct lan_proxy *p, int server);

/* A command starts: sets its date, and adds that to the words that it writes. */
void expiring_start(struct sim_op *op);

/* Return the least and the greatest estimate of the clock of a set's server at a time. */
int64_t expiring_least(const struct world *w, int key, uint64_t time);
int64_t expiring_most(const struct world *w, int key, uint64_t time);

/* Returns whether a rewrite that is executed now may have dropped a member with this date. */
bool expiring_may_drop(const struct world *w, int key, uint32_t date);

/*
 * Whether the stored members are the true ones, except those that a rewrite may have dropped. The
 * second function drops these.
 */
bool expiring_is_same(const struct world *w, int key, const bool members[], const uint32_t dates[]);
void expiring_drop(struct world *w, int key, const bool members[]);

/* Checks that a client has added this member with this date, or with none. */
void expiring_check_date(struct world *w, int key, int member, uint32_t date);

/* A call is sent; the words of a sexpire were appended to a base; it has its reply. */
void expiring_sent(struct message *m);
void expiring_executed(struct world *w, const struct message *m, int key, struct slice words);
void expiring_reply(struct sim_op *op);

/* For mutations: writes a date far in the future or the past over each date of a log. */
void expiring_change_dates(struct slice log, bool past);

#endif
