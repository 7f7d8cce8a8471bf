#include "util/shared.h"

#include <stdlib.h>

#include "util/alloc.h"
#include "util/num.h"

struct shared *shared_create(struct buf *text)
{
	struct shared *shared = xmalloc(sizeof(*shared));

	*shared = (struct shared){ .refs = 1, .text = *text };
	*text = BUF_EMPTY;
	return shared;
}

struct shared *shared_hold(struct shared *shared)
{
	shared->refs++;
	return shared;
}

void shared_drop(struct shared *shared)
{
	if (!shared || --shared->refs > 0)
		return;
	buf_free(&shared->text);
	free(shared);
}

/* --- shared texts in an output buffer --- */

struct shared_chunk {
	STAILQ_ENTRY(shared_chunk) link;
	struct shared *text;
	size_t sent;
	size_t before; /* Bytes of the buffer between the previous text and this one. */
};

void shared_chunks_init(struct shared_chunks *chunks, size_t *again)
{
	*chunks = (struct shared_chunks){ .list = STAILQ_HEAD_INITIALIZER(chunks->list),
		.again = again };
}

static void drop_first(struct shared_chunks *chunks)
{
	struct shared_chunk *chunk = STAILQ_FIRST(&chunks->list);
	size_t size = buf_size(&chunk->text->text);

	STAILQ_REMOVE_HEAD(&chunks->list, link);
	chunks->held -= size;
	*chunks->again -= --chunk->text->streams ? size : 0;
	shared_drop(chunk->text);
	free(chunk);
}

void shared_chunks_free(struct shared_chunks *chunks)
{
	while (!STAILQ_EMPTY(&chunks->list))
		drop_first(chunks);
	shared_chunks_init(chunks, chunks->again);
}

void shared_chunks_add(struct shared_chunks *chunks, const struct buf *out, struct shared *text)
{
	struct shared_chunk *chunk = xmalloc(sizeof(*chunk));
	size_t size = buf_size(&text->text);

	*chunk = (struct shared_chunk){ .text = shared_hold(text),
		.before = buf_size(out) - chunks->covered };
	chunks->covered = buf_size(out);
	chunks->waiting += size;
	chunks->held += size;
	*chunks->again += text->streams++ ? size : 0;
	STAILQ_INSERT_TAIL(&chunks->list, chunk, link);
}

static struct iovec vector_of(struct slice s)
{
	return (struct iovec){ .iov_base = (void *)s.p, .iov_len = s.n };
}

int shared_chunks_vectors(
	const struct shared_chunks *chunks, const struct buf *out, struct iovec *vectors, int max)
{
	struct slice own = buf_slice(out);
	struct shared_chunk *chunk;
	int n = 0;

	STAILQ_FOREACH(chunk, &chunks->list, link) {
		if (n + 3 > max)
			return n;
		if (chunk->before)
			vectors[n++] = vector_of(slice_of(own.p, chunk->before));
		own = slice_skip(own, chunk->before);
		vectors[n++] = vector_of(slice_skip(buf_slice(&chunk->text->text), chunk->sent));
	}
	if (own.n)
		vectors[n++] = vector_of(own);
	return n;
}

void shared_chunks_written(struct shared_chunks *chunks, struct buf *out, size_t n)
{
	struct shared_chunk *chunk;

	while (n && (chunk = STAILQ_FIRST(&chunks->list))) {
		size_t own = num_least_size(n, chunk->before);
		buf_consume(out, own);
		chunk->before -= own;
		chunks->covered -= own;
		n -= own;
		if (chunk->before)
			return;
		size_t shared = num_least_size(n, buf_size(&chunk->text->text) - chunk->sent);
		chunk->sent += shared;
		chunks->waiting -= shared;
		n -= shared;
		if (chunk->sent < buf_size(&chunk->text->text))
			return;
		drop_first(chunks);
	}
	buf_consume(out, n);
}
