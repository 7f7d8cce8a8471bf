/*
 * The greeting of a new connection to a server. It asks for the server's version, meta commands, largest item and cas ids. Pure:
 * it only makes and reads bytes.
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
	uint64_t item_max; /* bytes; 0 if unknown */
};

/* Appends the greeting. */
void greeting_encode(struct buf *out);

/* Decodes reply number `which`, from 0, to its fields of `g`. Gives the same as dialect.decode. */
ssize_t greeting_decode(struct slice in, unsigned which, struct greeting *g);

#endif
