/* The flags of meta commands, checked before they are passed on: a server must never lose its place in what we send. */
#ifndef PROTOCOL_METAFLAGS_H
#define PROTOCOL_METAFLAGS_H

#include "protocol/command.h"
#include "util/buf.h"
#include "util/slice.h"

struct metaflags {
	bool quiet;  /* q: nominal replies are kept back */
	bool base64; /* b: the key is encoded */
	bool value;  /* v: a value is asked for */
};

/* Reads the flags of `command`; NULL when they are good, else the reply that refuses them. */
const char *metaflags_parse(enum command_id command, struct slice flags, struct metaflags *out);

/* Appends to `out` every flag but q, each after a space. */
void metaflags_copy(struct slice flags, struct buf *out);

/* Decodes base64 to `out`, which has room for 3/4 of `in`; gives the number of bytes, 0 when `in` is not base64. */
size_t metaflags_decode_key(struct slice in, char *out);

#endif
