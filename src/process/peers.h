/*
 * A small server for operators, in the main thread. A peer sends requests as text, which are
 * answered one at a time. The cost of each peer is limited:
 *
 *     number  Above the limit, a new peer closes the one whose last request is oldest, among
 *             those whose input was read.
 *     size    Maximum size of a request. While an answer is pending, little more input is read, so
 *             the kernel throttles the peer.
 *     time    A peer is closed if a request with its answer takes longer.
 *
 * After the last answer to a peer, its further input is discarded until it closes the connection,
 * within the same limit of time and PEERS_DISCARD bytes: a close with unread input would reset the
 * connection, and the peer could lose the answer.
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

enum { PEERS_DISCARD = 1 << 20 };

struct peers_kind {
	const char *name; /* Name for the log. */
	int most;         /* Maximum number of peers. */
	size_t size;      /* Maximum bytes of a request. */
	time_t seconds;   /* Time limit for a request with its answer. */
	/*
	 * Handles the request at the front of `in`, which is borrowed for the call, and returns
	 * its length in bytes. The peer must be answered, within the call or later. Returns 0
	 * if the request is incomplete; not if `in` has `size` bytes.
	 */
	size_t (*request)(void *arg, struct peer *peer, struct slice in);
	/*
	 * Answers a peer whose request is incomplete when its time is over (`late`), or when it
	 * sends no more. NULL: it is closed without an answer.
	 */
	void (*cut_off)(void *arg, struct peer *peer, bool late);
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
