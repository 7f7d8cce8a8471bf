#include "util/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/alloc.h"
#include "util/num.h"

enum { BUF_MIN = 512 };

void buf_make_room(struct buf *b, size_t n)
{
	size_t size = buf_size(b), cap = b->cap ? b->cap : BUF_MIN;

	/*
	 * Moving the readable bytes is worth it only if they are no more than the bytes that
	 * become free.
	 */
	if (b->data && b->cap - size >= n && size <= b->start) {
		if (size)
			memmove(b->data, b->data + b->start, size);
	} else {
		while (cap - size < n)
			cap *= 2;
		/* For a large text, the system remaps pages instead of copying. */
		if (b->data && b->start == 0) {
			b->data = xrealloc(b->data, cap);
			b->cap = cap;
			return;
		}
		char *data = xmalloc(cap);
		if (size)
			memcpy(data, b->data + b->start, size);
		free(b->data);
		b->data = data;
		b->cap = cap;
	}
	b->start = 0;
	b->end = size;
}

void buf_commit(struct buf *b, size_t n)
{
	assert(n <= b->cap - b->end);
	b->end += n;
}

void buf_add_u64(struct buf *b, uint64_t v)
{
	b->end += num_format_u64(buf_reserve(b, NUM_U64_MAX), v);
}

void buf_add_i64(struct buf *b, int64_t v)
{
	b->end += num_format_i64(buf_reserve(b, NUM_U64_MAX + 1), v);
}

void buf_printf(struct buf *b, const char *format, ...)
{
	va_list ap, again;
	int n;

	va_start(ap, format);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, format, ap);
	va_end(ap);
	assert(n >= 0);
	vsnprintf(buf_reserve(b, (size_t)n + 1), (size_t)n + 1, format, again);
	va_end(again);
	b->end += (size_t)n;
}

void buf_consume(struct buf *b, size_t n)
{
	assert(n <= buf_size(b));
	b->start += n;
	if (b->start == b->end)
		b->start = b->end = 0;
}
