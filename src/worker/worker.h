/*
 * A worker thread: its loop, clients, connections to servers, and lanes. Workers share only
 * struct daemon.
 */
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
	size_t number; /* Index among the daemon's workers. */
	struct loop loop;
	struct meter meter;
	struct settings *settings; /* The latest settings, from which limits are read. */
	struct generations generations;
	/* Generation of a reload whose servers have not been tried yet; or NULL. */
	struct generation *next;
	struct clients clients;
	struct poll poll;
	atomic_bool asked_to_reclaim; /* WORKER_RECLAIM was sent and not handled yet. */
	atomic_bool asked_to_look;    /* WORKER_LOOK was sent and not handled yet. */
	uint64_t drain_until;         /* When unfinished requests are cancelled. */
	int mailbox[2];               /* A pipe of struct mail. */
	struct event mail;
	struct loop_job deadline; /* Timer, running while the worker drains. */
	struct {
		void (*run)(void *arg);
		void *arg;
		sem_t done;
	} errand; /* Errand of worker_call(). */
	pthread_t thread;
};

enum mail_kind {
	WORKER_TAKE,    /* A new client; the worker owns the socket. */
	WORKER_ADOPT,   /* A client from another worker; the worker owns the socket. */
	WORKER_REPLACE, /* A new client, for which an idle one is closed. */
	WORKER_RECLAIM, /* Close the clients that use most memory. */
	WORKER_LOOK,    /* Check for pushes of other workers. */
	WORKER_RELOAD,  /* Use daemon.settings. */
	WORKER_CALL,    /* Run the errand. */
	WORKER_DRAIN,   /* Finish the requests in progress, then stop. */
	WORKER_STOP     /* Stop now. */
};

/* A message to a worker. */
struct mail {
	enum mail_kind kind;
	int fd;          /* Socket, or -1. */
	struct tls *tls; /* TLS session of the socket, owned by the receiver; or NULL. */
};

/*
 * Starts a worker thread with daemon.settings. `number` is its index in daemon.workers. Borrows
 * `daemon` until worker_join().
 */
struct worker *worker_start(struct daemon *daemon, size_t number, uint64_t seed);

/* Sends a message to the worker. May be called from any thread. */
void worker_send(struct worker *worker, struct mail mail);

/*
 * Calls errand(arg) in the worker's thread, and returns when that has returned. For the main
 * thread, before it sends WORKER_DRAIN or WORKER_STOP.
 */
void worker_call(struct worker *worker, void (*errand)(void *arg), void *arg);

/* Waits until the thread has exited, and frees the worker. */
void worker_join(struct worker *worker);

/*
 * Handles a socket that the thread of `worker`, which accepts for all workers, has just
 * accepted, and its TLS session or NULL. Assigns the client to a worker, or refuses it. A
 * listener_accepted callback.
 */
void worker_accept(int fd, struct tls *tls, void *worker);

static inline const struct config *worker_config(const struct worker *worker)
{
	return &worker->settings->config;
}

#endif
