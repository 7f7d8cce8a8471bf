/* A worker thread: its loop, clients, connections to servers, and lanes. Workers share struct daemon only. */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include <semaphore.h>

#include "measure/meter.h"
#include "net/loop.h"
#include "worker/balance.h"
#include "worker/daemon.h"
#include "worker/generation.h"

struct client;
struct tls;

enum { CLIENT_RANKS = 48 };

/* For bounds.c. */
struct limits {
	TAILQ_HEAD(client_list, client) attended; /* those that the timer looks after */
	struct event tick;
	struct client_list
		ranks[CLIENT_RANKS]; /* those that hold so many bytes, by powers of two; the first list stays empty */
	uint64_t ranks_used;         /* a bit for each list that is not empty */
	struct loop_job reclaim;
	size_t reclaimed;    /* bytes, since memory was last given back to the system */
	size_t held;         /* by its clients: a text that several have counts for each */
	size_t counted;      /* of that, in the total of the daemon */
	atomic_uint highest; /* rank of a client */
	atomic_bool asked_to_reclaim;
	TAILQ_HEAD(client_auth_list, client_auth) strangers; /* see auth.h */
	atomic_uint_fast64_t oldest;                         /* as limits_oldest gives it */
};

struct worker {
	struct daemon *daemon;
	struct loop loop;
	struct pool pool;
	uint64_t random;           /* state of random_next() */
	struct settings *settings; /* the latest: limits are read from here */
	struct server_options server_options;
	struct resolver *resolver;
	struct generation
		*current; /* carries out new requests. Changed with daemon.lock: other threads read its servers */
	struct generation *next;        /* after a reload: its servers are not tried yet; or NULL */
	struct generation_list retired; /* finish what began in them */
	struct event retire;            /* a timer, while there are any */
	struct lanes_stats past;        /* of generations that are gone */
	struct client_list clients;     /* in the order in which they last sent something, to a second */
	struct limits limits;
	size_t first_value; /* a moving average of the size of the first value of each client, in bytes */
	struct buf trash;   /* for replies that are discarded */
	struct balance balance;
	uint64_t bytes_seen; /* COUNT_bytes_read at the last call of env.later */
	bool draining;
	uint64_t drain_until; /* when unfinished requests are given up */
	int mailbox[2];       /* a pipe of struct mail */
	struct event mail, deadline;
	struct {
		void (*run)(void *arg);
		void *arg;
		sem_t done;
	} errand; /* of worker_call */
	struct meter meter;
	pthread_t thread;
};

enum mail_kind {
	WORKER_TAKE,    /* a new client: the worker owns the socket */
	WORKER_ADOPT,   /* a client of another worker, likewise */
	WORKER_REPLACE, /* a new client for the place of an idle one */
	WORKER_RECLAIM, /* close clients that hold most */
	WORKER_RELOAD,  /* take over daemon.settings */
	WORKER_CALL,    /* run the errand */
	WORKER_DRAIN,   /* finish requests in progress, then stop */
	WORKER_STOP     /* stop now */
};

/* A message to a worker. */
struct mail {
	enum mail_kind kind;
	int fd;          /* or -1 */
	struct tls *tls; /* its session, owned like the socket; or NULL */
};

/* Starts the thread, with daemon.settings. Borrows `daemon` until worker_join. */
struct worker *worker_start(struct daemon *daemon, uint64_t seed);

/* From any thread. */
void worker_send(struct worker *worker, struct mail mail);

/* Has the worker's thread call errand(arg), and waits until it has. From the main thread, before it sends WORKER_DRAIN or WORKER_STOP. */
void worker_call(struct worker *worker, void (*errand)(void *arg), void *arg);

/* Waits until the thread has exited, and frees the worker. */
void worker_join(struct worker *worker);

/* Adds `n` to a counter. From the worker's thread only. */
static inline void worker_count(struct worker *worker, enum counter counter, uint64_t n)
{
	meter_count(&worker->meter, counter, n);
}

/* Refuses an accepted socket that was counted as a connection, and frees its session. From any thread. */
void daemon_reject(struct daemon *daemon, int fd, struct tls *tls);

/* For env.later. While clients send requests, sliced work pauses for a millisecond between two slices. */
void worker_later(struct worker *worker, struct waiter *waiter, unsigned ms);

static inline const struct config *worker_config(const struct worker *worker)
{
	return &worker->settings->config;
}

/* Stops the loop of a draining worker that has no clients and no work left. Clients call it when they close. */
void worker_stop_if_drained(struct worker *worker);

#endif
