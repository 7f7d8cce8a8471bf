/*
 * memcached's binary protocol for clients: its parser, which produces the same struct request
 * as the text protocol, and its form of replies.
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

/* The first byte of a request and of a response; the size of a header in bytes. */
enum { BINARY_REQUEST = 0x80, BINARY_RESPONSE = 0x81, BINARY_HEADER = 24 };

/* The parts of a request that its responses repeat or depend on, used by binary_form. */
struct binary_asked {
	uint8_t opcode;
	bool quiet;
	/* Size of the key for GETK and its variants, whose response contains the key; else 0. */
	uint8_t key_size;
	uint32_t opaque; /* The bytes as received. */
	char key[KEY_MAX];
};

/*
 * Parses one request, like request_parse. Of `out`, `consumed` counts all parsed bytes, and
 * `skip` the body that follows them. `rest` is empty, except for the group of STAT. For
 * VERBOSITY, `number` is the level. For SASL commands, `key` is the mechanism and `data` the
 * client's message. Unless the result is MORE or HANGUP, fills in `asked` and `reply`, and
 * points `out->reply` to `reply`. HANGUP: the request does not begin like a binary one.
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
	BINARY_INTERNAL = 0x84, /* The outcome may be unknown. */
	BINARY_BUSY = 0x85,
	BINARY_UNAVAILABLE = 0x86 /* Nothing was done. */
};

/* Appends a response with this text as its value, even if the request is quiet. */
void binary_reply_text(struct buf *out, const struct binary_asked *asked, enum binary_status status,
	struct slice text);

/* Writes the responses to a request; `asked` is a struct binary_asked. */
reply_form binary_form;

#endif
