/* The state that the main thread and the workers share. */
#ifndef WORKER_DAEMON_H
#define WORKER_DAEMON_H

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>

#include "client/common.h"
#include "collection/large.h"
#include "config/settings.h"
#include "waiting/push_board.h"

/*
 * Messages from a worker, one byte each. DAEMON_TRIED: it has tried to connect to all
 * servers, at the start or after a reload, and uses the new settings from now on.
 * DAEMON_EXITED: its loop has stopped.
 */
enum { DAEMON_TRIED = 's', DAEMON_EXITED = 'e' };

/*
 * Maximum number of connections beyond max_connections. Each of them is kept until an idle
 * connection is closed for it.
 */
enum { DAEMON_REPLACING = 16 };

struct balance;
struct fresh_slots;
struct meter;
struct names;
struct news;
struct worker;

struct daemon {
	/*
	 * The latest settings. Owned and changed by the main thread; workers add a reference when
	 * they start or reload.
	 */
	struct settings *settings;
	size_t threads;
	struct worker **workers;  /* `threads` workers. */
	struct meter **meters;    /* The meter of each worker. */
	int64_t started;          /* Unix time. */
	struct balance *balances; /* The balance of each worker. */
	struct clients_total clients;
	atomic_int replacing; /* Connections for which an idle one is being closed. */
	atomic_uint_fast64_t accepted, rejected;
	struct large_filter *large;
	struct push_board *board;
	struct {
		struct news *news;
		struct names *names;       /* Borrowed. */
		struct fresh_slots *fresh; /* Writes to servers, for reads from memory. */
	} servers;
	/* Carries out a PROXY_COMMAND for a worker; see struct clients_ops. */
	struct reply (*command)(
		struct worker *worker, const struct request *request, struct buf *text);
	/* Used by the main thread: the addresses where clients connect, separated by spaces. */
	char *listens;
	/* Used by the main thread: an attempt was made to connect to every server. */
	bool serving;
	bool stopping; /* Used by the main thread: a signal to shut down was received. */
	int news;      /* Write end of a pipe for DAEMON_TRIED and DAEMON_EXITED. */
	/* Descriptors of the process; opened before the user is switched; or NULL. */
	DIR *descriptors;
	/*
	 * Protects each worker's pointer to its current generation, and the fields that struct
	 * meter names.
	 */
	pthread_mutex_t lock;
};

#endif
