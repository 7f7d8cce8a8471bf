#include "protocol/command_key.h"

#include "protocol/commands.h"
#include "protocol/reply.h"
#include "util/num.h"

static const char no_command[] = "CLIENT_ERROR no such command";
static const char empty_word[] = "CLIENT_ERROR empty word in the key";
static const char bad_data[] = "CLIENT_ERROR bad word in the data";

/* --- the command of a key --- */

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

/*
 * get reaches commands that have a useful reply and that a client may repeat. set reaches
 * commands that change something and have a reply of one line, of which the client sees only
 * success or failure.
 */
unsigned command_key_reach(const struct command *command)
{
	bool get = !has_data(command) && (!command->noreply || is_answered_by_number(command));
	bool set = changes(command) && command->reply == COMMAND_REPLY_LINE;

	if (command->id == COMMAND_QUIT)
		return 0;
	return (get ? COMMAND_KEY_GET : 0u) | (set ? COMMAND_KEY_SET : 0u);
}

static char separator_of(const struct command_keys *keys)
{
	return keys->prefix.p[keys->prefix.n - 1];
}

const struct command *command_key_find(
	const struct command_keys *keys, struct slice key, size_t *words)
{
	struct slice rest = slice_skip(key, keys->prefix.n),
		     name = slice_cut(&rest, separator_of(keys));
	const struct command *command = command_lookup(name);

	*words = 1;
	if (!command || !command_has_keys(command))
		return command;
	for (*words = 0; rest.n; ++*words)
		(void)slice_cut(&rest, separator_of(keys));
	return command;
}

struct slice command_key_item(const struct command_keys *keys, struct slice key)
{
	const struct command *command;
	struct slice rest;

	if (!command_key_is(keys, key))
		return key;
	rest = slice_skip(key, keys->prefix.n);
	command = command_lookup(slice_cut(&rest, separator_of(keys)));
	if (!command || !command->reads_values)
		return slice_of(key.p, 0);
	for (int i = 0; i < command_traits(command)->before; i++)
		(void)slice_cut(&rest, separator_of(keys));
	return slice_cut(&rest, separator_of(keys));
}

static const char *refusal_as_key(const struct command *command)
{
	static const char *const lines[COMMAND_COUNT][4] = {
#define COMMAND(id, name, ...) \
	[COMMAND_##id] = { "CLIENT_ERROR the command " name " cannot be a key", \
		"CLIENT_ERROR use get for the command " name, \
		"CLIENT_ERROR use set for the command " name, \
		"CLIENT_ERROR use get or set for the command " name },
#define PROXY_COMMAND COMMAND
#include "protocol/commands.def"
#undef PROXY_COMMAND
#undef COMMAND
	};

	return lines[command->id][command_key_reach(command)];
}

const char *command_key_refusal(const struct command_keys *keys, struct slice key)
{
	size_t words;
	const struct command *command = command_key_find(keys, key, &words);

	return command ? refusal_as_key(command) : no_command;
}

/* --- its request --- */

/*
 * Writes the words of a key, separated by spaces. Returns NULL if a word is empty. The key may
 * end with a separator.
 */
static char *write_key_words(struct slice rest, char separator, char *at)
{
	while (rest.n) {
		struct slice word = slice_cut(&rest, separator);
		if (word.n == 0)
			return NULL;
		at = slice_write(at, word);
		*at++ = ' ';
	}
	return at;
}

/*
 * Writes the words of data. Several spaces separate two words like a single one; any other
 * delimiter must follow a word.
 */
static char *write_data_words(struct slice data, char delimiter, char *at)
{
	if (word_find_below(data.p, data.p + data.n, ' ') != data.p + data.n)
		return NULL;
	if (delimiter == ' ')
		return slice_write(at, data);
	while (data.n) {
		struct slice word = slice_cut(&data, delimiter);
		if (!request_key_valid(word, word.n))
			return NULL;
		at = slice_write(at, word);
		*at++ = ' ';
	}
	return at;
}

/* Writes the words of the request to `room`. Returns NULL, or the error line. */
static const char *write_words(const struct command_keys *keys, struct slice key,
	const struct slice *data, char *room, struct slice *words)
{
	struct slice rest = slice_skip(key, keys->prefix.n);
	char *at;

	(void)slice_cut(&rest, separator_of(keys));
	at = write_key_words(rest, separator_of(keys), room);
	if (!at)
		return empty_word;
	if (data)
		at = write_data_words(*data, keys->delimiter, at);
	if (!at)
		return bad_data;
	/* Removes the space after the last word of a key. */
	if (at > room && !data)
		at--;
	*words = slice_of(room, (size_t)(at - room));
	return NULL;
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

/* Returns whether a request of the command `outer` reaches `command` as a key. */
static bool reaches(command_id outer, const struct command *command)
{
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
	return has_data(command) || command_takes_args(command) || counts_events(command);
}

bool command_key_parse(const struct command_keys *keys, const struct request *outer,
	struct slice key, const struct command *command, char *room, struct request *out)
{
	/* The number of keys is limited by the length of a key. */
	static const struct request_limits limits = { .max_keys = KEY_MAX };

	command_id id = outer->command->id;
	bool get = outer->command->grammar == GRAMMAR_KEYS,
	     data = id == COMMAND_SET || id == COMMAND_CAS;

	*out = (struct request){ .command = command };
	if (!request_key_valid(key, key.n) || !command)
		out->error = no_command;
	else if (!reaches(id, command))
		out->error = refusal_as_key(command);
	else
		out->error = write_words(keys, key,
			data && !has_data(command) ? &outer->data : NULL, room, &out->rest);
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
	if (request_parse_words(&limits, out) != REQUEST_READY)
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
		(command->order != ORDER_EVENT_READ && keys <= 1);
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

struct reply command_key_stored(const struct command *outer, const struct reply *reply)
{
	if (reply->kind == REPLY_ERROR)
		return reply_error(reply->bytes);
	if (outer->id == COMMAND_INCR && reply->kind != REPLY_NOTHING)
		return *reply;
	return reply_word(stored_word(outer, reply));
}
