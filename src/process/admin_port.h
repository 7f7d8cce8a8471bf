/*
 * The HTTP port for operators, served by the main thread: a live page, /metrics for Prometheus, /healthz, /readyz, and /stats.json
 * for programs. It only reads: GET and HEAD, without a body.
 */
#ifndef PROCESS_ADMIN_PORT_H
#define PROCESS_ADMIN_PORT_H

#include <stdbool.h>

#include "worker/daemon.h"

struct admin_port;
struct event_base;

/* Borrows both until admin_port_destroy. Nothing is open yet. Must run before the user is switched. */
struct admin_port *admin_port_create(struct event_base *base, struct daemon *daemon);

/*
 * Opens the address that the configuration names, if it is not open. It is not served yet. On failure gives false, with the reason
 * in `error`, and the open address stays. A second call forgets the first one.
 */
bool admin_port_prepare(struct admin_port *port, const struct config *config, struct buf *errors)
	__attribute__((warn_unused_result));

/*
 * Serves the address that the last admin_port_prepare has opened, and closes one that its configuration does not have: that is now the one
 * of the daemon's settings.
 */
void admin_port_commit(struct admin_port *port);

/* Closes the address that the last admin_port_prepare has opened. */
void admin_port_undo(struct admin_port *port);

/* NULL does nothing. */
void admin_port_destroy(struct admin_port *port);

#endif
