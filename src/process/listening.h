/* All listeners of the daemon, and how they follow the configuration. For the main thread. */
#ifndef PROCESS_LISTENING_H
#define PROCESS_LISTENING_H

#include "config/settings.h"
#include "net/listener.h"

struct listening;

/* `accepted` takes each new socket. */
struct listening *listening_create(struct event_base *base, listener_accepted *accepted, void *arg);

/*
 * Takes over the sockets that the parent process passes, as systemd does (LISTEN_PID, LISTEN_FDS). If there are any, the addresses
 * of configurations are not opened. On failure gives false, with the reason in `error`.
 */
bool listening_inherit(struct listening *listening, char error[256]) __attribute__((warn_unused_result));

/*
 * Opens the listeners that the configuration has and that are not open. They accept nothing yet. On failure none is added, and this gives
 * false, with the reason in `error`.
 */
bool listening_prepare(struct listening *listening, const struct settings *settings, char error[256])
	__attribute__((warn_unused_result));

/*
 * Starts those that listening_prepare has opened, closes those that its configuration does not have, and has new clients use the
 * certificates of `settings`, which are those of listening_prepare.
 */
void listening_commit(struct listening *listening, const struct settings *settings);

/*
 * Closes all. If another process listens on the same port, new connections go there first, and `closed` is called a moment later;
 * else it is called at once.
 */
void listening_leave(struct listening *listening, void (*closed)(void *arg), void *arg);

/* Closes what is open, and frees the memory. */
void listening_destroy(struct listening *listening);

#endif
