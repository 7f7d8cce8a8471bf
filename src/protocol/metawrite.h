/* Writes in the meta dialect: for calls that ask for cas ids, compare them, or make an item that is missing; see call_is_meta_write. */
#ifndef PROTOCOL_METAWRITE_H
#define PROTOCOL_METAWRITE_H

#include "protocol/dialect.h"

/* As dialect.encode and dialect.decode. */
void metawrite_encode(const struct call *call, struct buf *out);
ssize_t metawrite_decode(struct slice in, const struct expect *expect, struct result *out);

#endif
