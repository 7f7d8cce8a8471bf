/*
 * What a command is. commands.def is the table of all, and documents its columns. Only who names a command includes commands.h: so a
 * new one has only those files compiled again.
 */
#ifndef PROTOCOL_COMMAND_H
#define PROTOCOL_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "util/slice.h"

/* The largest sizes in requests, in bytes. */
enum {
	KEY_MAX = 250,            /* as in memcached */
	COLLECTION_KEY_MAX = 220, /* leaves room for the suffixes of tables and segments */
	MEMBER_MAX = 250,
	META_LINE_MAX = 1024, /* memcached closes on a longer line that is not a get */
	OPAQUE_MAX = 32
};

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
	SUBJECT_ITEM,   /* an item of memcached; its key may have control bytes */
	SUBJECT_META,   /* the same, for a meta command */
	SUBJECT_EVENTS, /* a type of events, or a key that is only looked at */
	SUBJECT_SET,    /* a set, or a list if the command takes both */
	SUBJECT_LIST
};

/* A row of grammars.def, except for its parsers. */
struct grammar_traits {
	uint8_t keys, before, subject, key_max;
	bool has_data, takes_args;
};

extern const struct grammar_traits grammars[];

/* What a command does, as far as it matters to the order of requests on a connection; see command/order.h. */
enum order_class {
	ORDER_READ,        /* changes nothing, and sends all its reads when it starts */
	ORDER_READ_KEYS,   /* reads items; more than ORDER_KEYS_FIRST in stages */
	ORDER_READ_SETS,   /* reads whole sets; more than ORDER_SETS_FIRST in stages */
	ORDER_READ_BLOCKS, /* reads sets block by block */
	ORDER_WRITE,       /* changes an item, and sends that when it starts */
	ORDER_WRITE_LATER, /* changes items later than it starts: it waits for others, or changes one after the other */
	ORDER_TOUCH_KEYS,  /* touches items; more than ORDER_KEYS_FIRST in stages */
	ORDER_EVENT_READ,  /* reads event counters, and perhaps events, in stages */
	ORDER_EVENT_COUNT, /* counts an event */
	ORDER_EVENT_LIMIT, /* counts an event, and reads earlier counters */
	ORDER_EVENT_STORE, /* counts an event, then stores it under a key made from the count */
	ORDER_FLUSH        /* invalidates everything */
};

enum command_reply {
	COMMAND_REPLY_LINE, /* one short line */
	COMMAND_REPLY_DATA  /* a text or values of any size */
};

struct command {
	command_id id;
	enum grammar grammar;
	enum order_class order;
	enum command_reply reply;
	bool noreply;
	bool reads_values; /* whether it asks for plain values; sets and lists are read piece by piece, as their client takes them */
	struct slice name;
	const char *usage, *summary;
};

/* A set of commands. All zeroes is empty. */
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

/* Whether it takes any number of keys. */
static inline bool command_has_keys(const struct command *command)
{
	return command_traits(command)->keys == KEYS_MANY;
}

/* Whether it has the key of one set or list, and arguments that command/args.h reads. */
static inline bool command_takes_args(const struct command *command)
{
	return command_traits(command)->takes_args;
}

/* The command of that name, in exact case, or NULL; and that of an id. */
const struct command *command_lookup(struct slice name);
const struct command *command_get(command_id id);

/* The error line of a command that the configuration denies: "CLIENT_ERROR <name> is denied here". */
const char *command_denied(command_id id);

/* The error line of a request that has not the form of its command: "CLIENT_ERROR usage: <usage>". */
const char *command_usage(command_id id);

#endif
