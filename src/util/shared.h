/* A constant text with a reference count. All references belong to one thread. */
#ifndef UTIL_SHARED_H
#define UTIL_SHARED_H

#include <sys/queue.h>
#include <sys/uio.h>

#include "util/buf.h"

/* Whether a text of words has been checked, and the result. */
enum shared_words { SHARED_UNKNOWN, SHARED_PLAIN, SHARED_SPECIAL };

struct shared {
	size_t refs;
	/* How many of the references are held by streams that have yet to write it. */
	size_t streams;
	struct buf text;
	/* Used by the owners: whether words need another form in replies; see elements.h. */
	enum shared_words words;
};

/*
 * Moves the content of `text`, which is empty afterwards, to a new shared text. The caller owns
 * the first reference.
 */
struct shared *shared_create(struct buf *text) __attribute__((returns_nonnull));

/*
 * shared_hold() adds a reference and returns `shared`. shared_drop() drops one; the last one
 * frees the text. Dropping NULL does nothing.
 */
struct shared *shared_hold(struct shared *shared);
void shared_drop(struct shared *shared);

/*
 * Shared texts between the bytes of an output buffer. They are written without being copied, so
 * a large text that many clients read is in memory once. The output is the buffer, with each
 * text inserted after its `before` bytes:
 *
 *     buffer    | before |            | before |             | tail |
 *     texts              | first text |        | second text |
 */
struct shared_chunk;

struct shared_chunks {
	STAILQ_HEAD(, shared_chunk) list;
	size_t covered; /* Bytes of the buffer before the last text: all but the tail. */
	size_t waiting; /* Unwritten bytes of texts. */
	size_t held;    /* Bytes of texts that are held. */
	/*
	 * Borrowed. Of all streams that use this counter: bytes of texts that are counted in
	 * the `held` of more than one.
	 */
	size_t *again;
};

/*
 * `again` is a counter shared by several streams: their texts take the sum of their `held`
 * bytes, less this number.
 */
void shared_chunks_init(struct shared_chunks *chunks, size_t *again);

/* Drops all texts; the list is empty afterwards. */
void shared_chunks_free(struct shared_chunks *chunks);

/* Inserts a text after the current end of `out`. Holds a reference until it is written. */
void shared_chunks_add(struct shared_chunks *chunks, const struct buf *out, struct shared *text);

/*
 * Fills in up to `max` vectors with the next bytes to write, in order. Returns the number of
 * vectors.
 */
int shared_chunks_vectors(
	const struct shared_chunks *chunks, const struct buf *out, struct iovec *vectors, int max);

/* Removes the first `n` bytes, which were written, from `out` and the texts. */
void shared_chunks_written(struct shared_chunks *chunks, struct buf *out, size_t n);

#endif
