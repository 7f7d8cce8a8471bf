/* The functions that start requests; commands.def names the one of each command. */
#ifndef COMMAND_START_H
#define COMMAND_START_H

#include "command/host.h"
#include "protocol/request.h"

/* Starts a request. `request` and its slices are borrowed for the call; `owner` is passed to the host, with the task. */
typedef void command_start(struct host *host, const struct request *request, void *owner);

#define COMMAND(id, name, grammar, start, ...) command_start start;
#define PROXY_COMMAND(...)
#include "protocol/commands.def"
#undef PROXY_COMMAND
#undef COMMAND

/* Starts a request. Gives false, and does nothing, for a PROXY_COMMAND, which the host carries out. */
bool task_start(struct host *host, const struct request *request, void *owner) __attribute__((warn_unused_result));

#endif
