/*
 * The greeting of a new connection to a server. It authenticates, if there is a login, and
 * queries the server's version, whether it has meta commands and cas ids, its maximum item size,
 * and its clock. Pure: it only encodes and decodes bytes.
 */
#ifndef UPSTREAM_GREETING_H
#define UPSTREAM_GREETING_H

#include <sys/types.h>

#include "util/buf.h"
#include "util/slice.h"

enum { GREETING_REPLIES = 4 };

struct greeting {
	unsigned version; /* major << 16 | minor << 8 | patch. */
	bool meta, cas;   /* The server has meta commands, cas ids. */
	/* The server requires another login, or requires one and none was sent. */
	bool refused;
	uint64_t item_max; /* Maximum item size in bytes; 0 if unknown. */
	int64_t time;      /* Its clock, in seconds since 1970; 0 if unknown. */
	int64_t started;   /* When its process was started, by that clock; 0 if unknown. */
};

/*
 * Appends the greeting to `out`. It begins with `login`, "user password", unless that is empty.
 * A memcached without authentication stores the login as an item that has already expired, so
 * nothing is left.
 */
void greeting_encode(struct slice login, struct buf *out);

/*
 * Decodes all replies to the greeting. `has_login` is whether it had a login. Returns the
 * number of their bytes, 0 if they are incomplete, or -1 on an unexpected reply; `g->refused`
 * is then set if the login was refused.
 */
ssize_t greeting_read(struct slice in, bool has_login, struct greeting *g);

/*
 * Decodes reply number `which`, counted from 0, to its fields of `g`. Returns the same as
 * dialect.decode.
 */
ssize_t greeting_decode(struct slice in, unsigned which, struct greeting *g);

#endif
