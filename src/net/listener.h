/* Listening sockets. Without a free file descriptor, accepting pauses for 100 ms. */
#ifndef NET_LISTENER_H
#define NET_LISTENER_H

#include <stdint.h>
#include <sys/types.h>

struct event_base;
struct listener;
struct tls;
struct tls_context;

/*
 * Listens on a TCP address, or, if `port` is 0, on a Unix socket with the path `host`. Its file gets `mode`; the file of a socket
 * on which nothing listens is replaced. `accepted` takes each new socket, which is non-blocking, and its TLS session, or NULL. On
 * failure gives NULL, with the reason in `error`.
 */
struct listener *listener_create(struct event_base *base, const char *host, uint16_t port, mode_t mode,
	void (*accepted)(int fd, struct tls *tls, void *arg), void *arg, char error[256]);

/* From now on new clients must speak TLS with this context, which it holds. */
void listener_use_tls(struct listener *listener, struct tls_context *tls);

/* Starts accepting. Before that, connections wait in the kernel. */
void listener_start(struct listener *listener);

/* Closes the socket, and removes the file of a Unix socket. NULL does nothing. */
void listener_destroy(struct listener *listener);

#endif
