/* Carries out the commands about the proxy itself or the connection. All of them reply at once. */
#ifndef ADMIN_H
#define ADMIN_H

#include "worker/worker.h"

/*
 * Carries out a request from a client of `worker` and returns the reply, as clients_ops.command
 * does. Used as daemon.command.
 */
struct reply admin_answer(struct worker *worker, const struct request *request, struct buf *out);

#endif
