/* Replies to clients, in memcached's text protocol. All functions append to `out`. */
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

#endif
