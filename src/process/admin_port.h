/*
 * The HTTP port for operators, served by the main thread: a live page, /metrics for Prometheus,
 * /healthz, /readyz, and /stats.json for programs. It is read-only: GET and HEAD, without a
 * body.
 */
#ifndef PROCESS_ADMIN_PORT_H
#define PROCESS_ADMIN_PORT_H

#include <stdbool.h>

#include "worker/daemon.h"

struct admin_port;
struct event_base;

/*
 * Creates the port without opening an address. Borrows both arguments until
 * admin_port_destroy(). Must be called before the user is switched.
 */
struct admin_port *admin_port_create(struct event_base *base, struct daemon *daemon);

/*
 * Opens the address in the configuration, unless it is already open. It is not served until
 * admin_port_commit(). A second call replaces the configuration of the first one. Returns false
 * on failure, with the reason in `errors`; the address that is already open is kept.
 */
bool admin_port_prepare(struct admin_port *port, const struct config *config, struct buf *errors)
	__attribute__((warn_unused_result));

/*
 * Serves the address that the last admin_port_prepare() opened, and closes the former one if
 * the new configuration does not have it. That configuration must now be the one in the
 * daemon's settings.
 */
void admin_port_commit(struct admin_port *port);

/* Closes the address that the last admin_port_prepare() opened. */
void admin_port_undo(struct admin_port *port);

/* Closes the port and frees it. NULL does nothing. */
void admin_port_destroy(struct admin_port *port);

#endif
