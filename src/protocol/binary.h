/*
 * memcached's binary protocol, as clients speak it: its parser, which makes the same struct request as that of lines, and its form of
 * replies.
 */
#ifndef PROTOCOL_BINARY_H
#define PROTOCOL_BINARY_H

#include "protocol/reply.h"
#include "protocol/request.h"
#include "util/buf.h"

enum binary_opcode {
#define BINARY(opcode, name, ...) BINARY_##name = (opcode),
#include "protocol/binary.def"
#undef BINARY
};

enum { BINARY_REQUEST = 0x80, BINARY_RESPONSE = 0x81, BINARY_HEADER = 24 /* bytes of each */ };

/* The parts of a request that its responses repeat or depend on: for binary_form. */
struct binary_asked {
	uint8_t opcode;
	bool quiet;
	uint8_t key_size; /* of GETK and its kind, whose response has the key; else 0 */
	uint32_t opaque;  /* the bytes as they came */
	char key[KEY_MAX];
};

/*
 * As request_parse. Of `out`, `consumed` counts all bytes that were taken, and `skip` the body behind them. `rest` is empty, except
 * for the group of STAT. Of VERBOSITY, `number` is the level. Of SASL_..., `key` is the mechanism and `data` what the client says. Unless
 * the result is MORE or HANGUP, `asked` and `reply` are filled in, to which `out->reply` points. HANGUP: the request does not begin as
 * a binary one.
 */
enum request_status binary_parse(struct slice in, const struct request_limits *limits,
	struct request_progress *progress, struct request *out, struct request_reply *reply,
	struct binary_asked *asked);

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
void binary_reply_text(struct buf *out, const struct binary_asked *asked, enum binary_status status, struct slice text);

/* The responses to a request; `asked` is a struct binary_asked. */
reply_form binary_form;

#endif
