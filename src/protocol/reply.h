/*
 * Replies to clients, in memcached's text protocol. The functions that write them append to `out`. reply_next
 * reads a reply part by part, to give it in another form, whatever its command was.
 */
#ifndef PROTOCOL_REPLY_H
#define PROTOCOL_REPLY_H

#include "protocol/call.h"
#include "util/buf.h"

/* A line and its end. */
void reply_line(struct buf *out, struct slice line);
void reply_text(struct buf *out, const char *line);

/* A number as a line. */
void reply_number(struct buf *out, uint64_t n);

/* The line VALUE <key> <flags> <bytes> [<cas>], without a cas id if `cas` is NULL. The data must follow. */
void reply_value_head(struct buf *out, struct slice key, uint32_t flags, size_t bytes, const uint64_t *cas);

/* A VALUE line with its data; `cas` adds the cas id. */
void reply_value(struct buf *out, struct slice key, const struct result *r, bool cas);

/* The error line of a result for which result_failed() holds. */
void reply_failure(struct buf *out, const struct result *r);

/* The line STAT <name> <value>. */
void reply_stat(struct buf *out, const char *name, uint64_t value);
void reply_stat_text(struct buf *out, const char *name, const char *value);

/* --- reading --- */

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
	struct slice line; /* without its end */
	struct slice key;  /* VALUE: of a VALUE line */
	struct slice data; /* VALUE */
	uint32_t flags;    /* VALUE: of a VALUE line */
	uint64_t cas;      /* VALUE: of a VALUE line; 0 if there is none */
};

/* Takes the next part off the front of `reply`. Gives false at its end. The reply must be well-formed. */
bool reply_next(struct slice *reply, struct reply_part *out);

/* The same for the line of the part alone: behind it stand the data of a VALUE, or they are elsewhere, and only their size is right. */
bool reply_head(struct slice *reply, struct reply_part *out);

#endif
