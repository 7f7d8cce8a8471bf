/*
 * Reads replies as cheaply as possible while still detecting any wrong one. Bodies are skipped,
 * not stored, so that a value of any size passes through a small buffer.
 */
#include "reply.h"

#include <stdint.h>
#include <string.h>

/*
 * The header line of each kind of reply begins with a word, followed by a form: k is a word, which
 * is the key if a key is expected; n a number, of which the last one counts; f flags, one of which
 * is the key; * anything.
 */
static const struct header {
	const char *word;
	const char *rest;
	const char *misses[2];
	const char *malformed; /* the error if only the first word of a line is right */
	bool body;             /* of the size in the number */
} headers[] = {
	[REPLY_STORED] = { "STORED", "", { "NOT_STORED", "NOT_FOUND" }, NULL, false },
	[REPLY_DELETED] = { "DELETED", "", { "NOT_FOUND" }, NULL, false },
	[REPLY_NUMBER] = { "", "n", { "NOT_FOUND" }, NULL, false },
	[REPLY_VALUES] = { "VALUE ", "k n n", { NULL }, "malformed VALUE line", true },
	[REPLY_EVENT] = { "EVENT ", "*", { NULL }, NULL, false },
	[REPLY_META_STORED] = { "HD", "", { "NS", "NF" }, NULL, false },
	[REPLY_META_VALUE] = { "VA ", "nf", { "EN" }, "malformed VA line", true },
	[REPLY_RESP_OK] = { "+OK", "", { NULL }, NULL, false },
	[REPLY_RESP_NUMBER] = { ":", "n", { NULL }, NULL, false },
	[REPLY_RESP_BULK] = { "$", "n", { "$-1" }, "malformed bulk line", true },
	[REPLY_RESP_ARRAY] = { "*", "n", { NULL }, "malformed array line", false },
};

static bool is(const char *line, const char *end, const char *text)
{
	return (size_t)(end - line) == strlen(text) && memcmp(line, text, strlen(text)) == 0;
}

static bool begins(const char *line, const char *end, const char *text)
{
	return (size_t)(end - line) >= strlen(text) && memcmp(line, text, strlen(text)) == 0;
}

static enum reply_outcome garbage(struct cursor *cursor, const char *why)
{
	cursor->why = why;
	return REPLY_GARBAGE;
}

/*
 * Parses a decimal number from *at. Returns false if there is none or it ends neither at ' ' nor
 * ${end}.
 */
static bool take_number(const char **at, const char *end, size_t *value)
{
	const char *p = *at;
	size_t sum = 0;

	while (p < end && *p >= '0' && *p <= '9' && sum < SIZE_MAX / 100)
		sum = sum * 10 + (size_t)(*p++ - '0');
	if (p == *at || (p < end && *p != ' '))
		return false;
	*at = p;
	*value = sum;
	return true;
}

/* Finds ${key} as the argument of flag k. */
static bool flags_name(const char *at, const char *end, const char *key)
{
	while ((at = memchr(at, ' ', (size_t)(end - at))) != NULL) {
		at++;
		if (end - at > REPLY_KEY_SIZE && *at == 'k' &&
			memcmp(at + 1, key, REPLY_KEY_SIZE) == 0)
			return true;
	}
	return false;
}

/*
 * Returns whether the rest of a line has the ${form}; sets ${named} to false if the line has
 * another key than ${key}.
 */
static bool fits(const char *at, const char *end, const char *form, const char *key, size_t *number,
	bool *named)
{
	for (; *form != '\0'; form++) {
		const char *word = at;

		switch (*form) {
		case 'k':
			at = memchr(at, ' ', (size_t)(end - at));
			if (at == NULL)
				return false;
			*named = at - word == REPLY_KEY_SIZE &&
				memcmp(word, key, REPLY_KEY_SIZE) == 0;
			break;
		case 'n':
			if (!take_number(&at, end, number))
				return false;
			break;
		case 'f':
			*named = flags_name(at, end, key);
			return true;
		case '*':
			return true;
		default:
			if (at == end || *at++ != *form)
				return false;
		}
	}
	return at == end;
}

/* Continues after a value, or a missing one: more values may follow. */
static enum reply_outcome end_value(
	struct reply *reply, const struct reply_want *want, enum reply_outcome outcome)
{
	if (want->kind == REPLY_VALUES)
		return REPLY_MORE;
	if (want->kind != REPLY_RESP_ARRAY)
		return outcome;
	if (--reply->left)
		return REPLY_MORE;
	return reply->found < want->items ? REPLY_MISS : REPLY_HIT;
}

/* Enters a body of ${size} bytes, followed by CRLF except in the binary protocol. */
static enum reply_outcome enter_body(
	struct reply *reply, const struct reply_want *want, struct cursor *cursor, size_t size)
{
	if (want->body != REPLY_ANY_SIZE && size != want->body)
		return garbage(cursor, "value of the wrong size");
	if (want->key_first && size >= REPLY_KEY_SIZE) {
		if (cursor->end - cursor->at < REPLY_KEY_SIZE) {
			cursor->at = cursor->line;
			return REPLY_MORE;
		}
		if (memcmp(cursor->at, cursor->key, REPLY_KEY_SIZE) != 0)
			return garbage(cursor, "value of another key");
	}
	reply->skip = size + (want->kind == REPLY_BINARY_VALUE ? 0 : 2);
	return reply->skip ? REPLY_MORE : REPLY_HIT;
}

