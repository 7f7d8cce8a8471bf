/*
 * A growable byte buffer, written at the back and read at the front.
 *
 *      data        start            end             cap
 *       | consumed   |   readable    |   writable    |
 */
#ifndef UTIL_BUF_H
#define UTIL_BUF_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "util/slice.h"

struct buf {
	char *data;
	size_t start, end, cap;
};

/* An empty buffer: all zeroes, owns no memory. */
#define BUF_EMPTY ((struct buf){ 0 })

/* Frees the memory. The buffer is empty afterwards and may be reused. */
static inline void buf_free(struct buf *b)
{
	if (b->data)
		free(b->data);
	*b = BUF_EMPTY;
}

/*
 * The slow path of buf_reserve(): moves the readable bytes, or grows the buffer, to make room
 * for `n` more bytes.
 */
void buf_make_room(struct buf *b, size_t n);

/*
 * Makes room for at least `n` more bytes and returns their address. buf_commit() then adds the
 * bytes that were written there.
 */
static inline char *buf_reserve(struct buf *b, size_t n)
{
	if (b->cap - b->end < n || !b->data)
		buf_make_room(b, n);
	return b->data + b->end;
}

void buf_commit(struct buf *b, size_t n);

/* Append bytes, a number in decimal, or a formatted text (slow). */
static inline void buf_add(struct buf *b, const void *p, size_t n)
{
	if (!n)
		return;
	memcpy(buf_reserve(b, n), p, n);
	b->end += n;
}

void buf_add_u64(struct buf *b, uint64_t v);
void buf_add_i64(struct buf *b, int64_t v);
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Drops the first `n` readable bytes; there must be as many. */
void buf_consume(struct buf *b, size_t n);

static inline size_t buf_size(const struct buf *b)
{
	return b->end - b->start;
}

/* Returns the readable bytes, borrowed until the buffer changes. */
static inline struct slice buf_slice(const struct buf *b)
{
	return b->data ? (struct slice){ b->data + b->start, b->end - b->start }
		       : (struct slice){ "", 0 };
}

/* Returns the memory, which the caller owns. The buffer is empty afterwards. */
static inline struct buf buf_take(struct buf *b)
{
	struct buf taken = *b;

	*b = BUF_EMPTY;
	return taken;
}

/* Returns whether a text, which is not empty, is in the buffer, with fewer bytes after it. */
static inline bool buf_is_mostly(const struct buf *b, struct slice text)
{
	uintptr_t from = (uintptr_t)b->data, at = (uintptr_t)text.p;

	return b->data && at >= from + b->start && at < from + b->end &&
		from + b->end - at - text.n < text.n;
}

static inline void buf_add_slice(struct buf *b, struct slice s)
{
	buf_add(b, s.p, s.n);
}

/* Appends a word and a space. */
static inline void buf_add_word(struct buf *b, struct slice word)
{
	char *at = buf_reserve(b, word.n + 1);

	word_copy(at, word.p, word.n);
	at[word.n] = ' ';
	b->end += word.n + 1;
}

#define BUF_ADD(b, literal) buf_add((b), (literal), sizeof(literal) - 1)

#endif
