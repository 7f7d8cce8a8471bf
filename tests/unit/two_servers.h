/*
 * For tests of moves: two proxies, and two servers in memory. All keys move from the first server
 * to the second, except those that begin with =. The names are short, since the tests consist of
 * them.
 */
#ifndef UNIT_TWO_SERVERS_H
#define UNIT_TWO_SERVERS_H

#include "collection/move/mark.h"
#include "collection/move/moves.h"
#include "memcached.h"
#include "unit.h"

enum { AT = 1700000000, MARGIN = 2, QUEUE = 64, O = 0, N = 1 };

struct letter {
	struct call call;
	char *bytes;
	struct waiter *waiter;
	bool executed; /* the reply is on its way */
	struct result result;
	struct buf value; /* memory of the result's value */
};

struct proxy {
	struct env env;
	struct moves *moves;
	struct letter letters[QUEUE];
	size_t sent, answered;
	unsigned calls[2];
	unsigned bare; /* calls with an odd key that are not in base64 */
};

extern struct memcached *servers[2];
extern struct proxy proxies[2];

/* The last result of a call, and how many there were. */
extern struct result got;
extern struct buf got_value;
extern unsigned ends;

/* For FIXTURE. */
void two_servers_set_up(void);
void two_servers_tear_down(void);

/* Carries out the next call of a proxy, and delivers the result. Returns false if there is none. */
bool step(struct proxy *p);
void steps(struct proxy *p, int count);
void run(struct proxy *p);

/* Makes the servers carry out all calls, but reply late. */
void execute_all(struct proxy *p);

struct slice text(const char *s);
void put(int server, const char *key, const char *value, int64_t exptime);
void put_bytes(int server, const char *key, struct slice value);
void put_mark(int server, const char *key, const struct buf *mark);
void put_claim(const char *key); /* on the new server */
struct memcached_item *item(int server, const char *key);
void has(int server, const char *key, const char *value);

/* A waiter that stores the result in `got`. */
void on_result(struct waiter *waiter, const struct result *r);

/* Sends a call without answering any. A GET only reads. */
void sends(struct proxy *p, enum call_verb verb, const char *key, const char *value,
	struct waiter *waiter);

/* The same, and answers all calls that follow. */
void does(struct proxy *p, enum call_verb verb, const char *key, const char *value);
void reads(struct proxy *p, const char *key, const char *value);

#endif
