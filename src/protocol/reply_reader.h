/*
 * Reads the reply to one request of the text protocol, as reply.c and the commands wrote it, part by part. So a reply can be given
 * in another form, whatever the command was.
 */
#ifndef PROTOCOL_REPLY_READER_H
#define PROTOCOL_REPLY_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "util/slice.h"

enum reply_part_kind {
	REPLY_PART_VALUE,  /* a VALUE line and its data, or a VA line of a meta command and its data */
	REPLY_PART_NUMBER, /* a line of digits */
	REPLY_PART_END,    /* END */
	REPLY_PART_ERROR,  /* ERROR, CLIENT_ERROR ..., SERVER_ERROR ... */
	REPLY_PART_LINE    /* any other line, such as STORED, or HD and its flags */
};

/* Its slices point into the reply. */
struct reply_part {
	enum reply_part_kind kind;
	struct slice line;      /* without its end */
	struct slice key;       /* VALUE: of a VALUE line */
	struct slice metaflags; /* VALUE: of a VA line */
	struct slice data;      /* VALUE */
	uint32_t flags;         /* VALUE: of a VALUE line */
	uint64_t cas;           /* VALUE: of a VALUE line; 0 if there is none */
	uint64_t number;        /* NUMBER; UINT64_MAX if it is larger */
};

/* Takes the next part off the front of `reply`. Gives false at its end. The reply must be well-formed. */
bool reply_next(struct slice *reply, struct reply_part *out);

#endif
