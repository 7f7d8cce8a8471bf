#include "net/inserts.h"

#include <assert.h>
#include <stdlib.h>

#include "util/alloc.h"

struct insert {
	STAILQ_ENTRY(insert) link;
	struct shared *text;
	size_t sent;
	size_t before; /* bytes of the buffer between the text before this one and this one */
};

void inserts_init(struct inserts *inserts)
{
	*inserts = (struct inserts){ .list = STAILQ_HEAD_INITIALIZER(inserts->list) };
}

static void drop_first(struct inserts *inserts)
{
	struct insert *insert = STAILQ_FIRST(&inserts->list);

	STAILQ_REMOVE_HEAD(&inserts->list, link);
	shared_drop(insert->text);
	free(insert);
}

void inserts_free(struct inserts *inserts)
{
	while (!STAILQ_EMPTY(&inserts->list))
		drop_first(inserts);
	inserts_init(inserts);
}

void inserts_add(struct inserts *inserts, const struct buf *out, struct shared *text)
{
	struct insert *insert = xmalloc(sizeof(*insert));

	*insert = (struct insert){ .text = shared_hold(text), .before = buf_size(out) - inserts->covered };
	inserts->covered = buf_size(out);
	inserts->waiting += buf_size(&text->text);
	STAILQ_INSERT_TAIL(&inserts->list, insert, link);
}

static struct iovec piece_of(struct slice s)
{
	return (struct iovec){ .iov_base = (void *)s.p, .iov_len = s.n };
}

int inserts_pieces(const struct inserts *inserts, const struct buf *out, struct iovec *pieces, int max)
{
	struct slice rest = buf_slice(out);
	struct insert *insert;
	int n = 0;

	STAILQ_FOREACH(insert, &inserts->list, link) {
		if (n + 3 > max)
			return n;
		if (insert->before)
			pieces[n++] = piece_of(slice_of(rest.p, insert->before));
		rest = slice_skip(rest, insert->before);
		pieces[n++] = piece_of(slice_skip(buf_slice(&insert->text->text), insert->sent));
	}
	if (rest.n)
		pieces[n++] = piece_of(rest);
	return n;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

void inserts_written(struct inserts *inserts, struct buf *out, size_t n)
{
	struct insert *insert;

	while (n && (insert = STAILQ_FIRST(&inserts->list))) {
		size_t own = least(n, insert->before);
		buf_consume(out, own);
		insert->before -= own;
		inserts->covered -= own;
		n -= own;
		if (insert->before)
			return;
		size_t shared = least(n, buf_size(&insert->text->text) - insert->sent);
		insert->sent += shared;
		inserts->waiting -= shared;
		n -= shared;
		if (insert->sent < buf_size(&insert->text->text))
			return;
		drop_first(inserts);
	}
	buf_consume(out, n);
}
