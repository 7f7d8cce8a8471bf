/*
 * Commands as keys. With the prefix "q|" the key "q|scard|topic-1" is the command `scard
 * topic-1`, so that a client that has only get and set can use all commands:
 *
 *     get q|scard|topic-1           -> scard topic-1        -> 2      -> VALUE q|scard|topic-1 0 1
 *     set q|sadd|topic-1, "ann\nbob" -> sadd topic-1 ann bob -> STORED -> STORED
 *
 * Elements are any bytes: those in the data are separated by a delimiter, and after the name
 * with a 1, as in q|sadd1|topic-1, the data are one element. In the key, %XX is a byte. After
 * the name with a *, as in q|smembers*|topic-1, several elements of a value are quoted.
 */
#ifndef PROTOCOL_COMMAND_KEY_H
#define PROTOCOL_COMMAND_KEY_H

#include "protocol/element.h"
#include "protocol/reply.h"
#include "protocol/request.h"
#include "util/num.h"
#include "util/slice.h"

/* The configuration of these keys. All zeroes: there are none. */
struct command_keys {
	struct slice prefix; /* Its last byte separates the words of a key. */
	char delimiter;      /* Ends each element of the data but perhaps the last one. */
};

/* The commands of memcached through which a command can be reached: get and gets, or set. */
enum { COMMAND_KEY_GET = 1, COMMAND_KEY_SET = 2 };

/* Returns the COMMAND_KEY_ bits through which this command can be reached; 0 if it cannot. */
unsigned command_key_reach(const struct command *command);

/* Returns whether the key is a command. */
static inline bool command_key_is(const struct command_keys *keys, struct slice key)
{
	return keys->prefix.n && slice_starts(key, keys->prefix);
}

/*
 * Returns the command that such a key names, or NULL. Stores in `words` how many words follow
 * its name if these are keys, else 1.
 */
const struct command *command_key_find(
	const struct command_keys *keys, struct slice key, size_t *words);

/*
 * Returns the error line for a request that cannot reach such a key. The line names the
 * commands that can.
 */
const char *command_key_refusal(const struct command_keys *keys, struct slice key);

/* The error line of a word of the data that has control bytes, if a space is the delimiter. */
extern const char command_key_bad_word[];

/*
 * Bytes of data that a command with a limited number of words can need, at most: linsert has
 * two elements. smismember may have as many members as fit.
 */
enum { COMMAND_KEY_DATA_MAX = 3 * ELEMENT_MAX };

/* Returns the size of `room` for command_key_parse, with the same command. */
size_t command_key_room(const struct command_keys *keys, const struct request *outer,
	struct slice key, const struct command *command);

/*
 * Returns whether several elements of the value are quoted, as in the text protocol. `command`
 * is the result of command_key_find for the key.
 */
bool command_key_quotes(
	const struct command_keys *keys, struct slice key, const struct command *command);

/*
 * Makes the request that such a key stands for. `outer` is the get, gets, set, cas or incr that
 * names the key, `command` is the result of command_key_find. A key with spaces or control
 * bytes stands for no command. Returns true and fills in `out`, or returns false with the error
 * line in `out->error`. The slices of `out` point into `room`, which the caller provides, and
 * into the data of `outer`.
 */
bool command_key_parse(const struct command_keys *keys, const struct request *outer,
	struct slice key, const struct command *command, char *room, struct request *out);

/*
 * Returns the key of the item that a get of this key reads as a whole: the key itself unless it
 * is a command; empty if it reads none. `room` is memory for the result, of KEY_MAX bytes.
 */
struct slice command_key_item(const struct command_keys *keys, struct slice key, char *room);

/*
 * Returns whether the reply has at most one VALUE, however much is stored. `keys` is the number
 * of keys of the request.
 */
bool command_key_has_one_value(const struct command *command, size_t keys);

/*
 * Converts the reply of the key's command to the reply to a get: a VALUE without a key, END, or
 * an ERROR. The value is that of a VALUE, a number, or a text in the text protocol; the bytes
 * of an element as they are. Several elements must be joined before (command/conversion.h).
 * The result borrows from `reply`, or from `line`, an empty buffer that the caller frees.
 */
struct reply command_key_read(const struct reply *reply, struct buf *line);

/*
 * Converts the reply of the key's command `inside` to the reply to a set, cas or incr. The
 * result borrows from `reply`.
 */
struct reply command_key_stored(
	const struct command *outer, const struct command *inside, const struct reply *reply);

#endif
