/*
 * A worker's connection to a memcached server, and the calls on it.
 *
 *     DOWN -> CONNECTING -> GREETING -> UP
 *      ^---------<-------------<--------'
 *
 * When a connection fails, all calls on it fail. After the loss of a steady connection the
 * first attempt to reconnect starts at once, and calls are held until it ends. After that,
 * calls fail at once, and attempts follow with exponential backoff and jitter.
 *
 * Before the first call after an idle period the connection is probed: the server goes from UP
 * to GREETING and back. So no call is lost on a connection that a firewall has dropped.
 *
 * If its name gets another address, the server connects to that, and goes from UP to GREETING
 * once the connection is open. The link to the former address takes no more calls. It is closed
 * when its calls are answered, or when they time out.
 */
#ifndef UPSTREAM_SERVER_H
#define UPSTREAM_SERVER_H

#include <stdatomic.h>

#include "net/stream.h"
#include "upstream/address.h"
#include "upstream/call_turns.h"
#include "upstream/greeting.h"
#include "upstream/pipeline.h"
#include "upstream/ring.h"
#include "upstream/server_clock.h"
#include "upstream/server_tell.h"
#include "util/histogram.h"

struct news;
struct news_entry;
struct tls_context;

enum server_state { SERVER_DOWN, SERVER_CONNECTING, SERVER_GREETING, SERVER_UP, SERVER_STATES };
enum { SERVER_ROOM = 512 << 10, SERVER_PLACES = 16 };

struct server_options {
	/* Milliseconds. */
	uint64_t connect_timeout, request_timeout, retry_min, retry_max;
	size_t queue;                   /* Maximum number of unanswered calls. */
	size_t value_max;               /* Maximum bytes of a value in a reply. */
	struct tls_context *tls;        /* For TCP servers; borrowed; or NULL. */
	struct news *news;              /* Outages, shared by all workers; borrowed. */
	struct pipeline_answer *answer; /* Publishes the call being answered; borrowed. */
	uint64_t *connects;             /* Counts connections to all servers; borrowed. */
	/* Returns the key to look up; `behind` is how many servers to skip, < SERVER_PLACES. */
	struct slice (*place)(struct slice key, unsigned *behind);
	char login[512]; /* Login that each connection begins with, "user password"; "" for none. */
};

/* Counters and state, which other threads may read. */
struct server_stats {
#define SERVER(name, ...) atomic_uint_fast64_t name;
#include "measure/facts.def"
	atomic_int state;
	atomic_uint version;              /* major << 16 | minor << 8 | patch; 0 if unknown. */
	atomic_int_fast64_t clock_offset; /* See server_clock_difference(). */
	atomic_bool absent;               /* See copies_is_absent(). */
	/* Time from push to reply, or to failure if the call was sent; others are not counted. */
	struct histogram latency;
};

/* One connection to a server, and its calls, which are held until the greeting is answered. */
struct server_link {
	struct server *server;
	struct stream stream;
	struct pipeline pipeline;
	struct buf held;       /* Encoded calls, until the greeting is answered. */
	struct loop_job timer; /* Timeout of the step, or pause before the next attempt. */
	struct loop_job rest;  /* Delivers the rest of the results in the next turn. */
	bool again;            /* The timer was restarted to check for unread input. */
	bool has_login;        /* The greeting began with a login. */
	bool probes;           /* The greeting in flight probes an idle connection. */
	size_t greeting;       /* Unwritten bytes of the greeting. */
	struct server_clock clock;
	size_t awaited;  /* This link's share of loop.awaited. */
	uint64_t number; /* Number of the connection. */
	/* Milliseconds: last progress of the oldest call, or when it became the oldest. */
	uint64_t progress;
	/* Milliseconds: when the oldest call became the oldest, or the link a former one. */
	uint64_t first_since;
};

/* `done` is called once, after the first attempt to connect, and is NULL from then on. */
struct server_tried {
	void (*done)(void *arg);
	void *arg;
};

/*
 * Calls and a job that are pending while the server has no room. Large values need room as in
 * server_has_room(). Small patient calls only need one of the places for patient calls.
 */
struct server_room {
	struct loop_job *wanted;        /* Queued once there is room; NULL if none. */
	struct call_turns small, large; /* Calls with `patient` set, without and with `expected`. */
	struct loop_job job;            /* Sends the next of them. */
};

struct server {
	char name[300]; /* "host:port" or "unix:/path", for errors. */
	struct ring_server where;
	unsigned users; /* Number of struct servers that share it. */
	const struct server_options *options;
	struct loop *loop;
	struct server_address address;
	struct tls_peer *tls; /* NULL on a Unix socket. */
	uint64_t *random;
	struct server_link links[2], *link;
	struct server_link *former; /* The other link, while it has unanswered calls; or NULL. */
	enum server_state state;    /* State of `link`. */
	uint64_t since;             /* Start of the state, in milliseconds. */
	uint64_t pause;             /* Milliseconds before the next attempt. */
	bool waits;                 /* Calls are held while connecting, instead of failing. */
	struct greeting abilities;  /* Abilities in the last greeting. */
	struct server_told told;
	struct server_room room;
	struct server_stats stats;
	struct server_tried tried;
};

/*
 * Returns the maximum age, in milliseconds, at which a held call is sent: the timeouts of a probe,
 * two handshakes and a greeting, and a second for a busy machine. The timers enforce less, unless
 * the process was suspended: then a write could be executed after later ones of its client, which
 * it made through another proxy.
 */
static inline uint64_t server_held_ms(const struct server_options *options)
{
	return 2 * (options->connect_timeout + options->request_timeout) + 1000;
}

/* Creates a server. `where` is copied; the other arguments are borrowed until server_free(). */
struct server *server_create(struct loop *loop, const struct ring_server *where,
	const struct server_options *options, struct resolver *resolver, uint64_t *random);

/* Starts the first attempt to connect. `tried` is called when it has succeeded or failed. */
void server_start(struct server *server, void (*tried)(void *arg), void *arg);

/* Sends a call, or makes it fail later. As env.call, delivers the result after the return. */
void server_call(struct server *server, const struct call *call, struct waiter *waiter);

/* Closes the connection. Unanswered calls fail at once, later ones at the end of their turn. */
void server_stop(struct server *server);

/* Frees a stopped server. The results of all its calls must have been delivered. */
void server_free(struct server *server);

/*
 * Returns whether more large values may be requested or sent: fewer than SERVER_ROOM bytes are
 * unwritten, or expected in replies. Calls may be sent without room, but the replies to all
 * calls are delayed by the values in flight. A call with call.patient is queued until there is
 * room.
 */
static inline bool server_has_room(const struct server *server)
{
	const struct pipeline *p = &server->link->pipeline;

	return p->expected + (p->encoded - p->written) < SERVER_ROOM;
}

#endif
