/* The commands about the proxy or the connection. Each replies at once. */
#ifndef ADMIN_H
#define ADMIN_H

#include "worker/worker.h"

/* Carries out a request of a client of the worker, as clients_ops.command does: for daemon.command. */
struct reply admin_answer(struct worker *worker, const struct request *request, struct buf *out);

#endif
