/*
 * A client, and what all files of this room do with it. The parts bounds, window and turn belong to the files of these names: all
 * others use their functions, as `make lint` checks. Only state.h changes `state` and `pauses`.
 */
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

#include "client/common.h"
#include "client/protocol.h"
#include "collection/account.h"
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

/* What becomes of a client's input. A client only goes down this list. */
enum client_state {
	CLIENT_OPEN,      /* its requests are carried out */
	CLIENT_DEPARTING, /* only those within input.owed are, which were read before the client had to go */
	CLIENT_CLOSING,   /* input is dropped; the client is closed once all is answered and written */
	CLIENT_LINGERING, /* all is written, but maybe not received; input is discarded until the client sends no more */
	CLIENT_CLOSED     /* its tasks may still be unfinished */
};

/* Why a client's requests are not carried out, in bits. */
enum client_pause {
	PAUSE_ORDER = 1,   /* the next request waits until all tasks are done */
	PAUSE_WINDOW = 2,  /* too much is under way */
	PAUSE_TURN = 4,    /* the client waits for its turn at a server, or for a slice of work */
	PAUSE_LOGIN = 8,   /* a request was refused, since the client has not authenticated */
	PAUSE_BACKLOG = 16 /* too many replies wait to be written */
};

/* Input that is not carried out yet. */
struct client_input {
	struct request_progress progress; /* of an incomplete request */
	struct request_skip skip;         /* of a refused request; or bytes, while the client lingers */
	struct client_refused
		*refused; /* the request whose data are skipped, unless it was answered at once; or NULL */
	const struct protocol *protocol; /* NULL until its first byte was received */
	bool has_ended;                  /* the client sends no more */
	bool is_settled;                 /* a client that lingers has sent nothing meanwhile */
	size_t owed;                     /* of a client that departs: bytes whose requests are carried out */
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
	uint32_t values;   /* that the unfinished replies may carry */
	uint32_t mean;     /* of the sizes of values lately; 0 if none has come */
	uint32_t estimate; /* the assumed size of one of them */
	uint32_t largest;  /* the largest value since the last estimate */
	uint32_t due;      /* values that must still come before the next estimate */
};

struct client_turn {
	struct turn turn;
	struct server_turns *at; /* where the client has a turn or waits for one; else NULL */
	struct payer payer;
	struct loop_job go_on; /* queued while the client gives way to others */
};

struct client {
	struct stream stream;     /* first: a pointer to one is a pointer to the other */
	TAILQ_ENTRY(client) link; /* among all */
	struct clients *clients;
	struct account account; /* of its requests; see client_settle */
	enum client_state state;
	unsigned pauses;               /* bits of enum client_pause; 0: requests are carried out */
	size_t users;                  /* of a closed client: its unfinished tasks, and `release`; then it is freed */
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
};

static inline struct client *client_of_account(struct account *account)
{
	return (struct client *)((char *)account - offsetof(struct client, account));
}

/* Whether no more requests of the client are read. */
static inline bool client_is_closing(const struct client *client)
{
	return client->state >= CLIENT_CLOSING;
}

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

/* Frees a finished task that is in no client's list. The last task of a disconnected client also frees the client. */
void client_free_task(struct task *task);

/* A user of a closed client has gone. */
void client_release(struct client *client);

#endif
