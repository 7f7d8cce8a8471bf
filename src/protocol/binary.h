/*
 * The parser of requests in memcached's binary protocol. It makes the same struct request as the parser of lines. So all that is
 * behind it is the same, up to the reply, which binary_reply.h turns into a response.
 */
#ifndef PROTOCOL_BINARY_H
#define PROTOCOL_BINARY_H

#include "protocol/request.h"

enum binary_opcode {
#define BINARY(opcode, name, ...) BINARY_##name = (opcode),
#include "protocol/binary.def"
#undef BINARY
	BINARY_OPCODES /* above all of them */
};

enum { BINARY_REQUEST = 0x80, BINARY_RESPONSE = 0x81, BINARY_HEADER = 24 /* bytes of each */ };

/* What a response repeats of its request, or depends on. */
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

#endif
