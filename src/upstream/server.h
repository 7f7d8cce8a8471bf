/*
 * A worker's connection to a memcached server, and the calls on it.
 *
 *     DOWN -> CONNECTING -> GREETING -> UP
 *      ^---------<-------------<--------'
 *
 * When a connection fails, all calls on it fail. After the loss of a steady connection the first attempt to reconnect starts at
 * once, and calls wait for it. After that, calls fail at once, and attempts follow after growing, jittered pauses.
 *
 * Before the first call after an idle period the connection is probed: the server goes from UP to GREETING and back. So no call is lost on
 * a connection that a firewall has dropped.
 *
 * If its name gets another address, the server connects to that, and goes from UP to GREETING once the connection is open. The link to the
 * former address takes no more calls, and is closed when its calls are answered, or when the server makes no progress with them.
 */
#ifndef UPSTREAM_SERVER_H
#define UPSTREAM_SERVER_H

#include <stdatomic.h>

#include "net/stream.h"
#include "upstream/address.h"
#include "upstream/greeting.h"
#include "upstream/pipeline.h"
#include "upstream/ring.h"
#include "util/histogram.h"

struct news;
struct news_entry;
struct tls_context;

enum server_state { SERVER_DOWN, SERVER_CONNECTING, SERVER_GREETING, SERVER_UP, SERVER_STATES };
enum { SERVER_ROOM = 512 << 10, SERVER_PLACES = 16 };

struct server_options {
	uint64_t connect_timeout, request_timeout, retry_min, retry_max; /* milliseconds */
	size_t queue;                                                    /* unanswered calls at most */
	size_t value_max;                                                /* bytes of a value in a reply */
	struct tls_context *tls;                                         /* for TCP servers; borrowed; or NULL */
	struct news *news;                                               /* of all workers; borrowed */
	struct pipeline_answer *answer;                                  /* whose reply is read; borrowed */
	uint64_t *connects;                                              /* to all servers; borrowed */
	struct slice (*place)(struct slice key, unsigned *behind); /* as ring_spread counts, below SERVER_PLACES */
	char login[512]; /* "user password" that each connection begins with; "" for none */
};

/* Counters and state that other threads may read. */
struct server_stats {
#define SERVER(name, ...) atomic_uint_fast64_t name;
#include "measure/facts.def"
	atomic_int state;
	atomic_uint version; /* major << 16 | minor << 8 | patch; 0 if unknown */
	/* From the push of a call to its reply, or to its failure if it was sent. Calls that fail without being sent do not count. */
	struct histogram latency;
};

/* One connection to a server, and the calls on it. Before the greeting is answered, it collects calls. */
struct server_link {
	struct server *server;
	struct stream stream;
	struct pipeline pipeline;
	struct buf held;       /* encoded calls, until the greeting is answered */
	struct loop_job timer; /* the limit of the step under way; while the server is down, its next attempt */
	bool again;            /* the timer was started for a second look */
	bool has_login;        /* the greeting began with one */
	bool probes;           /* the greeting in flight probes an idle connection */
	size_t greeting;       /* unwritten bytes of the greeting */
	size_t awaited;        /* its share of loop.awaited */
	uint64_t number;       /* of the connection */
	uint64_t progress;     /* milliseconds: when the oldest call became that, or was last sent or answered a byte */
	uint64_t first_since;  /* milliseconds: when the oldest call became that, or the link a former one */
};

/* What the log, and other workers, know of a server. */
struct server_told {
	struct news_entry *news;
	bool lost;         /* the news know that there is no connection */
	bool refused;      /* the log says that it refused the login */
	char refusal[160]; /* why TLS with it last failed, since it was up; "" for none */
};

/* `done` is called once, after the first attempt to connect; NULL after that. */
struct server_settled {
	void (*done)(void *arg);
	void *arg;
};

/* Those who wait while the server has no room, as server_has_room says. */
struct server_room {
	struct loop_job *wanted;             /* set by others: to be queued once there is room; or NULL */
	STAILQ_HEAD(, server_patient) calls; /* that are patient */
	struct loop_job job;                 /* sends the first of them */
};

struct server {
	char name[300]; /* "host:port" or "unix:/path", for errors */
	struct ring_server where;
	unsigned users; /* of servers.h that share it */
	const struct server_options *options;
	struct loop *loop;
	struct server_address address;
	struct tls_peer *tls; /* NULL on a Unix socket */
	uint64_t *random;
	struct server_link links[2], *link;
	struct server_link *former; /* the other one, while calls to a former address are unanswered; or NULL */
	enum server_state state;    /* of `link` */
	uint64_t since;             /* when the state began, in milliseconds */
	uint64_t pause;             /* milliseconds before the next attempt */
	bool waits;                 /* calls may wait for the attempt to connect */
	struct greeting abilities;  /* as it said last */
	struct server_told told;
	struct server_room room;
	struct server_stats stats;
	struct server_settled settled;
};

/* Borrows all arguments but `where` until server_free. `random` is a state of random_next(). */
struct server *server_create(struct loop *loop, const struct ring_server *where, const struct server_options *options,
	struct resolver *resolver, uint64_t *random);

/* Starts the first attempt to connect. `settled` is called when it has succeeded or failed. */
void server_start(struct server *server, void (*settled)(void *arg), void *arg);

/* Sends a call, or has it fail later. As env.call: the waiter gets its result after the return. */
void server_call(struct server *server, const struct call *call, struct waiter *waiter);

/* Closes the connection; unanswered calls fail within this function, and later calls at the end of their turn. */
void server_stop(struct server *server);

/* Frees a server that was stopped, and all of whose calls have got their results. */
void server_free(struct server *server);

/*
 * Whether more large values may be asked for: less than SERVER_ROOM bytes of them are on the way. Any call may be sent without
 * room, but the replies to all calls wait for what is on the way. call.patient has a call wait for room.
 */
static inline bool server_has_room(const struct server *server)
{
	return server->link->pipeline.expected < SERVER_ROOM;
}

#endif
