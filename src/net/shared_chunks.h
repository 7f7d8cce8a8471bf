/*
 * Shared texts that stand among the bytes a stream is to write: they are written from where they are, so that many readers of
 * one large text cost its memory once.
 *
 *     out      | before | ............ | before | .. | rest |
 *     written    before   first text     before  second  rest
 */
#ifndef NET_SHARED_CHUNKS_H
#define NET_SHARED_CHUNKS_H

#include <stdbool.h>
#include <sys/queue.h>
#include <sys/uio.h>

#include "util/shared.h"

struct shared_chunk;

/* All zeroes after shared_chunks_init. */
struct shared_chunks {
	STAILQ_HEAD(, shared_chunk) list;
	size_t covered; /* bytes of the buffer that stand before one of the texts */
	size_t waiting; /* bytes of the texts not yet written */
};

void shared_chunks_init(struct shared_chunks *chunks);
void shared_chunks_free(struct shared_chunks *chunks);

/* Has the text written behind all that is in `out` by now. Holds it. */
void shared_chunks_add(struct shared_chunks *chunks, const struct buf *out, struct shared *text);

/* What to write first, in up to `max` vectors; gives how many there are. */
int shared_chunks_vectors(const struct shared_chunks *chunks, const struct buf *out, struct iovec *vectors, int max);

/* Says that `n` bytes were written: they go out of `out` and of the texts. */
void shared_chunks_written(struct shared_chunks *chunks, struct buf *out, size_t n);

#endif
