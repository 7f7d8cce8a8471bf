#include "protocol/command_key.h"

#include <assert.h>

#include "protocol/commands.h"
#include "protocol/elements.h"
#include "protocol/reply.h"
#include "util/num.h"

static const char no_command[] = "CLIENT_ERROR no such command";
static const char empty_word[] = "CLIENT_ERROR empty word in the key";
static const char not_word[] = "CLIENT_ERROR a key is a word";

const char command_key_bad_word[] = "CLIENT_ERROR bad word in the data";

/* --- the command of a key --- */

/* Bytes after the name of a command. */
enum { ONE_ELEMENT = '1', QUOTED = '*' };

static bool is_answered_by_number(const struct command *command)
{
	return command->grammar == GRAMMAR_ARITHMETIC || command->order == ORDER_EVENT_COUNT;
}

static bool has_data(const struct command *command)
{
	return command_traits(command)->has_data;
}

static bool counts_events(const struct command *command)
{
	return command->order == ORDER_EVENT_COUNT || command->order == ORDER_EVENT_LIMIT;
}

static bool changes(const struct command *command)
{
	return command->order == ORDER_WRITE || command->order == ORDER_WRITE_LATER ||
		counts_events(command) || command->order == ORDER_EVENT_STORE ||
		command->order == ORDER_FLUSH;
}

/* Returns whether the command tests or claims members: its reply has a 1 or 0 for each. */
static bool tests_members(const struct command *command)
{
	return command->grammar == GRAMMAR_SET_MEMBER || command->grammar == GRAMMAR_SET_TESTED;
}

/*
 * get reaches commands that have a useful reply and that a client may repeat. set reaches
 * commands that change something and have a reply of one line, of which the client sees only
 * success or failure. It also reaches commands that test members, since a member may be too long
 * for a key.
 */
unsigned command_key_reach(const struct command *command)
{
	bool get = !has_data(command) && (!command->noreply || is_answered_by_number(command));
	bool set = (changes(command) && command->reply == COMMAND_REPLY_LINE) ||
		tests_members(command);

	if (command->id == COMMAND_QUIT)
		return 0;
	return (get ? COMMAND_KEY_GET : 0u) | (set ? COMMAND_KEY_SET : 0u);
}

static char separator_of(const struct command_keys *keys)
{
	return keys->prefix.p[keys->prefix.n - 1];
}

/*
 * Returns the command that a key names, or NULL, and its other words. With a 1 after the name,
 * the data of a set are one element; with a *, elements in the value of a get are quoted.
 */
static const struct command *take_command(
	const struct command_keys *keys, struct slice key, struct slice *rest)
{
	const struct command *command;
	struct slice name;
	unsigned reach;
	char mark;

	*rest = slice_skip(key, keys->prefix.n);
	name = slice_cut(rest, separator_of(keys));
	command = command_lookup(name);
	if (command || name.n == 0)
		return command;
	mark = name.p[--name.n];
	reach = mark == ONE_ELEMENT ? COMMAND_KEY_SET : mark == QUOTED ? COMMAND_KEY_GET : 0;
	command = command_lookup(name);
	return command && command_key_reach(command) & reach && !has_data(command) ? command : NULL;
}

/* Returns whether this byte follows the name of the command in its key. */
static bool has_mark(
	const struct command_keys *keys, struct slice key, const struct command *command, char mark)
{
	size_t n = keys->prefix.n + command->name.n;

	return separator_of(keys) != mark && n < key.n && key.p[n] == mark;
}

bool command_key_quotes(
	const struct command_keys *keys, struct slice key, const struct command *command)
{
	return command && has_mark(keys, key, command, QUOTED);
}

const struct command *command_key_find(
	const struct command_keys *keys, struct slice key, size_t *words)
{
	struct slice rest;
	const struct command *command = take_command(keys, key, &rest);

	*words = 1;
	if (!command || !command_has_keys(command))
		return command;
	for (*words = 0; rest.n; ++*words)
		(void)slice_cut(&rest, separator_of(keys));
	return command;
}

/*
 * Writes the bytes of a word of a key to `at`, which has room for KEY_MAX bytes. Returns their
 * end.
 */
