/* The marks of items that are moved, and what becomes of an item that both servers have. */
#include "collection/move/join.h"
#include "collection/move/mark.h"
#include "unit.h"

#define REFERENCE "@t0a000000001.1.1.0.9.0123456789abcdef "

static struct slice text(const char *s)
{
	return slice_of(s, strlen(s));
}

static const struct {
	const char *key, *former, *here, *joined;
	uint32_t flags;
} joins[] = {
	{ "k", "x", "y", "x", 1 },
	{ "k", "+a -b ", "+b +c ", "+b +c +a -b ", 2 },
	{ "k", "+a ", "@set.1 " REFERENCE "+b ", "@set.1 " REFERENCE "+b +a ", 2 },
	{ "k", "@set.1 " REFERENCE "+b ", "+a ", "+a @set.1 " REFERENCE "+b ", 2 },
	{ "k", "+a ", "no set", "+a ", 1 },
	{ "k", "", "+a ", "+a ", 2 },
	{ "k", "", "no set", "", 1 },
	{ "k", "7", "12", "12", 2 },
	{ "Error::2015022016", "7", "12", "19", 2 },
	{ "k", "+w ", "@set.2 @fill.abcdefg0.1700000010.10 +a ", "@set.2 @fill.abcdefg0.1700000010.10 +a +w ", 2 },
};

LOOP_TEST(join, sizeof(joins) / sizeof(joins[0]))
{
	struct buf out = BUF_EMPTY;
	uint32_t flags = join_items(text(joins[_i].key), (struct join_item){ text(joins[_i].former), 1 },
		(struct join_item){ text(joins[_i].here), 2 }, &out);

	assert_bytes(buf_slice(&out), joins[_i].joined);
	ck_assert_uint_eq(flags, joins[_i].flags);
	buf_free(&out);
}

TEST(marks)
{
	struct buf stored = BUF_EMPTY;
	struct mark mark;

	BUF_ADD(&stored, "+x ");
	mark_add_copy(&stored, SLICE("k"), 4294967295, UINT64_MAX, 1, 2);
	BUF_ADD(&stored, "vw+y ");
	mark = mark_read(SLICE("k"), MARK_FLAGS, buf_slice(&stored));
	ck_assert_int_eq(mark.kind, MARK_COPY);
	assert_bytes(mark.before, "+x ");
	assert_bytes(mark.value, "vw");
	assert_bytes(mark.behind, "+y ");
	ck_assert_uint_eq(mark.flags, 4294967295);
	/* Of another key, or with other flags, it is a value. */
	ck_assert_int_eq(mark_read(SLICE("l"), MARK_FLAGS, buf_slice(&stored)).kind, MARK_NONE);
	ck_assert_int_eq(mark_read(SLICE("k"), 0, buf_slice(&stored)).kind, MARK_NONE);
	/* Cut off anywhere in front of its value's end, it is no copy. */
	for (size_t n = 0; n < buf_size(&stored) - 3; n++)
		ck_assert_int_eq(mark_read(SLICE("k"), MARK_FLAGS, slice_of(buf_slice(&stored).p, n)).kind, MARK_NONE);
	buf_free(&stored);
}
