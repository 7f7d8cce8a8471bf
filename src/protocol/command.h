/* The table of commands; commands.def says what its columns mean. */
#ifndef PROTOCOL_COMMAND_H
#define PROTOCOL_COMMAND_H

#include <stdbool.h>

#include "util/slice.h"

enum command_id {
#define COMMAND(id, ...) COMMAND_##id,
#define PROXY_COMMAND COMMAND
#include "protocol/commands.def"
#undef PROXY_COMMAND
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
	GRAMMAR_COLLECTION,      /* <key> and arguments; the key leaves room for suffixes */
	GRAMMAR_COLLECTION_KEYS, /* <key>+ with such keys */
	GRAMMAR_KEY_ARGS,        /* <key> and arguments */
	GRAMMAR_EVENT_DATA,      /* <type> <flags> <exptime> <bytes> [<unixtime>], then a data block */
	GRAMMAR_ARGS,            /* anything */
	GRAMMAR_BARE             /* nothing, or anything, which is ignored */
};

/* What a command does to the order of its connection; command/order.c says what follows from it. */
enum order_class {
	ORDER_READ,         /* changes nothing, and asks for all it reads when it starts */
	ORDER_READ_KEYS,    /* reads items, and asks for many of them in stages */
	ORDER_READ_SETS,    /* reads whole sets, and asks for many of them in stages */
	ORDER_READ_BLOCKS,  /* reads sets block by block */
	ORDER_WRITE,        /* changes something, and sends it when it starts */
	ORDER_TOUCH_KEYS,   /* touches items, many of them in stages */
	ORDER_EVENT_READ,   /* reads counters of events */
	ORDER_EVENT_BLOCKS, /* reads counters, then the events that they count, in stages */
	ORDER_EVENT_COUNT,  /* counts an event */
	ORDER_EVENT_STORE,  /* counts an event, then stores it under a key that only the count tells */
	ORDER_FLUSH         /* invalidates everything */
};

struct command {
	enum command_id id;
	enum grammar grammar;
	enum order_class order;
	bool noreply;
	struct slice name;
	const char *usage, *summary;
};

/* The command of that name, or NULL. */
const struct command *command_lookup(struct slice name);

/* The command of that id; the table is in the order of the names. */
const struct command *command_get(enum command_id id);

#endif
