/*
 * The parser of requests. It copies nothing. The caller keeps how far an incomplete request was parsed, so that no byte of it is
 * read again each time that more bytes come.
 */
#ifndef PROTOCOL_REQUEST_H
#define PROTOCOL_REQUEST_H

#include <stdint.h>

#include "protocol/command.h"
#include "protocol/metaflags.h"
#include "protocol/reply.h"
#include "util/slice.h"

struct args;
struct nest;

struct request_limits {
	size_t max_line;  /* bytes of a line, its end included */
	size_t max_value; /* bytes of a data block */
	size_t max_keys;  /* keys of one get */
};

enum request_status {
	REQUEST_MORE,    /* incomplete */
	REQUEST_READY,   /* valid */
	REQUEST_REFUSED, /* invalid, but its end is known: reply `error`, and go on behind it */
	REQUEST_FATAL,   /* invalid, and its end is unknown: reply `error`, and close */
	REQUEST_HANGUP   /* HTTP: close without a reply */
};

/* The meaning of a key. The parser does not know it; see command/target.h. */
enum target {
	TARGET_UNKNOWN,    /* not found yet */
	TARGET_ITEM,       /* an item of memcached, or what a command of ours works on */
	TARGET_PART,       /* an item with a part of a set or list, which can only be read */
	TARGET_COLLECTION, /* a set or list whose rule has plain_verbs */
	TARGET_EVENTS,     /* a type of events whose rule has plain_verbs */
	TARGET_COMMAND     /* a command, known or not */
};

/* How far an incomplete request was parsed. All zeroes for a new request. */
struct request_progress {
	size_t scanned; /* bytes of the line that were searched for its end */
	size_t needed;  /* it is incomplete below this size */
};

/*
 * Extras that only a request of the binary protocol can have. A read, a storage command, `incr` and `decr` may ask for the CAS id of the
 * item, for the reply.
 */
struct request_extras {
	bool wants_cas;
	bool has_initial; /* incr, decr: a missing item is made, with the value `initial` and `exptime` */
	bool odd_key;     /* the key has spaces or control bytes */
	bool discards;    /* cas: if the value is too large for the server, the item is deleted, as by `set` */
	uint64_t initial;
	uint64_t
		compare; /* append, prepend, incr, decr, delete: only if the item has this cas id; 0: whatever it has */
};

/* The rest of a refused request: bytes that are discarded when they arrive. */
struct request_skip {
	size_t bytes;
	bool line_end; /* behind them, CR LF or a bare LF */
};

/* For parsers: the request is incomplete below this size. */
static inline enum request_status request_wait(struct request_progress *progress, size_t bytes)
{
	progress->needed = bytes;
	return REQUEST_MORE;
}

/* Who gets the reply, and how it is written, if that is not the client in the text protocol. */
struct request_reply {
	struct nest *into; /* the task that gets the reply, see command/task.h; or NULL */
	reply_form *form;  /* NULL: the text protocol */
	const void *asked; /* for `form`: `asked_size` bytes, which the task copies */
	size_t asked_size;
	const struct request *sent; /* the request that the client has sent, if this one carries it out; or NULL */
};

struct request {
	const struct command *command; /* NULL if unknown */
	struct slice key;              /* the first key, or an event's type */
	struct slice rest;             /* the line behind the key, without `noreply` */
	struct slice data;             /* the data block */
	uint32_t flags;                /* the client's; of lmpop: 1 for the right end */
	int64_t exptime;
	uint64_t number;       /* a delta, a cas id, an event's time, or a count */
	struct metaflags meta; /* meta commands: what `rest` says */
	bool has_number;       /* evadd: the line has a time */
	struct request_extras extras;
	bool noreply;
	bool too_large;              /* REFUSED: the data block is too large, and nothing else is wrong */
	size_t keys;                 /* grammars of several keys: their number, `key` included */
	const char *error;           /* REFUSED, FATAL: the reply without its line end */
	size_t consumed;             /* the size of the request in the input */
	struct request_skip skip;    /* REFUSED: the data block behind it */
	struct request_reply *reply; /* borrowed like the request; NULL: the client, in the text protocol */
	/* The parser leaves these empty; see command/target.h, and command/args.h. */
	enum target target;
	const struct args *args;         /* what `rest` says; NULL if it is not parsed */
	const struct order_needs *needs; /* of the requests that its keys stand for; NULL if there are none */
};

/*
 * Parses one request at the front of `in`. `progress` is as the last call for the same request left it. Unless the result is MORE,
 * `out` is filled in, and its slices point into `in`.
 */
enum request_status request_parse(
	struct slice in, const struct request_limits *limits, struct request_progress *progress, struct request *out);

/*
 * Parses the data block of `bytes` bytes behind the line of a request, which has `out->consumed` bytes. Fills in `out` and gives a
 * status as request_parse does. If the line has an error, in `out->error`, or the block is too large, `out->skip.bytes` is set.
 */
enum request_status request_parse_block(struct slice in, const struct request_limits *limits, uint64_t bytes,
	struct request_progress *progress, struct request *out);

/*
 * Parses the words of a request that does not come as a line, in `out->rest`, which hold no control bytes. The caller has set
 * `out->command`, and the data, flags and exptime of a command with data; all else is 0. The word `noreply` has no meaning here.
 * Gives READY, or REFUSED with `out->error`.
 */
enum request_status request_parse_words(const struct request_limits *limits, struct request *out);

/* Whether a refused request deletes the item that it would have replaced, as in memcached. */
bool request_discards(const struct request *request);

/* Whether `key` has 1 to `max` bytes, without spaces and control bytes. */
bool request_key_valid(struct slice key, size_t max);

/* Whether the line of a server can have a key, which has no more than KEY_MAX bytes, as it is. Other keys need base64. */
bool request_key_fits_line(struct slice key);

#endif
