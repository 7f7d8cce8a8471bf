#include "collection/move/mark.h"

#include "util/check.h"
#include "util/num.h"

enum { TEXT_MAX = 40 };

static size_t begin_text(char text[TEXT_MAX], struct slice word, struct slice key)
{
	char *p = slice_write(text, word);

	p += num_format_u64(p, check_of(key));
	return (size_t)(p - text);
}

static void add_number(struct buf *out, uint64_t number, char end)
{
	char digits[NUM_U64_MAX + 1];
	size_t n = num_format_u64(digits, number);

	digits[n++] = end;
	buf_add(out, digits, n);
}

#define CLAIM SLICE("@claim.")
#define COPY SLICE("@copy.")

void mark_add_claim(struct buf *out, struct slice key)
{
	buf_add_slice(out, CLAIM);
	add_number(out, check_of(key), ' ');
}

void mark_add_copy(struct buf *out, struct slice key, uint32_t flags, uint64_t cas, uint64_t mover,
	size_t bytes)
{
	buf_add_slice(out, COPY);
	add_number(out, check_of(key), '.');
	add_number(out, flags, '.');
	add_number(out, cas, '.');
	add_number(out, mover, '.');
	add_number(out, bytes, ' ');
}

/* Returns the position of `text` in `data`, or NULL. */
static const char *find_text(struct slice data, const char *text, size_t n)
{
	return data.n ? memmem(data.p, data.n, text, n) : NULL;
}

/* Removes a number and the byte after it, which must be `end`. */
static bool take_field(struct slice *rest, char end, uint64_t *out)
{
	if (!num_parse_u64(slice_cut(rest, end), out))
		return false;
	return rest->p[-1] == end;
}

static bool read_copy(struct slice rest, struct mark *mark)
{
	uint64_t flags, cas, mover, bytes;

	if (!take_field(&rest, '.', &flags) || flags > UINT32_MAX ||
		!take_field(&rest, '.', &cas) || !take_field(&rest, '.', &mover) ||
		!take_field(&rest, ' ', &bytes) || bytes > rest.n)
		return false;
	mark->kind = MARK_COPY;
	mark->flags = (uint32_t)flags;
	mark->cas = cas;
	mark->mover = mover;
	mark->value = slice_of(rest.p, bytes);
	mark->behind = slice_skip(rest, bytes);
	return true;
}

struct mark mark_read(struct slice key, uint32_t flags, struct slice data)
{
	struct mark mark = { .kind = MARK_NONE, .value = data, .flags = flags };
	char text[TEXT_MAX];
	size_t n;
	const char *at;

	if (flags != MARK_FLAGS)
		return mark;
	n = begin_text(text, CLAIM, key);
	text[n++] = ' ';
	at = find_text(data, text, n);
	if (at) {
		mark = (struct mark){ .kind = MARK_CLAIM, .value = slice_of(at, 0) };
		mark.behind = slice_skip(data, (size_t)(at - data.p) + n);
		mark.before = slice_of(data.p, (size_t)(at - data.p));
		return mark;
	}
	n = begin_text(text, COPY, key);
	text[n++] = '.';
	at = find_text(data, text, n);
	if (at && read_copy(slice_skip(data, (size_t)(at - data.p) + n), &mark))
		mark.before = slice_of(data.p, (size_t)(at - data.p));
	return mark;
}
