/* The commands about the proxy or the connection. Each replies at once. */
#ifndef ADMIN_H
#define ADMIN_H

#include "worker/worker.h"

/* Carries out a request of a client of the worker, and appends its reply to `out`: for daemon.command. */
void admin_answer(struct worker *worker, const struct request *request, struct buf *out);

#endif
