/*
 * What a client sends: bytes to requests. Nothing is copied, and no state is kept between calls: a request that is not
 * complete is read again from its start when more of it has come.
 */
#ifndef PROTOCOL_REQUEST_H
#define PROTOCOL_REQUEST_H

#include <stdint.h>

#include "protocol/command.h"
#include "protocol/limits.h"
#include "util/slice.h"

struct request_limits {
	size_t max_line;  /* bytes of a line with its end */
	size_t max_value; /* bytes of a data block */
	size_t max_keys;  /* keys of one get */
};

enum request_status {
	REQUEST_MORE,    /* not complete */
	REQUEST_READY,   /* a request to carry out */
	REQUEST_REFUSED, /* wrong, but its extent is known: answer `error`, go on behind it */
	REQUEST_FATAL,   /* wrong, and what follows cannot be told apart: answer `error`, close */
	REQUEST_HANGUP   /* not our protocol and no friend of ours: close without a word */
};

struct request {
	const struct command *command; /* NULL while not known */
	struct slice key;              /* the first key, or an event's type */
	struct slice rest;             /* the tokens behind the key, unsplit, without `noreply` */
	struct slice data;             /* the data block */
	uint32_t flags;
	int64_t exptime;
	uint64_t number; /* a delta, a cas id, or an event's time */
	bool has_number; /* evadd: a time was given */
	bool noreply;
	size_t keys;       /* grammars of many keys: how many there are, `key` included */
	const char *error; /* REFUSED, FATAL: the reply without its line end */
	size_t consumed;   /* bytes of the input that this request took */
	size_t skip;       /* further bytes to throw away, which may not have come yet */
};

/*
 * Reads one request from the front of `in`. `scanned` is the caller's memory of how far an incomplete line was searched for
 * its end: 0 before a request's first bytes, else as the last call left it. On anything but MORE, `out` is filled in and its
 * slices point into `in`.
 */
enum request_status request_parse(
	struct slice in, const struct request_limits *limits, size_t *scanned, struct request *out);

/* True when a token may be sent as a key: 1 to `max` bytes, none of them a space or a control byte. */
bool request_key_valid(struct slice key, size_t max);

#endif
