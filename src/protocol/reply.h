/*
 * Replies to clients. A task makes a struct reply, which is independent of the protocol; the
 * form of the protocol writes it:
 *
 *     task_say -> struct reply -> reply_text_form, metaform_form, binary_form -> bytes
 *                              -> the outer task, if the task is nested
 */
#ifndef PROTOCOL_REPLY_H
#define PROTOCOL_REPLY_H

#include "protocol/call.h"
#include "util/buf.h"
#include "util/shared.h"

/* The fixed words of replies. */
enum reply_word {
	WORD_NONE,
	WORD_COUNT, /* This word and the next three have an argument. */
	WORD_EVENT,
	WORD_LEASE,
	WORD_VERSION,
	WORD_DELETED,
	WORD_END,
	WORD_EXISTS,
	WORD_MN,
	WORD_NOT_FOUND,
	WORD_NOT_STORED,
	WORD_OK,
	WORD_RESET,
	WORD_STORED,
	WORD_TOUCHED,
	WORD_WAIT,
	WORDS
};

enum reply_kind {
	REPLY_NOTHING,
	REPLY_WORD,   /* `word`; its argument, if it has one, is `bytes`. */
	REPLY_NUMBER, /* `number`. */
	REPLY_VALUE,  /* The value of `key`, with `flags`. */
	REPLY_LINE,   /* A line without a fixed word. */
	REPLY_LINES,  /* Complete lines with their ends. Those of stats begin with STAT. */
	/*
	 * A server's reply to a meta command: its line is `key`, and `word` is the meaning of
	 * its code.
	 */
	REPLY_META,
	/*
	 * An error line. `word` is NOT_FOUND if the command has no such subject, as in `stats
	 * foo`.
	 */
	REPLY_ERROR
};

/* The bytes of a VALUE. */
enum reply_content {
	CONTENT_BYTES,
	CONTENT_ELEMENT, /* The word of an element; see element.h. */
	CONTENT_ELEMENTS /* Words of elements, separated by spaces. */
};

/*
 * A reply, or a part of one: if `more` is set, further parts follow. A VALUE that is the last
 * part is a complete reply to a read. The slices are borrowed for the call to which the reply
 * is passed.
 */
struct reply {
	enum reply_kind kind;
	enum reply_word word;
	bool more;
	bool has_value;  /* META: the reply has a value. */
	bool shows_cas;  /* VALUE: the client has requested the CAS id. */
	uint8_t content; /* VALUE: an enum reply_content. */
	uint32_t flags;
	uint64_t number;
	uint64_t cas; /* CAS id of the item that was read or written; 0 if unknown. */
	int64_t ttl;  /* Seconds, TTL_NEVER or TTL_UNKNOWN. */
	struct slice key;
	struct slice bytes;
	struct shared *shared; /* VALUE, LINE: a text that replaces `bytes`, or NULL. */
};

static inline struct reply reply_word(enum reply_word word)
{
	return (struct reply){ .kind = REPLY_WORD, .word = word, .ttl = TTL_UNKNOWN };
}

static inline struct reply reply_number(uint64_t n)
{
	return (struct reply){ .kind = REPLY_NUMBER, .number = n, .ttl = TTL_UNKNOWN };
}

static inline struct reply reply_value(struct slice key, struct slice value)
{
	return (struct reply){
		.kind = REPLY_VALUE, .key = key, .bytes = value, .ttl = TTL_UNKNOWN
	};
}

static inline struct reply reply_elements(
	enum reply_content content, struct slice key, struct slice words)
{
	struct reply r = reply_value(key, words);

	r.content = (uint8_t)content;
	return r;
}

/* Returns the value of a HIT with all its properties. */
static inline struct reply reply_hit(struct slice key, const struct result *r)
{
	return (struct reply){
		.kind = REPLY_VALUE,
		.flags = r->flags,
		.cas = r->cas,
		.ttl = r->ttl,
		.key = key,
		.bytes = r->value,
	};
}

/* Returns a LINE. `line` is without its end. */
static inline struct reply reply_line(struct slice line)
{
	return (struct reply){ .kind = REPLY_LINE, .bytes = line, .ttl = TTL_UNKNOWN };
}

static inline struct reply reply_error(struct slice line)
{
	return (struct reply){ .kind = REPLY_ERROR, .bytes = line };
}

/* Returns the content of `shared`, or else of `bytes`. */
static inline struct slice reply_bytes(const struct reply *r)
{
	return r->shared ? buf_slice(&r->shared->text) : r->bytes;
}

/*
 * Appends a reply, or a part of one, to `out`. `asked` holds what the form depends on in the
 * request. If the bytes are shared, it may leave them out and return true: then the caller adds
 * them, followed by `tail`.
 */
typedef bool reply_form(
	struct buf *out, const struct reply *reply, const void *asked, struct slice *tail);

/*
 * The text protocol. `asked` is not used. An element is written as its bytes, several elements
 * in quotes if they need them. The other forms get bytes only; see command_key_read.
 */
reply_form reply_text_form;

/* Append the line of a word without an argument, or of a number, like reply_text_form. */
void reply_add_word(struct buf *out, enum reply_word word);
void reply_add_number(struct buf *out, uint64_t n);

/* Appends the line of a reply of one line in the text protocol, without its end. */
void reply_add_line(struct buf *out, const struct reply *reply);

/* Appends the error line, without its end, of a result for which result_failed() holds. */
void reply_add_error(struct buf *out, const struct result *r);

/* Append the line STAT <name> <value> and its end, for LINES. */
void reply_add_stat(struct buf *out, const char *name, uint64_t value);
void reply_add_stat_text(struct buf *out, const char *name, const char *value);

#endif
