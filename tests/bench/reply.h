#ifndef BENCH_REPLY_H
#define BENCH_REPLY_H

#include <stdbool.h>
#include <stddef.h>

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
	size_t items;   /* values or array elements */
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
	enum { REPLY_HEAD, REPLY_BODY, REPLY_TAIL } state;
	size_t skip;  /* bytes of the body still to come */
	size_t found; /* values seen */
	size_t left;  /* array elements still to come, plus one */
};

/*
 * Goes on reading one reply at *${at}, up to ${end}, and moves *${at} past what it used. ${key}, of
 * ${key_size} bytes, is the key that was asked for. After REPLY_ERROR and REPLY_GARBAGE the line
 * in question begins at *${line}, and *${why} says what is wrong with it.
 */
enum reply_outcome reply_parse(struct reply *reply, const struct reply_want *want, const char *key, size_t key_size,
	const char **at, const char *end, const char **line, const char **why);

#endif
