/*
 * Reads replies as cheaply as can be while still noticing any that is wrong. Bodies are skipped,
 * not kept, so that a value of any size passes through a small buffer.
 */
#include "reply.h"

#include <stdint.h>
#include <string.h>

struct cursor {
	const char *at;
	const char *end;
	const char *key;
	size_t key_size;
	const char *line; /* start of the line last looked at */
	const char *why;
};

static bool line_is(const char *line, size_t length, const char *text)
{
	return length == strlen(text) && memcmp(line, text, length) == 0;
}

static bool line_begins(const char *line, size_t length, const char *text)
{
	return length >= strlen(text) && memcmp(line, text, strlen(text)) == 0;
}

static enum reply_outcome garbage(struct cursor *cursor, const char *why)
{
	cursor->why = why;
	return REPLY_GARBAGE;
}

/* An error line or garbage: all that is left when a line is not one of those expected. */
static enum reply_outcome unexpected(struct cursor *cursor, size_t length)
{
	const char *line = cursor->line;

	if (line_is(line, length, "ERROR") || line_begins(line, length, "CLIENT_ERROR ") ||
		line_begins(line, length, "SERVER_ERROR ") || line_begins(line, length, "-")) {
		cursor->why = "error reply";
		return REPLY_ERROR;
	}
	return garbage(cursor, "unexpected line");
}

/* Takes a decimal number from *at; false when there is none or it ends neither at ' ' nor ${end}.
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

static bool only_number(const char *at, const char *end)
{
	size_t value;

	return take_number(&at, end, &value) && at == end;
}

/* Finds what the header of a VALUE or VA block says; false when it is malformed. */
static bool value_header(const char *line, size_t length, const char **name, size_t *name_size, size_t *size)
{
	const char *at = line + 6, *end = line + length;
	size_t flags;

	*name = at;
	at = length > 6 ? memchr(at, ' ', length - 6) : NULL;
	if (at == NULL)
		return false;
	*name_size = (size_t)(at - *name);
	at++;
	if (!take_number(&at, end, &flags) || at == end)
		return false;
	at++;
	return take_number(&at, end, size) && at == end;
}

/* Finds ${key} as the argument of flag k in the header of a VA block. */
static bool meta_names(const char *at, const char *end, const char *key, size_t key_size)
{
	while ((at = memchr(at, ' ', (size_t)(end - at))) != NULL) {
		at++;
		if ((size_t)(end - at) > key_size && *at == 'k' && memcmp(at + 1, key, key_size) == 0)
			return true;
	}
	return false;
}

/* Enters the body of a value of ${size} bytes whose header line ends before ${body}. */
static enum reply_outcome enter_body(
	struct reply *reply, const struct reply_want *want, struct cursor *cursor, const char *body, size_t size)
{
	if (want->body != REPLY_ANY_SIZE && size != want->body)
		return garbage(cursor, "value of the wrong size");
	if (want->key_first && size >= cursor->key_size) {
		if ((size_t)(cursor->end - body) < cursor->key_size) {
			cursor->at = cursor->line;
			return REPLY_MORE;
		}
		if (memcmp(body, cursor->key, cursor->key_size) != 0)
			return garbage(cursor, "value of another key");
	}
	cursor->at = body;
	reply->state = REPLY_BODY;
	reply->skip = size;
	return REPLY_HIT;
}

static enum reply_outcome head_values(
	struct reply *reply, const struct reply_want *want, struct cursor *cursor, size_t length)
{
	const char *line = cursor->line, *name;
	size_t name_size, size;

	if (line_is(line, length, "END"))
		return reply->found < want->items ? REPLY_MISS : REPLY_HIT;
	if (!line_begins(line, length, "VALUE "))
		return unexpected(cursor, length);
	if (!value_header(line, length, &name, &name_size, &size))
		return garbage(cursor, "malformed VALUE line");
	if (reply->found == want->items)
		return garbage(cursor, "more values than were asked for");
	if (want->key_named && (name_size != cursor->key_size || memcmp(name, cursor->key, name_size) != 0))
		return garbage(cursor, "value of another key");
	return enter_body(reply, want, cursor, cursor->at, size);
}

