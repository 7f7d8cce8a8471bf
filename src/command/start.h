/* Starting what a request asks for. */
#ifndef COMMAND_START_H
#define COMMAND_START_H

#include "command/host.h"
#include "protocol/request.h"

/* Carries out a request. The request's slices are borrowed for the call only; `owner` is the host's, for the task. */
typedef void command_start(struct host *host, const struct request *request, void *owner);

#define COMMAND(id, name, grammar, start, ...) command_start start;
#define PROXY_COMMAND(...)
#include "protocol/commands.def"
#undef PROXY_COMMAND
#undef COMMAND

/* Starts what `request` asks for. False, with nothing done, for a PROXY_COMMAND: those are the host's. */
bool task_start(struct host *host, const struct request *request, void *owner) __attribute__((warn_unused_result));

#endif
