#ifndef BENCH_REPLY_H
#define BENCH_REPLY_H

#include <stdbool.h>
#include <stddef.h>

#define REPLY_KEY_SIZE 8

/* The kinds of right answer; each kind of request has one. */
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

/* What the answer to a request must be like. */
struct reply_want {
	enum reply_kind kind;
	size_t items;   /* values or array elements, at least one */
	size_t body;    /* bytes of each value; REPLY_ANY_SIZE: not checked */
	bool key_named; /* the header of a value must name the key */
	bool key_first; /* a value begins with its key */
};

#define REPLY_ANY_SIZE ((size_t)-1)

enum reply_outcome {
	REPLY_MORE, /* not all here yet */
	REPLY_HIT,
	REPLY_MISS,    /* right, but nothing was found or done */
	REPLY_ERROR,   /* an error line; in step all the same */
	REPLY_GARBAGE, /* not an answer to this request: nothing after it can be trusted */
};

/* Where parsing stands inside one reply. All zero before each reply; the parser leaves it so. */
struct reply {
	size_t skip;  /* bytes of the body still to come, with the CRLF behind it */
	size_t found; /* values seen */
	size_t left;  /* array elements still to come */
};

/* The bytes to read. */
struct cursor {
	const char *at;
	const char *end;
	const char *key;  /* that was asked for, of REPLY_KEY_SIZE bytes */
	const char *line; /* after REPLY_ERROR and REPLY_GARBAGE: the line in question */
	const char *why;  /* and what is wrong with it */
};

/* Goes on reading one reply, and moves ${cursor} past what it used. */
enum reply_outcome reply_parse(struct reply *reply, const struct reply_want *want, struct cursor *cursor);

#endif
