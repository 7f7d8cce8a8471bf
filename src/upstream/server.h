/*
 * One memcached server as one worker sees it: one connection, the calls on it, and what becomes of both.
 *
 *     DOWN -> CONNECTING -> GREETING -> UP
 *      ^---------<-------------<--------'
 *
 * Every failure of a connection ends all calls on it, each with its own error. The first reconnection after a lost connection
 * is tried at once, and calls wait for it; while that fails, calls fail at once, and further attempts are made behind a
 * growing, jittered pause.
 */
#ifndef UPSTREAM_SERVER_H
#define UPSTREAM_SERVER_H

#include <stdatomic.h>

#include "net/stream.h"
#include "upstream/pipeline.h"
#include "upstream/ring.h"

struct evdns_base;
struct evdns_getaddrinfo_request;

enum server_state { SERVER_DOWN, SERVER_CONNECTING, SERVER_GREETING, SERVER_UP, SERVER_STATES };

extern const char *const server_state_name[SERVER_STATES];

struct server_options {
	uint64_t connect_timeout, request_timeout, retry_min, retry_max; /* milliseconds */
	size_t queue;                                                    /* calls that may wait */
	size_t value_max;                                                /* bytes of a value in a reply */
};

/* What other threads may read at any time. */
struct server_stats {
	atomic_uint_fast64_t calls, unavailable, busy, timeouts, lost, connects;
	atomic_int state;
	atomic_uint version; /* major << 16 | minor << 8 | patch, 0 while not known */
};

/* A call that was not sent: its result is due at the end of the turn. */
struct server_reject {
	struct waiter *waiter;
	enum result_status status;
};

struct server {
	char name[300]; /* "host:port" or "unix:/path", as errors show it */
	const struct ring_server *where;
	const struct server_options *options;
	struct loop *loop;
	struct evdns_base *dns; /* borrowed; NULL when no name needs it */
	struct evdns_getaddrinfo_request *resolving;
	uint64_t *random;
	struct stream stream;
	struct pipeline pipeline;
	size_t awaited;  /* its part of what the loop awaits */
	struct buf held; /* calls encoded while there is no connection to write them to */
	struct event connected, timer;
	enum server_state state;
	bool timed;          /* the timer runs */
	bool waits;          /* calls may wait for the attempt under way */
	bool meta;           /* what the greeting told: speaks meta commands */
	bool cas;            /* gives cas ids */
	uint64_t item_max;   /* bytes of an item in all, 0 when not known */
	uint64_t connection; /* number of the connection, never the same twice */
	uint64_t since;      /* when the state began */
	uint64_t progress;   /* when a byte last went or came, or the first call was made; in milliseconds */
	uint64_t pause;      /* before the next attempt */
	unsigned attempts;   /* at connecting, ever */
	size_t greeting;     /* bytes of it that are not written yet */
	struct server_reject *rejects;
	size_t reject_count, reject_capacity;
	struct loop_job reject_job;
	struct server_stats stats;
	void (*settled)(struct server *server); /* called once, when the first attempt has ended well or badly */
};

void server_init(struct server *server, struct loop *loop, const struct ring_server *where,
	const struct server_options *options, struct evdns_base *dns, uint64_t *random);

/* Starts the first attempt. */
void server_start(struct server *server, void (*settled)(struct server *server));

/* Sends a call, or has it fail. As host.call says, with the same care: the waiter hears of it later. */
void server_call(struct server *server, const struct call *call, struct waiter *waiter);

/* Closes everything; calls under way get their errors now. Whatever is called from then on fails, in server_drain. */
void server_fini(struct server *server);

/* Gives the calls that were refused since the last time their errors; true when there were any. */
bool server_drain(struct server *server);

#endif
