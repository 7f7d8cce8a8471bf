/* A dialect of the memcached protocol converts calls to bytes, and bytes to results. */
#ifndef PROTOCOL_DIALECT_H
#define PROTOCOL_DIALECT_H

#include <sys/types.h>

#include "protocol/call.h"
#include "util/buf.h"

enum { DIALECT_LINE_MAX = 2048, DIALECT_VALUE_MAX = 1 << 30, DIALECT_STATS_MAX = 1 << 16 };

/* The parts of a call that are needed to decode its reply. */
struct expect {
	enum call_verb verb;
	unsigned want;
	struct slice key; /* Borrowed until the reply is decoded. */
	size_t value_max; /* A larger value is an error; 0 for DIALECT_VALUE_MAX. */
};

struct dialect {
	const char *name;
	/* Appends the bytes of the call. */
	void (*encode)(const struct call *call, struct buf *out);
	/*
	 * Decodes one reply at the front of `in` to `out`, which the caller has cleared.
	 * Returns the size of the reply, or 0 if it is incomplete. Returns -1 if it does not
	 * match the call; then the connection must be closed.
	 */
	ssize_t (*decode)(struct slice in, const struct expect *expect, struct result *out);
};

extern const struct dialect dialect_classic; /* get, set and so on. */
extern const struct dialect
	/*
	 * Reads with `mg`; uses `ms`, `ma` and `md` only for writes that need them; otherwise
	 * like dialect_classic.
	 */
	dialect_meta;

/*
 * For dialects: returns the first line without its end (\r\n or \n) in `line`, and its size
 * with the end in `consumed`; false if the line is incomplete.
 */
bool dialect_line(struct slice in, struct slice *line, size_t *consumed);

/* Returns the value of a name in the lines of a STATS; empty if it is not there. */
struct slice dialect_stat(struct slice stats, struct slice name);

/* Returns the clock in the result of a STATS, in seconds since 1970; 0 if it is not there. */
int64_t dialect_clock(const struct result *stats);

/*
 * For dialects: return the result of decode for an incomplete line, and for a line that is an
 * error or unknown.
 */
ssize_t dialect_incomplete(struct slice in);
ssize_t dialect_error(
	struct slice line, size_t consumed, const struct expect *expect, struct result *out);

/*
 * For dialects: decodes a data block of `n` bytes and its line end at `at`. Returns the offset
 * of its end, or 0 or -1 as decode does.
 */
ssize_t dialect_block(
	struct slice in, size_t at, uint64_t n, const struct expect *expect, struct slice *value);

#endif
