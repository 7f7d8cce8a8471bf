/*
 * Properties of commands. commands.def is the table of all commands, and documents its columns.
 * Only files that name commands include commands.h, so a new command recompiles only those.
 */
#ifndef PROTOCOL_COMMAND_H
#define PROTOCOL_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "util/slice.h"

/* Limits of sizes in requests, in bytes. */
enum {
	KEY_MAX = 250,            /* As in memcached. */
	COLLECTION_KEY_MAX = 220, /* Leaves room for the suffixes of tables and segments. */
	SECOND_KEY_SIZE = 6,      /* Of the suffix of a second copy. */
	/* memcached closes the connection on a longer line that is not a get. */
	META_LINE_MAX = 1024,
	OPAQUE_MAX = 32
};

/* Maximum number of keys of a command that waits for elements of lists. */
enum { WAIT_KEYS_MAX = 1000 };

/* One of COMMAND_... in commands.h. Ids are in the order of the names. */
typedef unsigned int command_id;

enum grammar {
#define GRAMMAR(id, ...) GRAMMAR_##id,
#define ARGS_GRAMMAR(id, ...) GRAMMAR_##id,
#include "protocol/grammars.def"
};

enum grammar_keys { KEYS_NONE, KEYS_ONE, KEYS_MANY };

/* What the keys of a command name. */
enum grammar_subject {
	SUBJECT_NOTHING,
	SUBJECT_ITEM,   /* An item of memcached; its key may have control bytes. */
	SUBJECT_META,   /* The same, for a meta command. */
	SUBJECT_EVENTS, /* A type of events, or a key that is only inspected. */
	SUBJECT_SET,    /* A set, or a list if the command takes both. */
	SUBJECT_LIST
};

/* A row of grammars.def, without its parsers. */
struct grammar_traits {
	uint8_t keys, before, subject, key_max;
	bool has_data, takes_args;
	uint8_t unparsed;
};

extern const struct grammar_traits grammars[];

/* The effect of a command on the order of requests on a connection; see command/order.h. */
enum order_class {
	ORDER_READ,        /* Changes nothing, and sends all its reads when it starts. */
	ORDER_READ_KEYS,   /* Reads items; more than ORDER_KEYS_FIRST in stages. */
	ORDER_READ_SETS,   /* Reads whole sets; more than ORDER_SETS_FIRST in stages. */
	ORDER_READ_BLOCKS, /* Reads sets block by block. */
	ORDER_WRITE,       /* Changes an item, and sends the change when it starts. */
	/* Changes items after its start: it blocks, or changes one item after another. */
	ORDER_WRITE_LATER,
	ORDER_TOUCH_KEYS,  /* Touches items; more than ORDER_KEYS_FIRST in stages. */
	ORDER_EVENT_READ,  /* Reads event counters, and perhaps events, in stages. */
	ORDER_EVENT_COUNT, /* Counts an event. */
	ORDER_EVENT_LIMIT, /* Counts an event, and reads earlier counters. */
	ORDER_EVENT_STORE, /* Counts an event, then stores it under a key made from the count. */
	/* Reads sets that earlier requests to count events may still add to, then counters. */
	ORDER_EVENT_TOP,
	ORDER_FLUSH /* Invalidates everything. */
};

enum command_reply {
	COMMAND_REPLY_LINE, /* One short line. */
	COMMAND_REPLY_DATA  /* A text or values of any size. */
};

struct command {
	command_id id;
	enum grammar grammar;
	enum order_class order;
	enum command_reply reply;
	bool noreply;
	/*
	 * The command reads plain values. Sets and lists are excluded: they are read piece by
	 * piece, as fast as the client reads the reply.
	 */
	bool reads_values;
	struct slice name;
	const char *usage, *summary;
};

/* A set of commands. Initially all zeroes. */
struct command_set {
	uint64_t bits[2];
};

static inline void command_set_add(struct command_set *set, command_id id)
{
	set->bits[id / 64] |= UINT64_C(1) << id % 64;
}

static inline bool command_set_has(const struct command_set *set, command_id id)
{
	return set->bits[id / 64] >> id % 64 & 1;
}

static inline const struct grammar_traits *command_traits(const struct command *command)
{
	return &grammars[command->grammar];
}

/* Returns whether it takes any number of keys. */
static inline bool command_has_keys(const struct command *command)
{
	return command_traits(command)->keys == KEYS_MANY;
}

/* Returns whether it takes the key of one set or list, and arguments that command/args.h parses. */
static inline bool command_takes_args(const struct command *command)
{
	return command_traits(command)->takes_args;
}

/* Return the command with that name, in exact case, or NULL; and the command with that id. */
const struct command *command_lookup(struct slice name);
const struct command *command_get(command_id id);

/*
 * Returns the error line of a command that the configuration denies: "CLIENT_ERROR <name> is
 * denied here".
 */
const char *command_denied(command_id id);

/* Returns the error line of a malformed request: "CLIENT_ERROR usage: <usage>". */
const char *command_usage(command_id id);

#endif