static char *decode(char *at, struct slice word)
{
	assert(word.n <= KEY_MAX);
	for (size_t i = 0; i < word.n; i++) {
		int high = -1, low = -1;
		if (word.p[i] == '%' && i + 2 < word.n) {
			high = num_hex_digit(word.p[i + 1]);
			low = num_hex_digit(word.p[i + 2]);
		}
		if (high >= 0 && low >= 0) {
			*at++ = (char)(high << 4 | low);
			i += 2;
		} else {
			*at++ = word.p[i];
		}
	}
	return at;
}

static bool is_encoded(struct slice word)
{
	return slice_find(word.p, word.p + word.n, '%') < word.p + word.n;
}

struct slice command_key_item(const struct command_keys *keys, struct slice key, char *room)
{
	const struct command *command;
	struct slice rest, item;

	if (!command_key_is(keys, key))
		return key;
	command = take_command(keys, key, &rest);
	if (!command || !command->reads_values)
		return slice_of(key.p, 0);
	for (int i = 0; i < command_traits(command)->before; i++)
		(void)slice_cut(&rest, separator_of(keys));
	item = slice_cut(&rest, separator_of(keys));
	if (is_encoded(item))
		item = slice_of(room, (size_t)(decode(room, item) - room));
	return element_is_plain(item) ? item : slice_of(key.p, 0);
}

static const char *refusal_as_key(
	const struct command_keys *keys, struct slice key, const struct command *command)
{
	enum { WHOLE = 4, QUOTES };
	static const char *const lines[COMMAND_COUNT][QUOTES + 1] = {
#define COMMAND(id, name, ...) \
	[COMMAND_##id] = { "CLIENT_ERROR the command " name " cannot be a key", \
		"CLIENT_ERROR use get for the command " name, \
		"CLIENT_ERROR use set for the command " name, \
		"CLIENT_ERROR use get or set for the command " name, \
		"CLIENT_ERROR use set for the command " name "1", \
		"CLIENT_ERROR use get for the command " name "*" },
#define PROXY_COMMAND COMMAND
#include "protocol/commands.def"
#undef PROXY_COMMAND
#undef COMMAND
	};

	if (has_mark(keys, key, command, ONE_ELEMENT))
		return lines[command->id][WHOLE];
	if (has_mark(keys, key, command, QUOTED))
		return lines[command->id][QUOTES];
	return lines[command->id][command_key_reach(command)];
}

const char *command_key_refusal(const struct command_keys *keys, struct slice key)
{
	struct slice rest;
	const struct command *command = take_command(keys, key, &rest);

	return command ? refusal_as_key(keys, key, command) : no_command;
}

/* --- its request --- */

/*
 * Writes the words of a key, separated by spaces, and counts them. Returns NULL if a word is
 * empty. The key may end with a separator.
 */
static char *write_key_words(struct slice rest, char separator, char *at, size_t *count)
{
	char bytes[KEY_MAX];

	for (*count = 0; rest.n; ++*count) {
		struct slice word = slice_cut(&rest, separator);
		if (word.n == 0)
			return NULL;
		if (is_encoded(word))
			at = element_write_word(
				at, slice_of(bytes, (size_t)(decode(bytes, word) - bytes)));
		else
			at = slice_write(at, word);
		*at++ = ' ';
	}
	return at;
}

/* Moves words that are separated by any number of spaces, and have no escapes. */
static char *move_spaced_words(struct slice *data, size_t most, size_t longest, char *at)
{
	struct slice word;

	while (most-- > 0 && (word = slice_token(data)).n) {
		if (!request_key_valid(word, word.n))
			return NULL;
		at = slice_write(at, slice_of(word.p, num_least_size(word.n, longest)));
		*at++ = ' ';
	}
	return at;
}

/*
 * Moves at most `most` words from the front of the data to the line. Returns NULL if one is
 * invalid. If not all words are moved, they are a key or a token, and of a longer one only
 * enough is moved to be too long, so that they fit into the line.
 */
static char *move_words(struct slice *data, char delimiter, size_t most, char *at)
{
	size_t longest = most == SIZE_MAX ? SIZE_MAX : KEY_MAX + 1;

	if (delimiter == ' ')
		return move_spaced_words(data, most, longest, at);
	while (data->n && most-- > 0) {
		struct slice element = slice_cut(data, delimiter);
		element.n = num_least_size(element.n, longest);
		at = element_write_word(at, element);
		*at++ = ' ';
	}
	return at;
}

