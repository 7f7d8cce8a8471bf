/* A constant text with a reference count. All references belong to one thread. */
#ifndef UTIL_SHARED_H
#define UTIL_SHARED_H

#include <sys/queue.h>
#include <sys/uio.h>

#include "util/buf.h"

struct shared {
	size_t refs;
	size_t streams; /* of these, how many are of streams that are to write it */
	struct buf text;
};

/* Takes the content of `text`, which is empty afterwards. Gives the first reference to the caller. */
struct shared *shared_create(struct buf *text) __attribute__((returns_nonnull));

/* Adds a reference, and gives `shared`; drops one, and frees the text with the last. Dropping NULL does nothing. */
struct shared *shared_hold(struct shared *shared);
void shared_drop(struct shared *shared);

/*
 * Shared texts between the bytes of an output buffer. They are written without a copy, so a large text that many clients read
 * is in memory once. What is written is the buffer with each text inserted behind its `before` bytes:
 *
 *     buffer    | before |            | before |             | tail |
 *     texts              | first text |        | second text |
 */
struct shared_chunk;

struct shared_chunks {
	STAILQ_HEAD(, shared_chunk) list;
	size_t covered; /* bytes of the buffer before the last text: all but the tail */
	size_t waiting; /* unwritten bytes of texts */
	size_t held;    /* bytes of texts */
	size_t *again;  /* borrowed: of several streams together, bytes of texts that one holds beside another */
};

/* The texts of all streams of one `again` take the memory that these streams hold, less that number. */
void shared_chunks_init(struct shared_chunks *chunks, size_t *again);

/* Drops all texts; there are none afterwards. */
void shared_chunks_free(struct shared_chunks *chunks);

/* Inserts a text behind the current end of `out`. Holds a reference until it is written. */
void shared_chunks_add(struct shared_chunks *chunks, const struct buf *out, struct shared *text);

/* Fills in up to `max` vectors with what to write next, in order. Gives their number. */
int shared_chunks_vectors(const struct shared_chunks *chunks, const struct buf *out, struct iovec *vectors, int max);

/* Removes the first `n` bytes, which were written, from `out` and the texts. */
void shared_chunks_written(struct shared_chunks *chunks, struct buf *out, size_t n);

#endif
