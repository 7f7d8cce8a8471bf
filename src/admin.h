/* The commands about the process itself: stats, version, verbosity, help, route, mn. Each answers at once. */
#ifndef ADMIN_H
#define ADMIN_H

#include "client.h"

/* Carries out a request that task_start gave back; as task_start. */
void admin_start(struct worker *worker, const struct request *request, struct client *client);

#endif
