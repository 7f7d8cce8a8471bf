/* A dialect of the memcached protocol: calls to bytes, bytes to results. */
#ifndef PROTOCOL_DIALECT_H
#define PROTOCOL_DIALECT_H

#include <sys/types.h>

#include "protocol/call.h"
#include "util/buf.h"

enum { DIALECT_LINE_MAX = 2048, DIALECT_VALUE_MAX = 1 << 30, DIALECT_STATS_MAX = 1 << 16 };

/* The parts of a call that decoding its reply needs. */
struct expect {
	enum call_verb verb;
	unsigned want;
	struct slice key; /* borrowed until the reply is decoded */
	size_t value_max; /* a reply with a larger value is an error; 0 for DIALECT_VALUE_MAX */
};

struct dialect {
	const char *name;
	/* Appends the bytes of the call. */
	void (*encode)(const struct call *call, struct buf *out);
	/*
	 * Decodes one reply at the front of `in` to `out`, which the caller has cleared. Gives the size of the reply, 0 if it is
	 * incomplete, -1 if it does not answer the call: then the connection must be closed.
	 */
	ssize_t (*decode)(struct slice in, const struct expect *expect, struct result *out);
};

extern const struct dialect dialect_classic; /* get, set and so on */
extern const struct dialect
	dialect_meta; /* reads with `mg`; what only `ms`, `ma` and `md` can write; all else as dialect_classic */

/* For dialects: the first line, without its end (\r\n or \n), and the bytes with it; false if it is incomplete. */
bool dialect_line(struct slice in, struct slice *line, size_t *consumed);

/* For dialects: what decode gives for an incomplete line, and for a line that is an error or unknown. */
ssize_t dialect_incomplete(struct slice in);
ssize_t dialect_error(struct slice line, size_t consumed, const struct expect *expect, struct result *out);

/* For dialects: decodes a data block of `n` bytes and its line end at `at`; gives the end of it, or 0 or -1 as decode. */
ssize_t dialect_block(struct slice in, size_t at, uint64_t n, const struct expect *expect, struct slice *value);

#endif
