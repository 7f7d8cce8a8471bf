/* What the threads of the process share. */
#ifndef DAEMON_H
#define DAEMON_H

#include <pthread.h>
#include <stdatomic.h>

#include "collection/large.h"
#include "config/config.h"

#define DAEMON_VERSION SETLISTD_VERSION

enum counter {
#define COUNTER(name) COUNT_##name,
#include "counters.def"
#undef COUNTER
	COUNTERS
};

/* One byte each: a worker has tried all servers once; its thread has ended. */
enum { DAEMON_SETTLED = 's', DAEMON_ENDED = 'e' };

struct worker;

struct daemon {
	const struct config *config;
	const struct ring *ring;
	struct worker **workers; /* config->threads of them */
	int64_t started;         /* unix time */
	atomic_int connections;  /* open now */
	atomic_uint_fast64_t accepted, rejected;
	struct large_filter *large;
	int news;                    /* a pipe: each worker writes DAEMON_SETTLED, and in the end DAEMON_ENDED */
	pthread_mutex_t lock;        /* of the baseline */
	uint64_t baseline[COUNTERS]; /* what the counters were at `stats reset` */
};

#endif
