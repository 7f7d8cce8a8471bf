/* The commands about the proxy or the connection. Each replies at once. */
#ifndef ADMIN_H
#define ADMIN_H

#include "worker/worker.h"

/* Carries out a request of a client of the worker, and appends its reply to `out`. */
typedef void admin_command(struct worker *worker, const struct request *request, struct buf *out);

#define PROXY_COMMAND(id, name, grammar, start, ...) admin_command start;
#define COMMAND(...)
#include "protocol/commands.def"
#undef COMMAND
#undef PROXY_COMMAND

/* Carries out a request of any of these commands: for daemon.command. */
admin_command admin_answer;

#endif
