/*
 * A client, and what all files of this room do with it. The parts bounds, window and turn belong to the files of these names: all
 * others use their functions, as `make lint` checks.
 */
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

#include "client/common.h"
#include "client/protocol.h"
#include "command/task.h"
#include "config/config.h"
#include "measure/meter.h"
#include "net/stream.h"
#include "util/turns.h"
#include "worker/generation.h"

/*
 * A request that is refused only after its data were discarded: a client that is still sending may not be reading yet.
 */
struct client_refused {
	struct parsed parsed;
	char line[]; /* The line that the slices of the request point into. */
};

/* Input that is not carried out yet. */
struct client_input {
	struct request_progress progress; /* of an incomplete request */
	struct request_skip skip;         /* of a refused request; or bytes, while the client lingers */
	struct client_refused
		*refused; /* the request whose data are skipped, unless it was answered at once; or NULL */
	const struct protocol *protocol; /* NULL until its first byte was received */
	bool departing;                  /* the client is closed once the requests in `owed` have begun */
	size_t owed;                     /* bytes read before the daemon began to drain, whose requests are answered */
	uint64_t began;                  /* when the requests that are read now were received; microseconds */
	uint64_t delayed; /* since when the next request waits for its turn or for earlier ones; microseconds, or 0 */
};

/* Bytes of replies. */
struct client_output {
	uint64_t produced; /* written in all */
	uint64_t measured; /* written and waiting, up to the last finished task */
	uint64_t watched;  /* `produced` at the last clients_watch */
	uint32_t unsent;   /* replies since the last write */
};

/* All times are milliseconds of the loop. */
struct client_bounds {
	TAILQ_ENTRY(client) rank, checked;
	size_t held;       /* bytes of memory that the daemon counts for the client */
	uint64_t progress; /* when something was last written, or began to wait for it */
	uint64_t active;   /* when the client last sent or took something */
	uint64_t listed;   /* when it got its place among all */
	uint64_t begun;    /* when the incomplete request began, or the lingering; 0: neither */
	bool is_checked;   /* by the timer */
	bool is_late;      /* its time was over at the last tick: at the next one it is closed, unless it has gone on */
};

struct client_window {
	size_t asked;      /* bytes of the unfinished requests and their tasks */
	size_t spilled;    /* bytes of replies that wait for earlier ones */
	uint32_t values;   /* that the unfinished replies may carry */
	uint32_t mean;     /* of the sizes of values lately; 0 if none has come */
	uint32_t estimate; /* the assumed size of one of them */
	uint32_t largest;  /* the largest value since the last estimate */
	uint32_t due;      /* values that must still come before the next estimate */
};

struct client_turn {
	struct turn turn;
	struct server_turns *at; /* where the client has a turn or waits for one; else NULL */
	uint64_t rewritten; /* bytes that its requests had servers rewrite, and that have not counted in a turn yet */
	struct payer payer;
	struct loop_job go_on; /* queued while the client gives way */
};

struct client {
	struct stream stream;     /* first: a pointer to one is a pointer to the other */
	TAILQ_ENTRY(client) link; /* among all */
	struct clients *clients;
	struct generation *generation; /* in which its next request begins, unless there is a newer one by then */
	STAILQ_HEAD(, task) tasks;     /* in the order of their requests */
	struct order order;            /* of the unfinished tasks */
	struct client_input input;
	struct client_output output;
	struct client_bounds bounds;
	struct client_window window;
	struct client_turn turn;
	struct client_auth *auth; /* see auth.h; NULL once it is authenticated, or if it need not be */
	void *destination;        /* the worker to move to, or NULL */
	struct loop_job release;
	bool barrier : 1; /* the next request waits until all tasks are done */
	/* No request is started: too many are unanswered, too much output is pending, or the next one must wait. */
	bool paused : 1;
	bool closing : 1;   /* no more requests are read; closed when all is answered and written */
	bool ended : 1;     /* the client sends no more */
	bool lingering : 1; /* all is written, but maybe not received; input is discarded */
	bool settled : 1;   /* lingers, and has sent nothing meanwhile */
};

static inline const struct config *client_config(const struct client *client)
{
	return client->clients->config;
}

static inline struct host *client_host(const struct client *client)
{
	return &client->generation->host;
}

static inline void client_count(const struct client *client, enum counter counter, uint64_t n)
{
	meter_count(client->clients->meter, counter, n);
}

/* Frees a task that is done and not among those of a client. */
void client_free_task(struct task *task);

/* Discards the data of a refused request; whether some of them are still to come. */
static inline void client_skip(struct client *client, const struct request *request)
{
	client->input.skip = request->skip;
}

static inline bool client_is_skipping(const struct client *client)
{
	return client->input.skip.bytes || client->input.skip.line_end;
}

#endif
