#ifndef BENCH_REPLY_H
#define BENCH_REPLY_H

#include <stdbool.h>
#include <stddef.h>

#define REPLY_KEY_SIZE 8

/* The kinds of correct replies; each kind of request has one. */
enum reply_kind {
	REPLY_STORED,       /* STORED; a miss is NOT_STORED or NOT_FOUND */
	REPLY_DELETED,      /* DELETED; a miss is NOT_FOUND */
	REPLY_NUMBER,       /* digits; a miss is NOT_FOUND */
	REPLY_VALUES,       /* VALUE blocks, END; a miss is one value too few */
	REPLY_EVENT,        /* EVENT <key> */
	REPLY_META_STORED,  /* HD; a miss is NS or NF */
	REPLY_META_VALUE,   /* VA block; a miss is EN */
	REPLY_BINARY_VALUE, /* the response to a binary get */
	REPLY_RESP_OK,      /* +OK */
	REPLY_RESP_NUMBER,  /* :<n> */
	REPLY_RESP_BULK,    /* $<n> block; a miss is $-1 */
	REPLY_RESP_ARRAY,   /* *<n> of $<n> blocks */
};

/* The expected reply to a request. */
struct reply_want {
	enum reply_kind kind;
	size_t items;   /* values or array elements, at least one */
	size_t body;    /* bytes of each value; REPLY_ANY_SIZE: not checked */
	bool key_named; /* the header of a value must contain the key */
	bool key_first; /* a value begins with its key */
};

#define REPLY_ANY_SIZE ((size_t)-1)

enum reply_outcome {
	REPLY_MORE, /* incomplete so far */
	REPLY_HIT,
	REPLY_MISS,    /* correct, but nothing was found or done */
	REPLY_ERROR,   /* an error line; still in step */
	REPLY_GARBAGE, /* not a reply to this request: all later bytes are unreliable */
};

/* The parser's position inside one reply. All zero before each reply; the parser resets it. */
struct reply {
	size_t skip;  /* remaining bytes of the body, including the CRLF */
	size_t found; /* values read so far */
	size_t left;  /* remaining array elements */
};

/* The bytes to parse. */
struct cursor {
	const char *at;
	const char *end;
	const char *key;  /* the requested key, of REPLY_KEY_SIZE bytes */
	const char *line; /* after REPLY_ERROR and REPLY_GARBAGE: the line */
	const char *why;  /* and the reason */
};

/* Continues to parse one reply, and moves ${cursor} past the consumed bytes. */
enum reply_outcome reply_parse(
	struct reply *reply, const struct reply_want *want, struct cursor *cursor);

#endif
