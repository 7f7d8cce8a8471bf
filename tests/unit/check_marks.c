/* The marks of items that are moved, and the result for an item on both servers. */
#include "collection/move/join.h"
#include "collection/move/mark.h"
#include "unit.h"

#define REFERENCE "@t0a000000001.1.1.0.9.0123456789abcdef "

static struct slice text(const char *s)
{
	return slice_of(s, strlen(s));
}

#define HELD "~h1424450096.a0b1c2d3e4f5.1.l.x ~d2.0123456789abcdef "
#define LOADING "@set.2 @fill.abcdefg0.1700000010.10 "

/* `of_copy`: the result for both if `here` is only a copy of the former server's item. */
static const struct {
	const char *key, *former, *here;
	enum join join, of_copy;
	const char *joined;
} joins[] = {
	{ "k", "x", "y", JOIN_HERE, JOIN_FORMER, NULL },
	{ "k", "+a -b ", "+b +c ", JOIN_BOTH, JOIN_BOTH, "+a -b +b +c " },
	{ "k", "+a ", "@set.1 " REFERENCE "+b ", JOIN_BOTH, JOIN_BOTH,
		"+a @set.1 " REFERENCE "+b " },
	{ "k", "@set.1 " REFERENCE "+b ", "+a ", JOIN_BOTH, JOIN_BOTH,
		"@set.1 " REFERENCE "+b +a " },
	{ "k", "+a ", "no set", JOIN_HERE, JOIN_FORMER, NULL },
	{ "k", "no set", "+a ", JOIN_HERE, JOIN_FORMER, NULL },
	{ "k", "@list +a ", "@set.1 " REFERENCE, JOIN_HERE, JOIN_FORMER, NULL },
	{ "k", "@set.4 +a ", "+b ", JOIN_HERE, JOIN_FORMER, NULL },
	{ "k", "", "+a ", JOIN_HERE, JOIN_HERE, NULL },
	{ "k", "", "no set", JOIN_HERE, JOIN_FORMER, NULL },
	{ "k", "+a ", "", JOIN_BOTH, JOIN_BOTH, "+a " },
	{ "k", "@set.1 " REFERENCE "+b ", "", JOIN_BOTH, JOIN_BOTH, "@set.1 " REFERENCE "+b " },
	/* Numbers, and counts of events. */
	{ "k", "7", "12", JOIN_HERE, JOIN_HERE, NULL },
	{ "k", "12", "7  ", JOIN_HERE, JOIN_FORMER, NULL },
	/* Elements that clients hold stay held. */
	{ "k", "@list +a " HELD, "+b ", JOIN_BOTH, JOIN_BOTH, "@list +a " HELD "+b " },
	{ "k", "@list +a " HELD, "@list +b ", JOIN_BOTH, JOIN_BOTH, "@list +a " HELD "+b " },
	{ "k", "+a ", "@list " HELD "+b ", JOIN_BOTH, JOIN_BOTH, "+a @list " HELD "+b " },
	{ "k", "@list " HELD, "", JOIN_BOTH, JOIN_BOTH, "@list " HELD },
	{ "Error::2015022016", "7", "12", JOIN_BOTH, JOIN_BOTH, "19" },
	{ "Error::20150220", "7", "12", JOIN_HERE, JOIN_HERE, NULL },
	{ "Error::2015132016", "7", "12", JOIN_HERE, JOIN_HERE, NULL },
	{ "::2015022016", "7", "12", JOIN_HERE, JOIN_HERE, NULL },
	{ "user:2015022016", "7", "12", JOIN_HERE, JOIN_HERE, NULL },
	{ "by_day|20150220", "7", "12", JOIN_BOTH, JOIN_BOTH, "19" },
	{ "by_day|2015022016", "7", "12", JOIN_HERE, JOIN_HERE, NULL },
	{ "by_day::2015022016", "7", "12", JOIN_HERE, JOIN_HERE, NULL },
	/* A collection that is being loaded. */
	{ "k", "+w ", LOADING "+a ", JOIN_BOTH, JOIN_BOTH, "+w " LOADING "+a " },
	{ "k", "@set.1 " REFERENCE "+b ", LOADING "+a ", JOIN_HERE, JOIN_FORMER, NULL },
	{ "k", LOADING REFERENCE "-w ", "+a ", JOIN_BOTH, JOIN_BOTH, "-w +a " },
	{ "k", LOADING "+w ", LOADING "+a ", JOIN_BOTH, JOIN_BOTH, "+w " LOADING "+a " },
	{ "k", "@list.2 @fill.abcdefg0.1700000010.10 +w ", LOADING "+a ", JOIN_HERE, JOIN_FORMER,
		NULL },
	{ "k", LOADING "+w ", "no set", JOIN_HERE, JOIN_FORMER, NULL },
};

LOOP_TEST(join, sizeof(joins) / sizeof(joins[0]))
{
	const struct event_rule by_day = {
		.prefix = SLICE("by_day"), .bucket = GRANULARITY_DAY, .separator = SLICE("|")
	};
	const struct rules rules = { .events = &by_day, .event_count = 1 };
	struct slice former = text(joins[_i].former), here = text(joins[_i].here);
	struct buf out = BUF_EMPTY;

	ck_assert_int_eq(join_of(&rules, text(joins[_i].key), former, here, false), joins[_i].join);
	ck_assert_int_eq(
		join_of(&rules, text(joins[_i].key), former, here, true), joins[_i].of_copy);
	if (joins[_i].joined) {
		join_values(former, here, &out);
		assert_bytes(buf_slice(&out), joins[_i].joined);
	}
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
		ck_assert_int_eq(
			mark_read(SLICE("k"), MARK_FLAGS, slice_of(buf_slice(&stored).p, n)).kind,
			MARK_NONE);
	buf_free(&stored);
}
