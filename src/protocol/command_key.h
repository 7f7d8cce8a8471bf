/*
 * Commands as keys. With the prefix "q|" the key "q|scard|topic-1" is the command `scard topic-1`, so that a client which has get
 * and set alone reaches all commands:
 *
 *     get q|scard|topic-1              -> scard topic-1              -> "2"      -> VALUE q|scard|topic-1 0 1
 *     set q|sadd|topic-1, "ann bob"    -> sadd topic-1 ann bob       -> "STORED" -> STORED
 */
#ifndef PROTOCOL_COMMAND_KEY_H
#define PROTOCOL_COMMAND_KEY_H

#include "protocol/reply.h"
#include "protocol/request.h"
#include "util/num.h"
#include "util/slice.h"

/* The configuration of these keys. All zeroes: there are none. */
struct command_keys {
	struct slice prefix; /* the last byte of it separates the words of a key */
	char delimiter;      /* separates the words of data */
};

/* The commands of memcached that reach a command: get and gets, or set. */
enum { COMMAND_KEY_GET = 1, COMMAND_KEY_SET = 2 };

/* The bits of what reaches this command. 0 if nothing does. */
unsigned command_key_reach(const struct command *command);

/* Whether the key is a command. */
static inline bool command_key_is(const struct command_keys *keys, struct slice key)
{
	return keys->prefix.n && slice_starts(key, keys->prefix);
}

/* The command that such a key names, or NULL; and how many words follow its name, if these are keys, else 1. */
const struct command *command_key_find(const struct command_keys *keys, struct slice key, size_t *words);

/* The error line for a request that does not reach such a key: it says what does. */
const char *command_key_refusal(const struct command_keys *keys, struct slice key);

/* The bytes of room for the next function. */
static inline size_t command_key_room(const struct request *outer, struct slice key)
{
	return key.n + outer->data.n + NUM_U64_MAX + 2;
}

/*
 * Makes the request that such a key stands for. `outer` is the get, gets, set, cas or incr that names the key, `command` is what
 * command_key_find gives; a key with spaces or control bytes is none. Gives true and fills in `out`, or gives
 * false with the line in `out->error`. The slices of `out` point into `room`, which the caller provides, and into the data of `outer`.
 */
bool command_key_parse(const struct command_keys *keys, const struct request *outer, struct slice key,
	const struct command *command, char *room, struct request *out);

/* The key of the item that a get of this key reads as a whole: the key, unless it is a command; empty if it reads none. */
struct slice command_key_item(const struct command_keys *keys, struct slice key);

/* Whether the reply has no more than one VALUE, however much is stored. `keys` is the number of keys that its request names. */
bool command_key_has_one_value(const struct command *command, size_t keys);

/*
 * The reply to a get of a key, from that to its command: a VALUE without a key, END, or an ERROR. It borrows from `reply`, or from
 * `line`, an empty buffer that the caller frees. The value is that of a VALUE, a number, or a text in the text protocol.
 */
struct reply command_key_read(const struct reply *reply, struct buf *line);

/* The reply to a set, cas or incr, from that to the command of its key. Borrows from `reply`. */
struct reply command_key_stored(const struct command *outer, const struct reply *reply);

#endif
