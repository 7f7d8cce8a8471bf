/* The commands about the proxy or the connection. Each replies at once. */
#ifndef ADMIN_H
#define ADMIN_H

#include "client/client.h"

/* Carries out a request, and appends its reply to `out`. */
typedef void admin_command(struct client *client, const struct request *request, struct buf *out);

#define PROXY_COMMAND(id, name, grammar, start, ...) admin_command start;
#define COMMAND(...)
#include "protocol/commands.def"
#undef COMMAND
#undef PROXY_COMMAND

/* Carries out a request for which task_start gave false, and appends its reply to `out`. */
void admin_answer(struct client *client, const struct request *request, struct buf *out);

/* The same, as a task of the client. */
void admin_start(struct client *client, const struct request *request);

#endif
