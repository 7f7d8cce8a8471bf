/* The ids of all commands, in the order of their names. */
#ifndef PROTOCOL_COMMANDS_H
#define PROTOCOL_COMMANDS_H

enum {
#define COMMAND(id, ...) COMMAND_##id,
#define PROXY_COMMAND COMMAND
#include "protocol/commands.def"
#undef PROXY_COMMAND
#undef COMMAND
	COMMAND_COUNT
};

#endif