/*
 * A line that is not the header: the end of the reply, a miss, an error, or otherwise garbage
 * because of ${why}.
 */
static enum reply_outcome other_line(struct reply *reply, const struct reply_want *want,
	struct cursor *cursor, const char *end, const struct header *header, const char *why)
{
	static const char *const errors[] = { "CLIENT_ERROR ", "SERVER_ERROR ", "-" };
	const char *line = cursor->line;
	bool error;

	if (want->kind == REPLY_VALUES && is(line, end, "END"))
		return reply->found < want->items ? REPLY_MISS : REPLY_HIT;
	for (size_t i = 0; i < 2 && header->misses[i]; i++)
		if (is(line, end, header->misses[i]))
			return end_value(reply, want, REPLY_MISS);
	error = is(line, end, "ERROR");
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		error |= begins(line, end, errors[i]);
	if (why || !error)
		return garbage(cursor, why ? why : "unexpected line");
	cursor->why = "error reply";
	return REPLY_ERROR;
}

static enum reply_outcome read_line(
	struct reply *reply, const struct reply_want *want, struct cursor *cursor)
{
	const struct header *header = &headers[reply->left ? REPLY_RESP_BULK : want->kind];
	const char *line = cursor->at, *end = memchr(line, '\n', (size_t)(cursor->end - line));
	size_t word = strlen(header->word), number = 0;
	bool named = true;

	if (end == NULL)
		return REPLY_MORE;
	cursor->line = line;
	cursor->at = end-- + 1;
	if (end <= line || *end != '\r')
		return garbage(cursor, "line is empty or does not end in CRLF");
	if ((size_t)(end - line) < word || memcmp(line, header->word, word) != 0)
		return other_line(reply, want, cursor, end, header, NULL);
	if (!fits(line + word, end, header->rest, cursor->key, &number, &named))
		return other_line(reply, want, cursor, end, header, header->malformed);
	if (want->kind == REPLY_VALUES && reply->found == want->items)
		return garbage(cursor, "more values than were asked for");
	if (want->key_named && !named)
		return garbage(cursor, "value of another key");
	if (header->body)
		return enter_body(reply, want, cursor, number);
	if (want->kind != REPLY_RESP_ARRAY)
		return REPLY_HIT;
	if (number != want->items)
		return garbage(cursor, "array of the wrong length");
	reply->left = number;
	return REPLY_MORE;
}

/* Returns a number in network byte order. */
static size_t big_endian(const char *at, size_t bytes)
{
	size_t number = 0;

	for (size_t i = 0; i < bytes; i++)
		number = number << 8 | (unsigned char)at[i];
	return number;
}

static enum reply_outcome read_binary(
	struct reply *reply, const struct reply_want *want, struct cursor *cursor)
{
	enum { HEADER = 24, EXTRAS = 4 };
	size_t here = (size_t)(cursor->end - cursor->at), status, body;
	const char *line = cursor->line = cursor->at;

	if (here < HEADER + EXTRAS)
		return REPLY_MORE;
	status = big_endian(line + 6, 2);
	body = big_endian(line + 8, 4);
	if ((unsigned char)*line != 0x81 || line[1] != 0 || body < EXTRAS)
		return garbage(cursor, "no response to a binary get");
	if (status == 0) {
		cursor->at += HEADER + EXTRAS;
		return enter_body(reply, want, cursor, body - EXTRAS);
	}
	if (here < HEADER + body)
		return REPLY_MORE;
	cursor->at += HEADER + body;
	cursor->why = "error response";
	return status == 1 ? REPLY_MISS : REPLY_ERROR;
}

static enum reply_outcome skip_body(
	struct reply *reply, const struct reply_want *want, struct cursor *cursor)
{
	size_t here = (size_t)(cursor->end - cursor->at);
	size_t body = reply->skip - (want->kind == REPLY_BINARY_VALUE ? 0 : 2);

	if (body) {
		here = here < body ? here : body;
		cursor->at += here;
		reply->skip -= here;
		if (reply->skip)
			return REPLY_MORE;
	} else {
		if (here < 2)
			return REPLY_MORE;
		cursor->line = cursor->at;
		if (memcmp(cursor->at, "\r\n", 2) != 0)
			return garbage(cursor, "no CRLF after a value");
		cursor->at += 2;
		reply->skip = 0;
	}
	reply->found++;
	return end_value(reply, want, REPLY_HIT);
}

enum reply_outcome reply_parse(
	struct reply *reply, const struct reply_want *want, struct cursor *cursor)
{
	enum reply_outcome outcome;
	const char *before;

	/* A step that needs more bytes than are available consumes nothing. */
	do {
		before = cursor->at;
		if (reply->skip)
			outcome = skip_body(reply, want, cursor);
		else if (want->kind == REPLY_BINARY_VALUE)
			outcome = read_binary(reply, want, cursor);
		else
			outcome = read_line(reply, want, cursor);
	} while (outcome == REPLY_MORE && cursor->at != before && cursor->at < cursor->end);
	if (outcome != REPLY_MORE)
		*reply = (struct reply){ .skip = 0 };
	return outcome;
}
