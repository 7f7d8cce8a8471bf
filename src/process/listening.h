/*
 * All listeners of the daemon, and how they follow the configuration. For the main thread, but listening_commit and listening_close are
 * for the thread that accepts: there is one at most.
 */
#ifndef PROCESS_LISTENING_H
#define PROCESS_LISTENING_H

#include "config/settings.h"
#include "net/listener.h"

struct listening;
struct worker;

/* worker_accept takes each new socket. */
struct listening *listening_create(void);

/*
 * Takes over the sockets that the parent process passes, as systemd does (LISTEN_PID, LISTEN_FDS). If there are any, the addresses
 * of configurations are not opened. On failure gives false, with the reason in `error`.
 */
bool listening_inherit(struct listening *listening, struct buf *errors) __attribute__((warn_unused_result));

/* Whether it listens on sockets of its parent, whatever the configuration says. */
bool listening_is_inherited(const struct listening *listening);

/*
 * Opens the listeners that the configuration has and that are not open. They accept nothing yet. On failure none is added, and this gives
 * false, with the reason in `error`.
 */
bool listening_prepare(struct listening *listening, const struct config *config, struct buf *errors)
	__attribute__((warn_unused_result));

/*
 * Starts the listeners that listening_prepare has opened: they accept in the thread of `worker`. Closes listeners that its configuration
 * does not have. New clients use the certificates of `settings`, of which listening_prepare had the configuration.
 */
void listening_commit(struct listening *listening, const struct settings *settings, struct worker *worker);

/*
 * Has new connections go to another process that listens on the same port, if there is one. True if there may be one: a connection
 * that is on its way finds this one for a moment more.
 */
bool listening_step_aside(struct listening *listening);

/* Accepts what waits, and closes all. */
void listening_close(struct listening *listening);

/* Closes listeners that were never started, and frees the memory. */
void listening_destroy(struct listening *listening);

#endif
