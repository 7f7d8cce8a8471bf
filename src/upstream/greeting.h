/*
 * The greeting of a new connection to a server. It authenticates, if there is a login, and asks for the server's version, meta
 * commands, largest item and cas ids. Pure: it only makes and reads bytes.
 */
#ifndef UPSTREAM_GREETING_H
#define UPSTREAM_GREETING_H

#include <sys/types.h>

#include "util/buf.h"
#include "util/slice.h"

enum { GREETING_REPLIES = 3 };

struct greeting {
	unsigned version;  /* major << 16 | minor << 8 | patch */
	bool meta, cas;    /* the server has meta commands, cas ids */
	bool refused;      /* the server wants another login, or one at all */
	uint64_t item_max; /* bytes; 0 if unknown */
};

/*
 * Appends the greeting, which begins with the login, "user password", unless that is empty. A memcached that wants no login stores an
 * item that has expired already: nothing stays.
 */
void greeting_encode(struct slice login, struct buf *out);

/*
 * Decodes all replies to the greeting, which had a login or not. Gives the number of their bytes, 0 if they are incomplete, or -1 if
 * something else comes; `g->refused` says whether that is a refusal of the login.
 */
ssize_t greeting_read(struct slice in, bool has_login, struct greeting *g);

/* Decodes reply number `which`, from 0, to its fields of `g`. Gives the same as dialect.decode. */
ssize_t greeting_decode(struct slice in, unsigned which, struct greeting *g);

#endif
