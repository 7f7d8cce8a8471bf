/* Listening sockets: accepts, and pauses instead of spinning when no file descriptor is left. */
#ifndef NET_LISTENER_H
#define NET_LISTENER_H

#include <stdint.h>
#include <sys/types.h>

struct event_base;
struct listener;

/*
 * Listens on a TCP address, or with port 0 on a Unix socket whose file is made with `mode`; a stale file is replaced, one
 * that somebody still listens on is not. `accepted` is given each new non-blocking socket. NULL with the reason in `error`.
 */
struct listener *listener_create(struct event_base *base, const char *host, uint16_t port, mode_t mode,
	void (*accepted)(int fd, void *arg), void *arg, char error[256]);

/* Accepts from now on; until then connections wait in the kernel. */
void listener_start(struct listener *listener);

/* Closes, and removes the file of a Unix socket. NULL is fine. */
void listener_destroy(struct listener *listener);

#endif
