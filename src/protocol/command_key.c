#include "protocol/command_key.h"

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
	return command->grammar == GRAMMAR_STORAGE || command->grammar == GRAMMAR_EVENT_DATA ||
		command->grammar == GRAMMAR_META_DATA;
}

static bool changes(const struct command *command)
{
	return command->order == ORDER_WRITE || command->order == ORDER_EVENT_COUNT ||
		command->order == ORDER_EVENT_STORE || command->order == ORDER_FLUSH;
}

/*
 * A get must have an answer worth to be read, since clients may repeat it. What a set changes must not have an answer that would be
 * lost.
 */
unsigned command_key_reach(const struct command *command)
{
	bool get = !has_data(command) && (!command->noreply || is_answered_by_number(command));
	bool set = changes(command) && command->reply == REPLY_LINE;

	if (command->id == COMMAND_QUIT)
		return 0;
	return (get ? COMMAND_KEY_GET : 0u) | (set ? COMMAND_KEY_SET : 0u);
}

static char separator_of(const struct command_keys *keys)
{
	return keys->prefix.p[keys->prefix.n - 1];
}

/* Takes the next word off `rest`, with the separator behind it. */
static struct slice take_word(struct slice *rest, char separator)
{
	const char *end = rest->n ? memchr(rest->p, separator, rest->n) : NULL;
	struct slice word = slice_of(rest->p, end ? (size_t)(end - rest->p) : rest->n);

	*rest = slice_skip(*rest, word.n + (end ? 1 : 0));
	return word;
}

const struct command *command_key_find(const struct command_keys *keys, struct slice key, size_t *words)
{
	struct slice rest = slice_skip(key, keys->prefix.n), name = take_word(&rest, separator_of(keys));

	for (*words = 0; rest.n; ++*words)
		(void)take_word(&rest, separator_of(keys));
	return command_lookup(name);
}

