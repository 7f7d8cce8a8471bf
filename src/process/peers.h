/*
 * A small server for operators, in the main thread. A peer sends requests of text, which are answered one at a time. Whatever a peer
 * does, it costs little:
 *
 *     number     one peer more closes the one that was silent longest: whose last request is oldest
 *     size       a peer that sends a longer request is closed; while its answer waits, the kernel stops it
 *     time       for a request with its answer, however it is spent; then the peer is closed
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

/* Connections that a turn accepts: at most half of `most`. So a peer that has sent its request is answered before it makes room. */
enum { PEERS_ACCEPT = 8 };

struct peers_kind {
	const char *name; /* for the log */
	int most;         /* peers */
	size_t size;      /* bytes of a request */
	time_t seconds;   /* for a request with its answer */
	/*
	 * Takes the request at the front of `in`, which is borrowed for the call, and gives the number of its bytes. The peer must get an
	 * answer, within the call or later. Gives 0 if the request is incomplete, and -1 to close the peer.
	 */
	ssize_t (*request)(void *arg, struct peer *peer, struct slice in);
};

/* Borrows all until peers_destroy. */
struct peers *peers_create(struct event_base *base, const struct peers_kind *kind, void *arg);

/* Takes an accepted socket. A listener_accepted. */
void peers_take(int fd, struct tls *tls, void *peers);

/* Answers the peer's request. `last`: closes the peer when this is written. */
void peers_answer(struct peer *peer, struct slice text, bool last);

/* Answers all requests that wait. If `peers` is NULL, does nothing. */
void peers_answer_all(struct peers *peers, struct slice text);

/* Closes all. NULL does nothing. */
void peers_destroy(struct peers *peers);

#endif
