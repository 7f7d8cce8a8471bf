/*
 * Listening sockets. If the process runs out of file descriptors, accepting pauses for 100 ms.
 *
 * After a listener is started, only the thread of its loop may call listener_use_tls() or
 * listener_destroy() on it.
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
	const char *host; /* Host, or the path of a Unix socket. */
	uint16_t port;    /* 0 for a Unix socket. */
	mode_t mode;      /* File mode of a Unix socket. */
	/* Other processes may listen on the same TCP port, if they set SO_REUSEPORT too. */
	bool reuseport;
};

/*
 * Listens on a TCP address or a Unix socket. The host "*" means every address, IPv6 and IPv4. A
 * socket file on which no process listens is replaced. `place` is borrowed for the call.
 * Returns NULL on failure, with the reason in `error`.
 */
struct listener *listener_create(const struct listener_place *place, char error[256]);

/*
 * Returns whether listener_create() could succeed, as far as that can be checked without
 * creating a socket that is visible to others: a name must have an address of this host, a path
 * must be in an existing directory. On failure the reason is in `error`.
 */
bool listener_check(const struct listener_place *place, char error[256])
	__attribute__((warn_unused_result));

/*
 * Creates a listener of a socket that is already listening, and takes ownership of it. The file
 * of a Unix socket is not removed when the listener is destroyed. Returns NULL on failure, with
 * the reason in `error`.
 */
struct listener *listener_adopt(int fd, char error[256]);

/*
 * Called for each new connection with its non-blocking socket and its TLS session, or NULL.
 * Takes ownership of both.
 */
typedef void listener_accepted(int fd, struct tls *tls, void *arg);

/*
 * Starts accepting in the loop of `base`. Until then connections stay in the kernel's backlog.
 * At most `most` connections are accepted in one turn of the loop, so a flood of connections
 * leaves time for existing clients.
 */
void listener_start(struct listener *listener, struct event_base *base, unsigned most,
	listener_accepted *accepted, void *arg);

/*
 * Makes new clients use TLS with this context, to which the listener adds a reference. NULL
 * means plain text.
 */
void listener_use_tls(struct listener *listener, struct tls_context *tls);

/*
 * Changes the mode of the file of a Unix socket. A failure is logged and leaves the mode
 * unchanged.
 */
void listener_set_mode(struct listener *listener, mode_t mode);

/*
 * Allows other processes to listen on the same TCP port. This cannot be undone. Does nothing
 * for a Unix socket.
 */
void listener_share(struct listener *listener);

/*
 * Makes the kernel direct new connections to another process that listens on the same port.
 * Returns false if that is not possible; true does not mean that there is another process.
 */
bool listener_step_aside(struct listener *listener);

/*
 * Accepts the pending connections, closes the socket, and removes the file of a Unix socket.
 * NULL does nothing.
 */
void listener_destroy(struct listener *listener);

#endif
