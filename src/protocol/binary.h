/*
 * memcached's binary protocol, as clients speak it: its parser, which makes the same struct request as that of lines, and its form of
 * replies.
 */
#ifndef PROTOCOL_BINARY_H
#define PROTOCOL_BINARY_H

#include <stddef.h>

#include "protocol/reply.h"
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
	uint8_t key_size; /* of GETK and its kind, whose response has the key; else 0 */
	uint32_t opaque;  /* the bytes as they came */
};

/* For binary_form: a head, and the key behind it. */
struct binary_asked {
	struct binary_head head;
	char key[KEY_MAX];
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

/* --- responses --- */

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

/* The responses to a request; `asked` is a struct binary_asked. */
reply_form binary_form;

/* Fills in what binary_form needs of a request. Returns its size. */
size_t binary_ask(const struct binary_request *request, struct binary_asked *out);

#endif
