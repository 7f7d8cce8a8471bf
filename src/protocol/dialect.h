/* A dialect of the memcached protocol: calls to bytes, bytes to results. */
#ifndef PROTOCOL_DIALECT_H
#define PROTOCOL_DIALECT_H

#include <sys/types.h>

#include "protocol/call.h"
#include "util/buf.h"

enum { DIALECT_LINE_MAX = 2048, DIALECT_VALUE_MAX = 1 << 30, DIALECT_STATS_MAX = 1 << 16 };

/* What must be remembered of a call to read its reply. */
struct expect {
	enum call_verb verb;
	unsigned want;
	struct slice key; /* borrowed for as long as the reply is awaited */
	size_t value_max; /* bytes of a value that is longer than any that is asked for; 0 for DIALECT_VALUE_MAX */
};

struct dialect {
	const char *name;
	/* Appends the bytes of the call. */
	void (*encode)(const struct call *call, struct buf *out);
	/*
	 * Reads one reply from the front of `in`, filling in `out`, which the caller has cleared. Gives the bytes it took, 0 when
	 * more must come, -1 when this is no answer to what was asked: nothing on the connection can be trusted then.
	 */
	ssize_t (*decode)(struct slice in, const struct expect *expect, struct result *out);
};

extern const struct dialect dialect_classic; /* text commands, as old as memcached */
extern const struct dialect dialect_meta;    /* `mg` for what is read: many answers in one write; the rest as classic */

/* For dialects: splits the first line off; false when it has not come. Both line ends are taken. */
bool dialect_line(struct slice in, struct slice *line, size_t *consumed);

/* For dialects: what to make of a missing line end, or of a line that is an error or nothing known. */
ssize_t dialect_incomplete(struct slice in);
ssize_t dialect_error(struct slice line, size_t consumed, const struct expect *expect, struct result *out);

/* For dialects: takes the data block of `n` bytes and its line end at `at`; as decode. */
ssize_t dialect_block(struct slice in, size_t at, uint64_t n, const struct expect *expect, struct slice *value);

#endif
