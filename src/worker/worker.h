/* A worker thread: its loop, clients, connections to servers, and lanes. Workers share struct daemon only. */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include <pthread.h>
#include <semaphore.h>

#include "client/clients.h"
#include "measure/meter.h"
#include "net/loop.h"
#include "worker/daemon.h"
#include "worker/generation.h"
#include "worker/poll.h"

struct tls;

struct worker {
	struct daemon *daemon;
	size_t number; /* among the daemon's */
	struct loop loop;
	struct meter meter;
	struct settings *settings; /* the latest: limits are read from here */
	struct generations generations;
	struct generation *next; /* after a reload: its servers are not tried yet; or NULL */
	struct clients clients;
	struct poll poll;
	atomic_bool asked_to_reclaim; /* WORKER_RECLAIM is on the way */
	atomic_bool asked_to_look;    /* WORKER_LOOK is on the way */
	uint64_t drain_until;         /* when unfinished requests are given up */
	int mailbox[2];               /* a pipe of struct mail */
	struct event mail;
	struct loop_job deadline; /* a timer, while the worker drains */
	struct {
		void (*run)(void *arg);
		void *arg;
		sem_t done;
	} errand; /* of worker_call */
	pthread_t thread;
};

enum mail_kind {
	WORKER_TAKE,    /* a new client: the worker owns the socket */
	WORKER_ADOPT,   /* a client of another worker, likewise */
	WORKER_REPLACE, /* a new client for the place of an idle one */
	WORKER_RECLAIM, /* close clients that hold most */
	WORKER_LOOK,    /* look for pushes of other workers */
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

/* Starts the thread, with daemon.settings. Borrows `daemon` until worker_join. Its number is that in daemon.workers. */
struct worker *worker_start(struct daemon *daemon, size_t number, uint64_t seed);

/* From any thread. */
void worker_send(struct worker *worker, struct mail mail);

/* Has the worker's thread call errand(arg), and waits until it has. From the main thread, before it sends WORKER_DRAIN or WORKER_STOP. */
void worker_call(struct worker *worker, void (*errand)(void *arg), void *arg);

/* Waits until the thread has exited, and frees the worker. */
void worker_join(struct worker *worker);

/*
 * Takes a socket that the thread of `worker`, which accepts for all workers, has just accepted, and its TLS session or NULL. The
 * client gets a worker, or is refused. A listener_accepted.
 */
void worker_accept(int fd, struct tls *tls, void *worker);

static inline const struct config *worker_config(const struct worker *worker)
{
	return &worker->settings->config;
}

#endif