static enum reply_outcome head_meta(
	struct reply *reply, const struct reply_want *want, struct cursor *cursor, size_t length)
{
	const char *line = cursor->line, *at = line + 3;
	size_t size;

	if (line_is(line, length, "EN"))
		return REPLY_MISS;
	if (!line_begins(line, length, "VA "))
		return unexpected(cursor, length);
	if (!take_number(&at, line + length, &size))
		return garbage(cursor, "malformed VA line");
	if (want->key_named && !meta_names(at, line + length, cursor->key, cursor->key_size))
		return garbage(cursor, "value of another key");
	return enter_body(reply, want, cursor, cursor->at, size);
}

/* A number in network byte order. */
static size_t big_endian(const char *at, size_t bytes)
{
	size_t number = 0;

	for (size_t i = 0; i < bytes; i++)
		number = number << 8 | (unsigned char)at[i];
	return number;
}

static enum reply_outcome head_binary(struct reply *reply, const struct reply_want *want, struct cursor *cursor)
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
	if (status == 0)
		return enter_body(reply, want, cursor, line + HEADER + EXTRAS, body - EXTRAS);
	if (here < HEADER + body)
		return REPLY_MORE;
	cursor->at = line + HEADER + body;
	cursor->why = "error response";
	return status == 1 ? REPLY_MISS : REPLY_ERROR;
}

static enum reply_outcome head_bulk(
	struct reply *reply, const struct reply_want *want, struct cursor *cursor, size_t length)
{
	const char *line = cursor->line, *at = line + 1;
	size_t size;

	if (line_is(line, length, "$-1"))
		return REPLY_MISS;
	if (*line != '$')
		return unexpected(cursor, length);
	if (!take_number(&at, line + length, &size) || at != line + length)
		return garbage(cursor, "malformed bulk line");
	return enter_body(reply, want, cursor, cursor->at, size);
}

static enum reply_outcome head_array(
	struct reply *reply, const struct reply_want *want, struct cursor *cursor, size_t length)
{
	const char *line = cursor->line, *at = line + 1;
	size_t items;

	if (*line != '*')
		return unexpected(cursor, length);
	if (!take_number(&at, line + length, &items) || at != line + length)
		return garbage(cursor, "malformed array line");
	if (items != want->items)
		return garbage(cursor, "array of the wrong length");
	reply->left = items + 1;
	return REPLY_HIT;
}

static enum reply_outcome one_line(enum reply_kind kind, struct cursor *cursor, size_t length)
{
	static const struct {
		const char *hit, *misses[2];
	} words[] = {
		[REPLY_STORED] = { "STORED", { "NOT_STORED", "NOT_FOUND" } },
		[REPLY_DELETED] = { "DELETED", { "NOT_FOUND" } },
		[REPLY_NUMBER] = { NULL, { "NOT_FOUND" } },
		[REPLY_META_STORED] = { "HD", { "NS", "NF" } },
		[REPLY_RESP_OK] = { "+OK", { NULL } },
		[REPLY_EVENT] = { NULL, { NULL } },
		[REPLY_RESP_NUMBER] = { NULL, { NULL } },
	};
	const char *line = cursor->line;
	bool hit = words[kind].hit && line_is(line, length, words[kind].hit);

	if (kind == REPLY_NUMBER)
		hit = only_number(line, line + length);
	else if (kind == REPLY_EVENT)
		hit = line_begins(line, length, "EVENT ");
	else if (kind == REPLY_RESP_NUMBER)
		hit = *line == ':' && only_number(line + 1, line + length);
	if (hit)
		return REPLY_HIT;
	for (size_t i = 0; i < 2 && words[kind].misses[i]; i++) {
		if (line_is(line, length, words[kind].misses[i]))
			return REPLY_MISS;
	}
	return unexpected(cursor, length);
}

