/* Responses in memcached's binary protocol. All functions append to `out`; `head` is that of the request. */
#ifndef PROTOCOL_BINARY_REPLY_H
#define PROTOCOL_BINARY_REPLY_H

#include "protocol/binary.h"
#include "protocol/call.h"
#include "util/buf.h"

enum binary_status {
	BINARY_OK = 0x00,
	BINARY_NOT_FOUND = 0x01,
	BINARY_EXISTS = 0x02,
	BINARY_TOO_LARGE = 0x03,
	BINARY_INVALID = 0x04,
	BINARY_NOT_STORED = 0x05,
	BINARY_NOT_A_NUMBER = 0x06,
	BINARY_AUTH_ERROR = 0x20,
	BINARY_AUTH_CONTINUE = 0x21,
	BINARY_UNKNOWN = 0x81,
	BINARY_NO_MEMORY = 0x82,
	BINARY_INTERNAL = 0x84, /* the outcome may be unknown */
	BINARY_BUSY = 0x85,
	BINARY_UNAVAILABLE = 0x86 /* nothing was done */
};

/* A response with this text as its value, whether the request is quiet or not. */
void binary_reply_text(struct buf *out, const struct binary_head *head, enum binary_status status, struct slice text);

/*
 * The response to a request that is not a read and not STAT, from the line of its reply in text without its end: a word, a number
 * or an error, with a cas id behind it as request.wants_cas says. Nothing, if it is quiet and done.
 */
void binary_reply_line(struct buf *out, const struct binary_head *head, struct slice line);

/* The response to a read, or to TOUCH, from what its GET or GAT gave. Nothing, if it is quiet and a miss. */
void binary_reply_read(struct buf *out, const struct binary_head *head, struct slice key, const struct result *r);

/* The responses to STAT: one for each line STAT <name> <value>, and an empty one, or the one to an error. */
void binary_reply_stats(struct buf *out, const struct binary_head *head, struct slice lines);

#endif
