/*
 * The limits, the progress and the result of a parser of requests.
 */
#ifndef PROTOCOL_PARSING_H
#define PROTOCOL_PARSING_H

#include <stdbool.h>
#include <stddef.h>

#include "util/buf.h"

struct request_limits {
	size_t max_line;  /* Bytes of a line, including its end. */
	size_t max_value; /* Bytes of a data block. */
	size_t max_keys;  /* Keys of one get. */
};

enum request_status {
	REQUEST_MORE,    /* Incomplete. */
	REQUEST_READY,   /* Valid. */
	REQUEST_REFUSED, /* Invalid, but its end is known: reply `error`, and continue after it. */
	REQUEST_FATAL,   /* Invalid, and its end is unknown: reply `error`, and close. */
	REQUEST_HANGUP   /* HTTP: close without a reply. */
};

/* How far an incomplete request was parsed. Initially all zeroes for each request. */
struct request_progress {
	size_t scanned; /* Bytes of the line that were searched for its end. */
	size_t needed;  /* The request is incomplete below this size. */
	struct quoted {
		size_t at;      /* Offset of the current line of arguments; 0: there is none. */
		size_t scanned; /* Bytes of the request that were searched for its end. */
		size_t kept;    /* Bytes of `words` from the lines before it. */
		struct buf words;
	} quoted; /* See quoted.h. */
};

/* Makes the progress that of the next request. Slices of the current one become invalid. */
static inline void request_progress_end(struct request_progress *progress)
{
	if (progress->quoted.at) {
		buf_free(&progress->quoted.words);
		progress->quoted = (struct quoted){ 0 };
	}
	progress->scanned = progress->needed = 0;
}

/* The rest of a refused request: bytes to discard when they arrive. */
struct request_skip {
	size_t bytes;
	bool line_end; /* The bytes are followed by CR LF or a bare LF. */
};

/* For parsers: returns that the request is incomplete below this size. */
static inline enum request_status request_wait(struct request_progress *progress, size_t bytes)
{
	progress->needed = bytes;
	return REQUEST_MORE;
}

#endif
