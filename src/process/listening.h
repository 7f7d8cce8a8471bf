/*
 * All listeners of the daemon, and their changes at a reload. For the main thread, except
 * listening_commit() and listening_close(), which are for the thread that accepts; there is at
 * most one.
 */
#ifndef PROCESS_LISTENING_H
#define PROCESS_LISTENING_H

#include "config/settings.h"
#include "net/listener.h"

struct listening;
struct worker;

/* Creates an empty set of listeners. worker_accept() is called for each new connection. */
struct listening *listening_create(void);

/*
 * Takes over the sockets passed by the parent process, as systemd does (LISTEN_PID,
 * LISTEN_FDS). If there are any, the addresses in configurations are not opened. Returns false
 * on failure, with the reason in `errors`.
 */
bool listening_inherit(struct listening *listening, struct buf *errors)
	__attribute__((warn_unused_result));

/*
 * Returns whether the sockets were inherited from the parent process. Then the configured
 * addresses are ignored.
 */
bool listening_is_inherited(const struct listening *listening);

/*
 * Opens the configured listeners that are not open yet, without accepting connections. Returns
 * false on failure, with the reason in `errors`; no listener is added then.
 */
bool listening_prepare(struct listening *listening, const struct config *config, struct buf *errors)
	__attribute__((warn_unused_result));

/*
 * Starts the listeners that listening_prepare() opened, in the thread of `worker`, and closes
 * the listeners that are no longer configured. New clients use the certificates of `settings`,
 * whose configuration must be the one passed to listening_prepare().
 */
void listening_commit(
	struct listening *listening, const struct settings *settings, struct worker *worker);

/*
 * Makes the kernel direct new connections to another process that listens on the same ports, if
 * there is one. Returns false if that is not possible for any port. For a moment, connections
 * that are already being established still arrive here.
 */
bool listening_step_aside(struct listening *listening);

/* Accepts the pending connections and closes all listeners. */
void listening_close(struct listening *listening);

/* Closes listeners that were never started, and frees the memory. */
void listening_destroy(struct listening *listening);

#endif
