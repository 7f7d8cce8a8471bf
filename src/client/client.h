/*
 * A client's connection. Replies are in the order of the requests.
 *
 *     on_data -> take_request -> carry_out (makes a task) -> client_task_begin -> client_task_reply -> client_task_done
 *             -> on_written
 *
 * Tasks are queued in the order of their requests. The first one writes to the connection's buffer. Each other task writes to a
 * buffer of its own, task.spill, which is moved to the connection's buffer when the task becomes the first.
 */
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

#include "command/task.h"
#include "command/turns.h"
#include "net/stream.h"
#include "worker/worker.h"

/* For bounds.c and window.c. All times are milliseconds of the loop. */
struct client_limits {
	TAILQ_ENTRY(client) rank, attended;
	size_t held;       /* bytes of memory that the daemon counts for it */
	uint64_t progress; /* when something was last written, or began to wait for it */
	uint64_t active;   /* when it last sent or took something */
	uint64_t listed;   /* when it got its place among the worker's clients */
	uint64_t begun;    /* when the incomplete request began, or the lingering; 0: neither */
	uint32_t values;   /* that the unfinished replies may carry */
	uint32_t mean;     /* of the sizes of values lately; 0 if none has come */
	uint32_t estimate; /* the assumed size of one of them */
	uint32_t largest;  /* the largest value since the last estimate */
	uint32_t due;      /* values that must still come before the next estimate */
	bool is_late;      /* its time was over at the last tick: at the next one it is closed, unless it has gone on */
};

struct client {
	struct stream stream;     /* first: a pointer to one is a pointer to the other */
	TAILQ_ENTRY(client) link; /* among the worker's, in the order of `limits.listed` */
	struct worker *worker;
	struct generation *generation; /* in which its next request begins, unless there is a newer one by then */
	STAILQ_HEAD(, task) tasks;
	size_t asked;                    /* bytes of the unfinished requests and their tasks */
	size_t spilled;                  /* bytes of replies that wait for earlier ones */
	uint64_t produced, measured;     /* bytes of replies: written in all; up to the last finished task */
	struct order order;              /* of the unfinished tasks */
	struct request_progress request; /* of an incomplete request */
	size_t skip;                     /* bytes of input to discard: of a refused request, or while it lingers */
	bool skip_end;                   /* and a line end behind them */
	size_t owed; /* bytes of input read before the daemon began to drain, whose requests are answered */
	struct client_limits limits;
	struct client_auth *auth;     /* see auth.h; NULL once it is authenticated, or if it need not be */
	struct turn turn;             /* see turns.h */
	struct server_turns *turn_at; /* where it has a turn or waits for one; else NULL */
	uint32_t unsent;              /* replies since the last write */
	bool barrier : 1;             /* the next request waits until all tasks are done */
	bool paused : 1;              /* not read: too many requests are unanswered, or too much output waits */
	bool slowed : 1;              /* not read: its last request was refused before it was authenticated */
	bool departing : 1;           /* closing, once the requests in `owed` have begun */
	bool closing : 1;             /* no more requests are read; closed when all is answered and written */
	bool ended : 1;               /* the client sends no more */
	bool lingering : 1;           /* all is written; input is discarded */
	bool settled : 1;             /* lingers, and has sent nothing meanwhile */
	bool is_attended : 1;         /* the timer of the worker checks it */
	bool has_spoken : 1;          /* its first byte has come, which says whether */
	bool is_binary : 1;           /* it speaks the binary protocol: see binary.h */
	uint64_t watched;             /* `produced` at the last client_watch */
	struct worker *destination;   /* the worker to move to, or NULL */
	uint64_t began;               /* when the requests that are read now came; microseconds */
	uint64_t delayed; /* since when the next request waits for its turn or for earlier ones; microseconds, or 0 */
	struct loop_job release;
};

/* Takes a new socket, or one of another worker, and its TLS session or NULL. The client frees itself after it was closed. */
void client_open(struct worker *worker, int fd, struct tls *tls, bool is_new);

/* Closes now. Its tasks continue, but their replies are discarded. */
void client_close(struct client *client);

/* Replies with an error to the request that is incomplete, and drains the client. */
void client_refuse(struct client *client, const char *error);

/* Carries out a request by this reply alone. */
void client_reply(struct client *client, const struct request *request, const char *line);

/* Stops reading, and closes when all requests are answered: at once, if they are. */
void client_drain(struct client *client);

/* Reads requests again, after a pause. */
void client_resume(struct client *client);

/* The worker has a new generation: the client's next request begins in it, when all earlier ones are answered. */
void client_renew(struct client *client);

/* A task of the client is done. */
void client_answered(struct client *client);

/* Moves the client to another worker as soon as all its requests are answered. */
static inline void client_move(struct client *client, struct worker *to)
{
	client->destination = to;
}

/* client_was_busy: whether any reply was written since the last client_watch. */
static inline void client_watch(struct client *client)
{
	client->watched = client->produced;
}

static inline bool client_was_busy(const struct client *client)
{
	return client->watched != client->produced;
}

static inline struct client *client_next(struct client *client)
{
	return TAILQ_NEXT(client, link);
}

static inline const struct config *client_config(const struct client *client)
{
	return worker_config(client->worker);
}

#endif
