/*
 * Shared texts that stand among the bytes a stream is to write: they are written from where they are, so that many readers of
 * one large text cost its memory once.
 *
 *     out      | before | ............ | before | .. | rest |
 *     written    before   first text     before  second  rest
 */
#ifndef NET_INSERTS_H
#define NET_INSERTS_H

#include <stdbool.h>
#include <sys/queue.h>
#include <sys/uio.h>

#include "util/shared.h"

struct insert;

/* All zeroes after inserts_init. */
struct inserts {
	STAILQ_HEAD(, insert) list;
	size_t covered; /* bytes of the buffer that stand before one of the texts */
	size_t waiting; /* bytes of the texts not yet written */
};

void inserts_init(struct inserts *inserts);
void inserts_free(struct inserts *inserts);

/* Has the text written behind all that is in `out` by now. Holds it. */
void inserts_add(struct inserts *inserts, const struct buf *out, struct shared *text);

/* What to write first, in up to `max` pieces; gives how many there are. */
int inserts_pieces(const struct inserts *inserts, const struct buf *out, struct iovec *pieces, int max);

/* Says that `n` bytes were written: they go out of `out` and of the texts. */
void inserts_written(struct inserts *inserts, struct buf *out, size_t n);

#endif