/* Moves all data to the line as one word; of a longer one, enough to be too long. */
static char *move_whole(struct slice *data, char *at)
{
	at = element_write_word(at, slice_of(data->p, num_least_size(data->n, ELEMENT_MAX + 1)));
	data->n = 0;
	*at++ = ' ';
	return at;
}

size_t command_key_room(const struct command_keys *keys, const struct request *outer,
	struct slice key, const struct command *command)
{
	size_t data = num_least_size(outer->data.n, COMMAND_KEY_DATA_MAX);

	if (!command)
		return 1;
	/* A key and a token, at most. */
	if (command_traits(command)->unparsed && !has_mark(keys, key, command, ONE_ELEMENT))
		data = num_least_size(data, 2 * (KEY_MAX + 2));
	/* An empty element has one byte in the data, and a word of two bytes with a space. */
	return key.n + 3 * data + NUM_U64_MAX + 5;
}

/* Moves words from the data to the line, if the command has no data block. */
static char *move_data(const struct command *command, size_t count, char delimiter, bool whole,
	struct slice *data, char *at)
{
	size_t before = command_traits(command)->unparsed;

	if (whole)
		return move_whole(data, at);
	if (!before)
		return move_words(data, delimiter, SIZE_MAX, at);
	return move_words(data, delimiter, before > count ? before - count : 0, at);
}

/*
 * Writes the words of the line, from the key and the data, to `room`. If the command takes any
 * number of words, the last ones stay in the data. Returns NULL, or the error line.
 */
static const char *write_words(const struct command_keys *keys, struct slice key,
	const struct request *outer, char *room, struct request *out)
{
	const struct command *command = out->command;
	bool whole = has_mark(keys, key, command, ONE_ELEMENT);
	struct slice rest, data = outer->data;
	size_t count;
	char *at;

	(void)take_command(keys, key, &rest);
	at = write_key_words(rest, separator_of(keys), room, &count);
	if (!at)
		return empty_word;
	if (has_data(command))
		data = SLICE("");
	else if (!command_traits(command)->unparsed && !whole && data.n > COMMAND_KEY_DATA_MAX)
		return command_usage(command->id);
	at = move_data(command, count, keys->delimiter, whole, &data, at);
	if (!at)
		return command_key_bad_word;
	if (data.n) {
		out->data = data;
		out->extras.delimiter = keys->delimiter;
	}
	/* Removes the space after the last word. */
	if (at > room)
		at--;
	out->rest = slice_of(room, (size_t)(at - room));
	return NULL;
}

/*
 * Returns the error of a parsed request some of whose words have escapes, or NULL. The parsers
 * of args.c check the words that they take; all other commands take only keys and numbers.
 */
static const char *escapes_error(const struct request *request)
{
	const struct grammar_traits *traits = command_traits(request->command);

	if (request->key.n && !element_is_plain(request->key))
		return not_word;
	if (traits->takes_args || !element_has_escapes(request->rest))
		return NULL;
	return traits->subject == SUBJECT_SET || traits->subject == SUBJECT_LIST ||
			traits->keys == KEYS_MANY
		? not_word
		: command_usage(request->command->id);
}

/*
 * Appends the delta of an incr to the type, which must be the only word. Returns NULL, or the
 * error line.
 */
static const char *add_delta(const struct request *incr, char *room, struct slice *words)
{
	char *at = room + words->n;

	if (incr->extras.compare)
		return "CLIENT_ERROR a cas id is only for a set";
	if (words->n == 0 || memchr(room, ' ', words->n))
		return "CLIENT_ERROR incr needs the type as the only word of the key";
	*at++ = ' ';
	at += num_format_u64(at, incr->number);
	*words = slice_of(room, (size_t)(at - room));
	return NULL;
}

/* Returns whether a request of the command `outer` reaches `command` as this key. */
static bool reaches(command_id outer, const struct command_keys *keys, struct slice key,
	const struct command *command)
{
	bool sets = outer == COMMAND_SET || outer == COMMAND_CAS;

	if (has_mark(keys, key, command, ONE_ELEMENT) && !sets)
		return false;
	if (has_mark(keys, key, command, QUOTED) && (sets || outer == COMMAND_INCR))
		return false;
	switch (outer) {
	case COMMAND_CAS:
		return command->id == COMMAND_SSET;
	case COMMAND_INCR:
		return command->order == ORDER_EVENT_COUNT;
	case COMMAND_SET:
		return command_key_reach(command) & COMMAND_KEY_SET;
	default:
		return command_key_reach(command) & COMMAND_KEY_GET;
	}
}