/* One header line; sets reply->state or reply->left when there is more of the reply to come. */
static enum reply_outcome head(struct reply *reply, const struct reply_want *want, struct cursor *cursor)
{
	const char *line = cursor->at;
	const char *newline;
	size_t length;

	if (want->kind == REPLY_BINARY_VALUE)
		return head_binary(reply, want, cursor);
	newline = memchr(line, '\n', (size_t)(cursor->end - line));
	if (newline == NULL)
		return REPLY_MORE;
	cursor->line = line;
	cursor->at = newline + 1;
	length = (size_t)(newline - line);
	if (length < 2 || newline[-1] != '\r')
		return garbage(cursor, "line is empty or does not end in CRLF");
	length--;

	switch (want->kind) {
	case REPLY_VALUES:
		return head_values(reply, want, cursor, length);
	case REPLY_META_VALUE:
		return head_meta(reply, want, cursor, length);
	case REPLY_RESP_BULK:
		return head_bulk(reply, want, cursor, length);
	case REPLY_RESP_ARRAY:
		return reply->left ? head_bulk(reply, want, cursor, length) : head_array(reply, want, cursor, length);
	default:
		return one_line(want->kind, cursor, length);
	}
}

/* Leaves a body that was read whole; true when the reply ends with it. */
static bool leave_body(struct reply *reply, const struct reply_want *want)
{
	reply->state = REPLY_HEAD;
	reply->found++;
	return want->kind == REPLY_META_VALUE || want->kind == REPLY_RESP_BULK || want->kind == REPLY_BINARY_VALUE;
}

/* One step of a reply; *${done} tells whether the outcome is that of the whole reply. */
static enum reply_outcome step(struct reply *reply, const struct reply_want *want, struct cursor *cursor, bool *done)
{
	size_t here = (size_t)(cursor->end - cursor->at);
	enum reply_outcome outcome = REPLY_HIT;

	*done = false;
	if (reply->state == REPLY_BODY) {
		here = here < reply->skip ? here : reply->skip;
		cursor->at += here;
		reply->skip -= here;
		if (reply->skip == 0 && want->kind == REPLY_BINARY_VALUE)
			*done = leave_body(reply, want);
		else if (reply->skip == 0)
			reply->state = REPLY_TAIL;
	} else if (reply->state == REPLY_TAIL) {
		if (here < 2)
			return REPLY_MORE;
		cursor->line = cursor->at;
		if (memcmp(cursor->at, "\r\n", 2) != 0)
			return garbage(cursor, "no CRLF after a value");
		cursor->at += 2;
		*done = leave_body(reply, want);
	} else {
		outcome = head(reply, want, cursor);
		*done = reply->state == REPLY_HEAD && outcome != REPLY_MORE;
	}
	if (reply->left && reply->state == REPLY_HEAD && outcome <= REPLY_MISS && outcome != REPLY_MORE) {
		*done = --reply->left == 0;
		if (*done)
			outcome = reply->found < want->items ? REPLY_MISS : REPLY_HIT;
	}
	return outcome;
}

enum reply_outcome reply_parse(struct reply *reply, const struct reply_want *want, const char *key, size_t key_size,
	const char **at, const char *end, const char **line, const char **why)
{
	struct cursor cursor = { .at = *at, .end = end, .key = key, .key_size = key_size };
	enum reply_outcome outcome = REPLY_MORE;
	bool done = false;

	while (!done && cursor.at < end) {
		outcome = step(reply, want, &cursor, &done);
		if (outcome == REPLY_MORE || outcome >= REPLY_ERROR)
			break;
	}
	*at = cursor.at;
	*line = cursor.line;
	*why = cursor.why;
	if (!done && outcome < REPLY_ERROR)
		return REPLY_MORE;
	if (outcome != REPLY_GARBAGE)
		*reply = (struct reply){ .state = REPLY_HEAD };
	return outcome;
}
