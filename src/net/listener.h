/*
 * Listening sockets. Without a free file descriptor, accepting pauses for 100 ms.
 *
 * Once a listener is started, only the thread of its loop may use TLS with it or destroy it.
 */
#ifndef NET_LISTENER_H
#define NET_LISTENER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct event_base;
struct listener;
struct tls;
struct tls_context;

struct listener_place {
	const char *host; /* or the path of a Unix socket */
	uint16_t port;    /* 0 for a Unix socket */
	mode_t mode;      /* of the file of a Unix socket */
	bool reuseport;   /* other processes may listen on the same TCP port, if they say so too */
};

/*
 * Listens on a TCP address or a Unix socket. The host "*" is every address, of IPv6 and IPv4. The file of a socket on which nothing
 * listens is replaced. `place` is borrowed for the call. On failure gives NULL, with the reason in `error`.
 */
struct listener *listener_create(const struct listener_place *place, char error[256]);

/*
 * Whether listener_create could succeed, as far as that shows without a socket that others see: a name has an address that this host has,
 * a path is in a folder. On failure gives false, with the reason in `error`.
 */
bool listener_check(const struct listener_place *place, char error[256]) __attribute__((warn_unused_result));

/* The same on a socket that listens already, which it owns from now on. It does not remove the file of a Unix socket. */
struct listener *listener_adopt(int fd, char error[256]);

/* Takes each new socket, which is non-blocking, and its TLS session, or NULL. */
typedef void listener_accepted(int fd, struct tls *tls, void *arg);

/*
 * Starts accepting, in the loop of `base`. Before that, connections wait in the kernel. One turn of the loop accepts `most` of them: so
 * a flood of them leaves time for those that are served.
 */
void listener_start(
	struct listener *listener, struct event_base *base, unsigned most, listener_accepted *accepted, void *arg);

/* From now on new clients must speak TLS with this context, of which it takes a share; with NULL, plain text. */
void listener_use_tls(struct listener *listener, struct tls_context *tls);

/* Changes the mode of the file of a Unix socket. On failure it stays, and the log says so. */
void listener_set_mode(struct listener *listener, mode_t mode);

/* From now on other processes may listen on the same TCP port. This cannot be taken back. A Unix socket stays as it is. */
void listener_share(struct listener *listener);

/* Has the system send new connections to another process on the same port, if there is one. True if there may be one. */
bool listener_step_aside(struct listener *listener);

/* Accepts what waits, closes the socket, and removes the file of a Unix socket. NULL does nothing. */
void listener_destroy(struct listener *listener);

#endif
