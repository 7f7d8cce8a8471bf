#include "protocol/hint.h"

#include "protocol/command.h"
#include "protocol/commands.h"
#include "util/near.h"

static const struct hint {
	struct slice name;
	const char *reply;
} hints[] = {
#define COMMAND(id, name, ...) \
	{ { name, sizeof(name) - 1 }, "ERROR no such command; names are in lower case: use " name },
#define PROXY_COMMAND COMMAND
#include "protocol/commands.def"
#undef PROXY_COMMAND
#undef COMMAND
#define HINT(name, reply) { { name, sizeof(name) - 1 }, reply },
#include "protocol/hints.def"
#undef HINT
};

const char *hint_unknown(struct slice name)
{
	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
		if (near_same(name, hints[i].name))
			return hints[i].reply;
	}
	return "ERROR";
}
