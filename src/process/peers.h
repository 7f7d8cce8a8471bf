/*
 * A small server for operators, in the main thread. A peer sends requests as text, which are
 * answered one at a time. The cost of each peer is limited:
 *
 *     number  Above the limit, a new peer closes the one whose last request is oldest.
 *     size    A peer that sends a longer request is closed. While an answer is pending, little more
 *             input is read, so the kernel throttles the peer.
 *     time    A peer is closed if a request with its answer takes longer.
 */
#ifndef PROCESS_PEERS_H
#define PROCESS_PEERS_H

#include <stdbool.h>
#include <sys/types.h>

#include "util/slice.h"

struct event_base;
struct peer;
struct peers;
struct tls;

/*
 * Connections that are accepted in one turn. At most half of `most`, so that a peer that has
 * sent its request is answered before it is closed for a new one.
 */
enum { PEERS_ACCEPT = 8 };

struct peers_kind {
	const char *name; /* Name for the log. */
	int most;         /* Maximum number of peers. */
	size_t size;      /* Maximum bytes of a request. */
	time_t seconds;   /* Time limit for a request with its answer. */
	/*
	 * Handles the request at the front of `in`, which is borrowed for the call, and returns
	 * its length in bytes. The peer must be answered, within the call or later. Returns 0
	 * if the request is incomplete, and -1 to close the peer.
	 */
	ssize_t (*request)(void *arg, struct peer *peer, struct slice in);
};

/* Creates a server without listeners. Borrows all arguments until peers_destroy(). */
struct peers *peers_create(struct event_base *base, const struct peers_kind *kind, void *arg);

/* Takes ownership of an accepted socket. A listener_accepted callback. */
void peers_take(int fd, struct tls *tls, void *peers);

/* Answers the peer's request. If `last` is set, closes the peer after the answer is written. */
void peers_answer(struct peer *peer, struct slice text, bool last);

/* Answers all pending requests. NULL does nothing. */
void peers_answer_all(struct peers *peers, struct slice text);

/* Closes all peers. NULL does nothing. */
void peers_destroy(struct peers *peers);

#endif
