/*
 * memcached's binary protocol, as clients speak it. The parser makes the same struct request as the parser of lines. So all behind
 * it is the same, up to the reply in text, which binary_reply_... turn into a response.
 */
#ifndef PROTOCOL_BINARY_H
#define PROTOCOL_BINARY_H

#include "protocol/call.h"
#include "protocol/request.h"
#include "util/buf.h"

enum binary_opcode {
#define BINARY(opcode, name, ...) BINARY_##name = (opcode),
#include "protocol/binary.def"
#undef BINARY
};

enum { BINARY_REQUEST = 0x80, BINARY_RESPONSE = 0x81, BINARY_HEADER = 24 /* bytes of each */ };

/* The parts of a request that its response repeats or depends on. */
struct binary_head {
	uint8_t opcode;
	bool quiet;
	uint32_t opaque; /* the bytes as they came */
};

/*
 * Of `request`, `consumed` counts all bytes that were taken, and `skip` the body behind them. `rest` is empty, except for the group of
 * STAT. Of VERBOSITY, `number` is the level. Of SASL_..., `key` is the mechanism and `data` what the client says.
 */
struct binary_request {
	struct request request;
	struct binary_head head;
};

/* As request_parse. HANGUP: the request does not begin as a binary one. With REFUSED and FATAL, `head` is filled in as well. */
enum request_status binary_parse(struct slice in, const struct request_limits *limits,
	struct request_progress *progress, struct binary_request *out);

/* --- responses: all functions append to `out`; `head` is that of the request --- */

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
 * or an error, with a cas id behind it as request.extras.wants_cas says. Nothing, if it is quiet and done.
 */
void binary_reply_line(struct buf *out, const struct binary_head *head, struct slice line);

/* The response to a read, or to TOUCH, from what its GET or GAT gave. Nothing, if it is quiet and a miss. */
void binary_reply_read(struct buf *out, const struct binary_head *head, struct slice key, const struct result *r);

/* The responses to STAT: one for each line STAT <name> <value>, and an empty one, or the one to an error. */
void binary_reply_stats(struct buf *out, const struct binary_head *head, struct slice lines);

#endif
