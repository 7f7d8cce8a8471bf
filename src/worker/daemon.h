/* The state that the main thread and the workers share. */
#ifndef WORKER_DAEMON_H
#define WORKER_DAEMON_H

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>

#include "client/common.h"
#include "collection/large.h"
#include "collection/push_board.h"
#include "config/settings.h"

/*
 * Messages from workers, one byte each: it has tried to connect to all servers, at the start or of new settings, which it uses from
 * now on; its loop has stopped.
 */
enum { DAEMON_SETTLED = 's', DAEMON_EXITED = 'e' };

/* Connections beyond max_connections, each of which waits for an idle one to be closed. */
enum { DAEMON_REPLACING = 16 };

struct balance;
struct meter;
struct names;
struct news;
struct worker;

struct daemon {
	struct settings
		*settings; /* the latest. Of the main thread, which changes it; workers that start or reload share it */
	size_t threads;
	struct worker **workers;  /* `threads` of them */
	struct meter **meters;    /* of each worker */
	int64_t started;          /* Unix time */
	struct balance *balances; /* of each worker */
	struct clients_total clients;
	atomic_int replacing; /* connections that wait for an idle one to be closed */
	atomic_uint_fast64_t accepted, rejected;
	struct large_filter *large;
	struct push_board *board;
	struct {
		struct news *news;
		struct names *names; /* borrowed */
	} servers;
	/* Carries out a PROXY_COMMAND for a worker: see struct clients_ops. */
	struct reply (*command)(struct worker *worker, const struct request *request, struct buf *text);
	char *listens;        /* of the main thread: the addresses where clients connect, with spaces between
				 them */
	bool serving;         /* of the main thread: all servers were tried once */
	bool stopping;        /* likewise: a signal to shut down has come */
	int news;             /* the writing end of a pipe for DAEMON_SETTLED and DAEMON_EXITED */
	DIR *descriptors;     /* of the process; opened before the user is switched; or NULL */
	pthread_mutex_t lock; /* protects each worker's pointer to its current generation, and what struct meter says */
};

#endif