static const char *refusal_of(const struct command *command)
{
	static const char *const lines[COMMAND_COUNT][4] = {
#define COMMAND(id, name, ...) \
	[COMMAND_##id] = { "CLIENT_ERROR the command " name " cannot be a key", \
		"CLIENT_ERROR use get for the command " name, "CLIENT_ERROR use set for the command " name, \
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

	return command ? refusal_of(command) : no_command;
}

/* --- its request --- */

/* Appends the words of a key, with spaces between them. False if one is empty; behind the last separator there need not be one. */
static bool add_words(struct slice rest, char separator, struct buf *text)
{
	while (rest.n) {
		struct slice word = take_word(&rest, separator);
		if (word.n == 0)
			return false;
		if (buf_size(text))
			BUF_ADD(text, " ");
		buf_add_slice(text, word);
	}
	return true;
}

/* Appends the words of data. Several spaces separate two words as one does; another delimiter must have a word in front of it. */
static bool add_data(struct slice data, char delimiter, struct buf *text)
{
	if (word_find_below(data.p, data.p + data.n, ' ') != data.p + data.n)
		return false;
	if (delimiter == ' ') {
		BUF_ADD(text, " ");
		buf_add_slice(text, data);
		return true;
	}
	while (data.n) {
		struct slice word = take_word(&data, delimiter);
		if (!request_key_valid(word, word.n))
			return false;
		BUF_ADD(text, " ");
		buf_add_slice(text, word);
	}
	return true;
}

/* The words of the request. Gives NULL, or the error line. */
static const char *write_words(
	const struct command_keys *keys, const struct request *outer, struct slice key, struct buf *text, bool data)
{
	struct slice rest = slice_skip(key, keys->prefix.n);

	(void)take_word(&rest, separator_of(keys));
	if (!add_words(rest, separator_of(keys), text))
		return empty_word;
	return data && !add_data(outer->data, keys->delimiter, text) ? bad_data : NULL;
}

static bool is_get(const struct request *outer)
{
	return outer->command->grammar == GRAMMAR_KEYS;
}

/* Gives NULL, or the error line. */
static const char *check_reach(const struct request *outer, const struct command *command)
{
	unsigned by = is_get(outer) ? COMMAND_KEY_GET : COMMAND_KEY_SET;
	bool conditional = outer->command->id == COMMAND_CAS;

	if (!(command_key_reach(command) & by) || (conditional && command->id != COMMAND_SSET))
		return refusal_of(command);
	return NULL;
}

/* A flush and a touch have a time of their own among their words. */
static bool takes_exptime(const struct command *command)
{
	return has_data(command) || command->grammar == GRAMMAR_COLLECTION || command->order == ORDER_EVENT_COUNT;
}

bool command_key_parse(const struct command_keys *keys, const struct request *outer, struct slice key, size_t max_keys,
	struct buf *text, struct request *out)
{
	const struct request_limits limits = { .max_keys = max_keys };
	size_t words;

	*out = (struct request){ .command = command_key_find(keys, key, &words) };
	/* A key in another form than text may hold anything. */
	if (!request_key_valid(key, KEY_MAX) || !out->command)
		out->error = no_command;
	else
		out->error = check_reach(outer, out->command);
	if (!out->error)
		out->error = write_words(keys, outer, key, text, !is_get(outer) && !has_data(out->command));
	if (out->error)
		return false;
	out->rest = buf_slice(text);
	if (has_data(out->command)) {
		out->data = outer->data;
		out->flags = outer->flags;
	}
	if (!is_get(outer) && takes_exptime(out->command))
		out->exptime = outer->exptime;
	if (request_parse_words(&limits, out) != REQUEST_READY)
		return false;
	if (outer->command->id == COMMAND_CAS) {
		out->number = outer->number;
		out->has_number = true;
	}
	return true;
}

/* --- its reply --- */

static struct slice first_line(struct slice reply)
{
	const char *end = reply.n ? memchr(reply.p, '\r', reply.n) : NULL;

	return slice_of(reply.p, end ? (size_t)(end - reply.p) : reply.n);
}

static bool is_error(struct slice line)
{
	return slice_equal(line, SLICE("ERROR")) || slice_starts(line, SLICE("CLIENT_ERROR ")) ||
		slice_starts(line, SLICE("SERVER_ERROR ")) || slice_starts(line, SLICE("ERROR "));
}

static bool is_miss(struct slice line)
{
	return line.n == 0 || slice_equal(line, SLICE("END")) || slice_equal(line, SLICE("NOT_FOUND")) ||
		slice_equal(line, SLICE("EN")) || slice_equal(line, SLICE("NF"));
}

/* The size of the data behind the line VALUE <key> <flags> <bytes>. */
static size_t data_size(struct slice line)
{
	uint64_t bytes = 0;

	for (int i = 0; i < 3; i++)
		(void)slice_token(&line);
	(void)num_parse_u64(slice_token(&line), &bytes);
	return (size_t)bytes;
}

/* The reply behind all its VALUEs. */
static struct slice behind_values(struct slice reply)
{
	struct slice line;

	while (line = first_line(reply), slice_starts(line, SLICE("VALUE ")))
		reply = slice_skip(reply, line.n + 2 + data_size(line) + 2);
	return reply;
}

/* Whether the reply has no more than one VALUE, however much is stored. */
static bool has_one_value(const struct request *request)
{
	if (request->command->order == ORDER_EVENT_BLOCKS)
		return false;
	return request->keys <= 1 || request->command->order == ORDER_READ_BLOCKS;
}

/* Lines that are not VALUEs hold no data but those of mg and ma, which have no END. */
static struct slice before_end(struct slice reply)
{
	static const struct slice end = { "END\r\n", 5 }, line_end = { "\r\n", 2 };

	if (reply.n > end.n && slice_equal(slice_skip(reply, reply.n - end.n), end))
		reply.n -= end.n;
	if (reply.n >= line_end.n)
		reply.n -= line_end.n;
	return reply;
}

enum command_key_answer command_key_value(const struct request *request, struct slice reply, struct slice *out)
{
	struct slice line = first_line(reply);

	if (is_miss(line))
		return COMMAND_KEY_MISS;
	*out = first_line(behind_values(reply));
	if (is_error(*out))
		return COMMAND_KEY_FAILED;
	if (slice_starts(line, SLICE("VALUE ")) && has_one_value(request))
		*out = slice_of(reply.p + line.n + 2, data_size(line));
	else if (request->command->grammar == GRAMMAR_META)
		*out = slice_of(reply.p, reply.n - 2);
	else
		*out = before_end(reply);
	return COMMAND_KEY_VALUE;
}

struct slice command_key_stored(const struct command *outer, struct slice reply)
{
	struct slice line = first_line(reply);

	if (is_error(line))
		return line;
	if (slice_equal(line, SLICE("EXISTS")) || slice_equal(line, SLICE("EX")))
		return SLICE("EXISTS");
	if (slice_equal(line, SLICE("NOT_STORED")) || slice_equal(line, SLICE("NS")))
		return SLICE("NOT_STORED");
	/* To a set no client expects that nothing is found. */
	if (line.n && is_miss(line))
		return outer->id == COMMAND_CAS ? SLICE("NOT_FOUND") : SLICE("NOT_STORED");
	return SLICE("STORED");
}
