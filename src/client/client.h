/*
 * A client, with functions for all files of this room. The parts bounds, window and turn belong
 * to the files of these names. All other files use their functions, as `make lint` checks. Only
 * state.h changes `state` and `pauses`.
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
 * A request that is refused only after its data were discarded, because a client that is still
 * sending may not be reading yet.
 */
struct client_refused {
	struct parsed parsed;
	char line[]; /* The line that the slices of the request point into. */
};

/* How a client's input is handled. The state of a client only moves down this list. */
enum client_state {
	CLIENT_OPEN, /* Its requests are carried out. */
	/*
	 * Only requests in input.owed are carried out; they were read before the client had to
	 * stop.
	 */
	CLIENT_DEPARTING,
	/* Input is discarded; the client is closed once all is answered and written. */
	CLIENT_CLOSING,
	/*
	 * All is written, but perhaps not received; input is discarded until the client sends
	 * no more.
	 */
	CLIENT_LINGERING,
	CLIENT_CLOSED /* Its tasks may still be unfinished. */
};

/* Bits for the reasons why a client's requests are not carried out. */
enum client_pause {
	PAUSE_ORDER = 1,   /* The next request must wait until all tasks are done. */
	PAUSE_WINDOW = 2,  /* Too much is in flight. */
	PAUSE_TURN = 4,    /* The client waits for its turn at a server, or for a slice of work. */
	PAUSE_LOGIN = 8,   /* A request was refused, since the client has not authenticated. */
	PAUSE_BACKLOG = 16 /* Too many replies are unsent. */
};

/* Input that is not carried out yet. */
struct client_input {
	struct request_progress progress; /* Progress of an incomplete request. */
	/* Of a refused request; or bytes while the client lingers. */
	struct request_skip skip;
	/* The request whose data are skipped, unless it was answered at once; or NULL. */
	struct client_refused *refused;
	const struct protocol *protocol; /* NULL until the first byte is received. */
	bool has_ended;                  /* The client sends no more. */
	bool is_silent;                  /* A lingering client has sent nothing meanwhile. */
	/* Bytes of a departing client whose requests are still carried out. */
	size_t owed;
	uint64_t began; /* Time when the requests being read were received, in microseconds. */
	/*
	 * Time since which the next request waits for its turn or for earlier requests, in
	 * microseconds; or 0.
	 */
	uint64_t delayed;
};

/* Counts of reply bytes. */
struct client_output {
	uint64_t produced; /* Total written. */
	uint64_t measured; /* Written and pending, up to the last finished task. */
	uint64_t watched;  /* `produced` at the last clients_watch. */
	uint32_t unsent;   /* Number of replies since the last write. */
};

/* All times are in milliseconds of the loop. */
struct client_bounds {
	TAILQ_ENTRY(client) rank, checked;
	size_t held; /* Bytes of memory that the daemon counts for the client. */
	/* Time of the last write, or when output was queued after there was none. */
	uint64_t progress;
	uint64_t active; /* Time when the client last sent or read something. */
	uint64_t listed; /* Time when it got its place in the list of all clients. */
	/* Time when the incomplete request or the lingering began; 0 for neither. */
	uint64_t begun;
	bool is_checked; /* In the list of clients that the timer checks. */
	/* It was late at the last tick, and is closed if it is still late at the next one. */
	bool is_late;
};

struct client_window {
	uint32_t values;   /* Values that the unfinished replies may contain. */
	uint32_t mean;     /* Mean of recent value sizes; 0 if there is none. */
	uint32_t estimate; /* Assumed size of a value. */
	uint32_t largest;  /* Largest value since the last estimate. */
	uint32_t due;      /* Values that must still be received before the next estimate. */
};

struct client_turn {
	struct turn turn;
	/* The server where the client has or waits for a turn, else NULL. */
	struct server_turns *at;
	struct payer payer;
	struct loop_job go_on; /* Queued while the client yields to others. */
};

struct client {
	struct stream stream;     /* First: a pointer to one is a pointer to the other. */
	TAILQ_ENTRY(client) link; /* In the list of all clients. */
	struct clients *clients;
	struct account account; /* The account of its requests; see client_end_turn. */
	enum client_state state;
	unsigned pauses; /* Bits of enum client_pause; 0: requests are carried out. */
	/* References to a closed client: its unfinished tasks, and `release`. Freed at 0. */
	size_t users;
	/* The generation of its next request, unless there is a newer one by then. */
	struct generation *generation;
	STAILQ_HEAD(, task) tasks; /* In the order of their requests. */
	struct order order;        /* Of the unfinished tasks. */
	struct client_input input;
	struct client_output output;
	struct client_bounds bounds;
	struct client_window window;
	struct client_turn turn;
	struct client_auth *auth; /* See auth.h; NULL if it is authenticated or need not be. */
	void *destination;        /* The worker to move to, or NULL. */
	struct loop_job release;
};

static inline struct client *client_of_account(struct account *account)
{
	return (struct client *)((char *)account - offsetof(struct client, account));
}

/* Returns whether no more requests of the client are read. */
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

/*
 * Frees a finished task that is not in a client's list. The last task of a disconnected client
 * also frees the client.
 */
void client_free_task(struct task *task);

/* Drops a reference to a closed client. */
void client_release(struct client *client);

#endif
