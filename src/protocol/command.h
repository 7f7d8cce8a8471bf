/* The table of commands: what a verb is called and how its line is read. */
#ifndef PROTOCOL_COMMAND_H
#define PROTOCOL_COMMAND_H

#include <stdbool.h>

#include "util/slice.h"

enum command_id {
#define COMMAND(id, name, grammar, noreply, usage, summary) COMMAND_##id,
#include "protocol/commands.def"
#undef COMMAND
	COMMAND_COUNT
};

enum grammar {
	GRAMMAR_STORAGE,         /* <key> <flags> <exptime> <bytes> [<cas>], then a data block */
	GRAMMAR_KEYS,            /* <key>+ */
	GRAMMAR_TOUCH_KEYS,      /* <exptime> <key>+ */
	GRAMMAR_ARITHMETIC,      /* <key> <delta> */
	GRAMMAR_DELETE,          /* <key> [0] */
	GRAMMAR_TOUCH,           /* <key> <exptime> */
	GRAMMAR_FLUSH,           /* [<delay>] */
	GRAMMAR_META,            /* <key> <flag>* */
	GRAMMAR_META_DATA,       /* <key> <bytes> <flag>*, then a data block */
	GRAMMAR_COLLECTION,      /* <key> and what follows; the key leaves room for suffixes */
	GRAMMAR_COLLECTION_KEYS, /* <key>+ with such keys */
	GRAMMAR_KEY_ARGS,        /* <key> and what follows */
	GRAMMAR_EVENT_DATA,      /* <type> <flags> <exptime> <bytes> [<unixtime>], then a data block */
	GRAMMAR_ARGS,            /* anything */
	GRAMMAR_BARE             /* nothing, or anything, which is ignored */
};

struct command {
	enum command_id id;
	enum grammar grammar;
	bool noreply;
	struct slice name;
	const char *usage, *summary;
};

/* The command of that name, or NULL. */
const struct command *command_lookup(struct slice name);

/* The command of that id; the table is in the order of the names. */
const struct command *command_get(enum command_id id);

#endif