/* Returns whether exptime applies. A flush and a touch have a time among their own words. */
static bool takes_exptime(const struct command *command)
{
	return changes(command) &&
		(has_data(command) || command_takes_args(command) || counts_events(command));
}

bool command_key_parse(const struct command_keys *keys, const struct request *outer,
	struct slice key, const struct command *command, char *room, struct request *out)
{
	/* The number of keys is limited by the length of a key. */
	static const struct request_limits limits = { .max_keys = KEY_MAX };

	command_id id = outer->command->id;
	bool get = outer->command->grammar == GRAMMAR_KEYS, escapes;

	*out = (struct request){ .command = command };
	if (!request_key_valid(key, key.n) || !command)
		out->error = no_command;
	else if (!reaches(id, keys, key, command))
		out->error = refusal_as_key(keys, key, command);
	else
		out->error = write_words(keys, key, outer, room, out);
	if (!out->error && id == COMMAND_INCR)
		out->error = add_delta(outer, room, &out->rest);
	if (out->error)
		return false;
	if (has_data(command)) {
		out->data = outer->data;
		out->flags = outer->flags;
	}
	if (!get && takes_exptime(command))
		out->exptime = outer->exptime;
	escapes = element_has_escapes(out->rest);
	if (request_parse_words(&limits, out) != REQUEST_READY)
		return false;
	if (escapes)
		out->error = escapes_error(out);
	if (out->error)
		return false;
	if (id == COMMAND_CAS) {
		out->number = outer->number;
		out->has_number = true;
	}
	return true;
}

/* --- its reply --- */

static bool is_miss(const struct reply *r)
{
	return r->kind == REPLY_NOTHING ||
		(r->kind != REPLY_ERROR && (r->word == WORD_END || r->word == WORD_NOT_FOUND));
}

bool command_key_has_one_value(const struct command *command, size_t keys)
{
	return command->order == ORDER_READ_BLOCKS || command->grammar == GRAMMAR_WAIT_KEYS ||
		command->grammar == GRAMMAR_WAIT_POP_KEYS ||
		(command->order != ORDER_EVENT_READ && command->order != ORDER_EVENT_TOP &&
			keys <= 1);
}

struct reply command_key_read(const struct reply *reply, struct buf *line)
{
	struct reply r = *reply;

	/* A meta command with q may have an empty reply. */
	if (is_miss(reply))
		return reply_word(WORD_END);
	if (reply->kind == REPLY_ERROR)
		return reply_error(reply->bytes);
	if (reply->kind == REPLY_NUMBER || reply->kind == REPLY_WORD) {
		reply_add_line(line, reply);
		r.bytes = buf_slice(line);
	}
	assert(r.content != CONTENT_ELEMENTS);
	if (r.content == CONTENT_ELEMENT)
		r.bytes = elements_single(r.bytes, line);
	r.content = CONTENT_BYTES;
	r.kind = REPLY_VALUE;
	r.word = WORD_NONE;
	r.flags = 0;
	return r;
}

/*
 * Returns the word of the reply. A miss is NOT_STORED for a set, since memcached never replies
 * NOT_FOUND to it.
 */
static enum reply_word stored_word(const struct command *outer, const struct reply *reply)
{
	if (reply->kind == REPLY_NOTHING)
		return WORD_STORED;
	if (is_miss(reply))
		return outer->id == COMMAND_CAS ? WORD_NOT_FOUND : WORD_NOT_STORED;
	return reply->word == WORD_EXISTS || reply->word == WORD_NOT_STORED ? reply->word
									    : WORD_STORED;
}

/* Returns whether a reply to a test of members has a 0. */
static bool has_failed(const struct reply *reply)
{
	struct slice digits = reply_bytes(reply);

	return reply->kind == REPLY_NUMBER ? reply->number == 0
					   : digits.n && memchr(digits.p, '0', digits.n);
}

struct reply command_key_stored(
	const struct command *outer, const struct command *inside, const struct reply *reply)
{
	if (reply->kind == REPLY_ERROR)
		return reply_error(reply->bytes);
	if (outer->id == COMMAND_INCR && reply->kind != REPLY_NOTHING)
		return *reply;
	if (inside && tests_members(inside) && has_failed(reply))
		return reply_word(WORD_NOT_STORED);
	return reply_word(stored_word(outer, reply));
}
