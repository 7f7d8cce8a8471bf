/* What a client is answered, in memcached's own words. */
#ifndef PROTOCOL_REPLY_H
#define PROTOCOL_REPLY_H

#include "protocol/call.h"
#include "util/buf.h"

/* Appends `line` and a line end. */
void reply_line(struct buf *out, struct slice line);
void reply_text(struct buf *out, const char *line);

/* Appends a number on a line of its own. */
void reply_number(struct buf *out, uint64_t n);

/* Appends VALUE <key> <flags> <bytes> [<cas>] and a line end, without the data that must follow. */
void reply_value_head(struct buf *out, struct slice key, uint32_t flags, size_t bytes, const uint64_t *cas);

/* Appends a whole VALUE block. */
void reply_value(struct buf *out, struct slice key, const struct result *r, bool cas);

/* Appends the error line of a result for which result_failed() holds. */
void reply_failure(struct buf *out, const struct result *r);

/* Appends STAT <name> <value>. */
void reply_stat(struct buf *out, const char *name, uint64_t value);
void reply_stat_text(struct buf *out, const char *name, const char *value);

#endif
