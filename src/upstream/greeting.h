/*
 * The first thing asked on a new connection: which version the server is, whether it speaks meta commands, how large an item
 * may be and whether it keeps cas ids. Pure: the bytes to send, and what to make of those that come.
 */
#ifndef UPSTREAM_GREETING_H
#define UPSTREAM_GREETING_H

#include <sys/types.h>

#include "util/buf.h"
#include "util/slice.h"

enum { GREETING_REPLIES = 3 };

struct greeting {
	unsigned version; /* major << 16 | minor << 8 | patch */
	bool meta, cas;
	uint64_t item_max; /* 0 when not told */
};

void greeting_encode(struct buf *out);

/* Reads the `which`th reply, counted from 0; gives as dialect.decode. `g` is filled in as replies come. */
ssize_t greeting_decode(struct slice in, unsigned which, struct greeting *g);

#endif
