/*
 * The parser of requests. It copies nothing but arguments in quotes, and literals. The caller
 * stores how far an incomplete request was parsed, so that no byte is scanned twice when more
 * bytes arrive.
 */
#ifndef PROTOCOL_REQUEST_H
#define PROTOCOL_REQUEST_H

#include <stdint.h>

#include "protocol/command.h"
#include "protocol/metaflags.h"
#include "protocol/parsing.h"
#include "protocol/reply.h"
#include "util/slice.h"

struct args;
struct nest;

/*
 * Bytes above which the words of a request are converted in slices, if it may have any number
 * of them.
 */
enum { REQUEST_LONG = 64 * 1024 };

/* The meaning of a key. Set by target.c, not by the parser; see command/target.h. */
enum target {
	TARGET_UNKNOWN,    /* Not resolved yet. */
	TARGET_ITEM,       /* An item of memcached, or the subject of a command of setlistd. */
	TARGET_PART,       /* A part of a set or list, or a second copy, which can only be read. */
	TARGET_COLLECTION, /* A set or list whose rule has plain_verbs. */
	TARGET_EVENTS,     /* A type of events whose rule has plain_verbs. */
	TARGET_COMMAND     /* A command, whether known or not. */
};

/*
 * Extras that a classic text request cannot have. A read, a storage command, `incr` and `decr`
 * may request the CAS id of the item in the reply.
 */
struct request_extras {
	bool wants_cas;
	/* incr, decr: creates a missing item, with the value `initial` and `exptime`. */
	bool has_initial;
	bool odd_key; /* The key has spaces or control bytes. */
	/* cas: deletes the item if the value is too large for the server, like `set`. */
	bool discards;
	/*
	 * Not 0: the data block has more words of the line, with this byte after each. Spaces
	 * separate words in any number. They are not checked yet.
	 */
	char delimiter;
	union {
		uint64_t initial;
		uint64_t count; /* blmpop: the maximum number of elements. */
	};
	/*
	 * append, prepend, incr, decr, delete: only if the item has this CAS id; 0: with any
	 * CAS id
	 */
	uint64_t compare;
};

/* The receiver of the reply and its form, if these are not the client and the text protocol. */
struct request_reply {
	struct nest *into; /* The receiver, a nested task (see command/task.h); or NULL. */
	reply_form *form;  /* NULL: the text protocol. */
	const void *asked; /* Argument of `form`: `asked_size` bytes, which the task copies. */
	size_t asked_size;
	const struct request *sent; /* The client's request that this one carries out, or NULL. */
};

struct request {
	const struct command *command; /* NULL if unknown. */
	struct slice key;              /* The first key, or an event's type. */
	struct slice rest;             /* The line after the key, without `noreply`. */
	struct slice data;             /* The data block. */
	uint32_t flags;                /* The client's flags. lmpop, blmpop: 1 for the right end. */
	int64_t exptime;
	uint64_t number;       /* A delta, a CAS id, an event's time, or a count. */
	struct metaflags meta; /* Meta commands: the parsed flags of `rest`. */
	bool has_number;       /* evadd: the line has a time. */
	struct request_extras extras;
	bool noreply;
	/* REFUSED: the data block is too large; there is no other error. */
	bool too_large;
	size_t keys;              /* Grammars of several keys: their number, including `key`. */
	const char *error;        /* REFUSED, FATAL: the reply without its line end. */
	size_t consumed;          /* The size of the request in the input. */
	struct request_skip skip; /* REFUSED: the data block after it. */
	/* Borrowed like the request. NULL: the client, in the text protocol. */
	struct request_reply *reply;
	/* Not set by the parser; see command/target.h and command/args.h. */
	enum target target;
	const struct args *args; /* The parsed arguments of `rest`; NULL if they are not parsed. */
	/* Needs of the requests that its keys stand for; NULL if there are none. */
	const struct order_needs *needs;
};

/*
 * Parses one request at the front of `in`. `progress` must be unchanged since the last call for
 * the same request; request_progress_end ends it. Unless the result is MORE, `out` is filled
 * in, and its slices point into `in` and `progress`.
 */
enum request_status request_parse(struct slice in, const struct request_limits *limits,
	struct request_progress *progress, struct request *out);

/*
 * Parses the data block of `bytes` bytes after the line of a request, which has `out->consumed`
 * bytes. Fills in `out` and returns a status as request_parse does. If the line has an error,
 * in `out->error`, or the block is too large, sets `out->skip.bytes`.
 */
enum request_status request_parse_block(struct slice in, const struct request_limits *limits,
	uint64_t bytes, struct request_progress *progress, struct request *out);

/*
 * Parses the words of a request that is not a line, in `out->rest`, which has no control bytes.
 * The caller has set `out->command`, and the data, flags and exptime of a command with data;
 * all other fields are 0. The word `noreply` has no meaning here. Returns READY, or REFUSED
 * with `out->error`.
 */
enum request_status request_parse_words(const struct request_limits *limits, struct request *out);

/*
 * Returns whether a refused request deletes the item that it would have replaced, as in
 * memcached.
 */
bool request_discards(const struct request *request);

/* Returns whether `key` has 1 to `max` bytes, without spaces and control bytes. */
bool request_key_valid(struct slice key, size_t max);

/*
 * Returns whether a key of at most KEY_MAX bytes can be sent in a line to a server. Other keys
 * need base64.
 */
bool request_key_fits_line(struct slice key);

#endif
