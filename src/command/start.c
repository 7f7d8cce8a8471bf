#include "command/start.h"

bool task_start(struct host *host, const struct request *request, void *owner)
{
	static command_start *const starts[COMMAND_COUNT] = {
#define COMMAND(id, name, grammar, start, ...) [COMMAND_##id] = start,
#define PROXY_COMMAND(...)
#include "protocol/commands.def"
#undef PROXY_COMMAND
#undef COMMAND
	};
	command_start *start = starts[request->command->id];

	if (start)
		start(host, request, owner);
	return start != NULL;
}
