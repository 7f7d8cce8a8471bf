/* The flags of meta commands. They are checked before they are passed on: a server must not lose sync with what we send. */
#ifndef PROTOCOL_METAFLAGS_H
#define PROTOCOL_METAFLAGS_H

#include "protocol/command.h"
#include "util/buf.h"
#include "util/slice.h"

struct metaflags {
	bool quiet;  /* q: nominal replies are suppressed */
	bool base64; /* b: the key is base64 */
	bool value;  /* v: the value is requested */
};

/* Parses the flags of `command` to `out`. Gives NULL, or the error line that refuses them. */
const char *metaflags_parse(enum command_id command, struct slice flags, struct metaflags *out);

/* Appends each flag except q to `out`, after a space. */
void metaflags_copy(struct slice flags, struct buf *out);

/* Decodes base64 to `out`, which has room for 3/4 of `in`. Gives the number of bytes, 0 if `in` is not base64. */
size_t metaflags_decode_key(struct slice in, char *out);

#endif
