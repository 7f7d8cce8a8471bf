/* The marks of items that are moved, and the result for an item on both servers. */
#include "collection/move/join.h"
#include "collection/move/mark.h"
#include "collection/text/date.h"
#include "collection/text/table.h"
#include "unit.h"

#define REFERENCE "@t0a000000001.1.1.0.9.0123456789abcdef "

static struct slice text(const char *s)
{
	return slice_of(s, strlen(s));
}

#define HELD "~h1424450096.a0b1c2d3e4f5.1.l.x ~d2.0123456789abcdef "
#define H1 "~o---1aaaa "
#define H2 "~o---2aaaa "
#define S3 "~s---3aaaa "
#define S4 "~s---4aaaa "
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
	/* Sets with two copies: the later horizon, and the later words, wherever they are. */
	{ "k", "+a " H1 S3 "+b ~e ", "+c " H2 S4 "-b ~e ", JOIN_BOTH, JOIN_BOTH,
		"+c " H2 S4 "-b ~e " },
	{ "k", "+c " H2 S4 "-b ~e ", "+a " H1 S3 "+b ~e ", JOIN_BOTH, JOIN_BOTH,
		"+c " H2 S4 "-b ~e " },
	{ "k", H1 S4 "+b ~e ", H1 S3 "-b +c ~e ", JOIN_BOTH, JOIN_BOTH,
		H1 S3 "+c ~e " S4 "+b ~e " },
	{ "k", "@set.1 " REFERENCE "+b " H2, "+c " H1, JOIN_BOTH, JOIN_BOTH,
		"@set.1 " REFERENCE "+b " H2 },
	{ "k", "+a " H1, H2 "~g ", JOIN_BOTH, JOIN_BOTH, H2 "~g " },
	{ "k", H1 "~f---3aaaa ", H1 "~f---4aaaa ", JOIN_BOTH, JOIN_BOTH, H1 "~f---4aaaa " },
	{ "k", H1 "~f---4aaaa ", H1, JOIN_BOTH, JOIN_BOTH, H1 "~f---4aaaa " },
	{ "k", LOADING "+w " H2, "+a " H1, JOIN_BOTH, JOIN_BOTH, LOADING "+w " H2 },
	{ "k.~copy", "+a " H1 S3 "+b ~e ", "+a " H1, JOIN_BOTH, JOIN_BOTH, "+a " H1 S3 "+b ~e " },
	/* One that had one copy so far. */
	{ "k", "+a ", "+c " H1, JOIN_BOTH, JOIN_BOTH, "+c " H1 },
	{ "k", "+c " H1, "+a " S3 "+b ~e ", JOIN_BOTH, JOIN_BOTH, "+c " H1 S3 "+b ~e " },
	{ "k", "+a " S4 "+b ~e ", "-a " S3 "-b ~e ", JOIN_BOTH, JOIN_BOTH, "+a -a " S4 "+b ~e " },
	{ "k", "@set.1 " REFERENCE "+b ", "+a " S3 "+c ~e ", JOIN_BOTH, JOIN_BOTH,
		"@set.1 " REFERENCE "+b +a " S3 "+c ~e " },
	{ "k", "", "+a " H1, JOIN_HERE, JOIN_HERE, NULL },
	{ "k", "+a " H1, "", JOIN_BOTH, JOIN_BOTH, "+a " H1 },
	/* And what is none. */
	{ "k", "no set", "+a " H1, JOIN_HERE, JOIN_FORMER, NULL },
	{ "k", "+a " H1, "no set", JOIN_HERE, JOIN_FORMER, NULL },
	{ "k", "no set " H1, "+a " H1, JOIN_HERE, JOIN_FORMER, NULL },
	{ "k", "+a ~o---1aaa ", "+a " H1, JOIN_HERE, JOIN_FORMER, NULL },
	{ "k", "+a " H1, "+a " H1 S3 "+b ", JOIN_HERE, JOIN_FORMER, NULL },
	{ "k", "@list +a ", "+a " H1, JOIN_HERE, JOIN_FORMER, NULL },
	{ "k", "+a " H1, "@list +a " H1, JOIN_HERE, JOIN_FORMER, NULL },
	{ "k", "7", "+a " H1, JOIN_HERE, JOIN_FORMER, NULL },
	/* Counters. */
	{ "Error::2015022016.~copy", "7", "12", JOIN_BOTH, JOIN_BOTH, "19" },
	{ "k.~copy", "7", "12", JOIN_HERE, JOIN_HERE, NULL },
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
		join_values(former, here, 7, &out);
		assert_bytes(buf_slice(&out), joins[_i].joined);
	}
	buf_free(&out);
}

/* The date with the largest stamp is that of the base, if that is one. */
TEST(dates_of_copies)
{
	static const struct {
		const char *value;
		int64_t date;
	} dates[] = {
		{ "+a ~t1424450096 ", 1424450096 },
		{ "+a ~t1424450096 " H1, 1424450096 },
		{ "+a ~t1424450096 " H1 S3 "+b ~e ", 1424450096 },
		{ "+a ~t1424450096 " H1 S3 "~t1424450097 ~e ", 1424450097 },
		{ H1 S4 "~t1424450097 ~e " S3 "~t1424450096 ~e ", 1424450097 },
		{ H1 S4 "~t1424450097 ~t0 ~e " S3 "~t1424450096 ~e ", 0 },
		{ "~t1424450096 " S3 "+b ~t1424450095 ~e ", 1424450095 },
		{ "~t1424450096 ~o---4aaaa " S3 "~t1424450095 ~e ", 1424450096 },
		{ LOADING "+a ~t1424450096 " H1, 1424450096 },
		{ "+a " H1, DATE_NONE },
		{ "a ~t1424450096 " H1, DATE_NONE },
		{ "+a ~t1424450096 " H1 "~s", DATE_NONE },
		{ "@list ~t1424450096 " H1, DATE_NONE },
	};

	for (size_t i = 0; i < sizeof(dates) / sizeof(dates[0]); i++)
		ck_assert_msg(join_date(text(dates[i].value)) == dates[i].date, "%s: %lld",
			dates[i].value, (long long)join_date(text(dates[i].value)));
}

/* Tables of the new server are needed only if former words would follow them. */
TEST(runs_of_joined_copies)
{
	static const char runs[] = "@set.1 " REFERENCE, later[] = "@set.1 " REFERENCE H2,
			  other[] = "@set.1 @t0b000000001.1.1.0.9.0123456789abcdef " H2;

	ck_assert(join_needs_runs(text("@set.1 " REFERENCE "+b " S3 "+c ~e "), text(runs)));
	ck_assert(join_needs_runs(
		text("@set.1 " REFERENCE "+b "), text("@set.1 " REFERENCE S3 "+c ~e ")));
	ck_assert(!join_needs_runs(text("@set.1 " REFERENCE S3 "+c ~e "), text(runs)));
	ck_assert(!join_needs_runs(text("@set.1 " REFERENCE "+b " H1), text(runs)));
	ck_assert(!join_needs_runs(text("@set.1 " REFERENCE "+b "), text(later)));
	/* No part of the former item is kept, if the new server has the later horizon, and other parts. */
	ck_assert(join_drops_parts(text("@set.1 " REFERENCE H1), text(other)));
	ck_assert(join_drops_parts(text("@set.1 " REFERENCE H1), text("+a " H2)));
	ck_assert(!join_drops_parts(text("@set.1 " REFERENCE H1), text(later)));
	ck_assert(!join_drops_parts(text(other), text("+a " H1)));
	ck_assert(!join_drops_parts(text(other), text("+a " H2)));
	ck_assert(!join_drops_parts(text("@set.1 " REFERENCE), text("@set.1 " REFERENCE)));
	ck_assert(!join_drops_parts(text("@set.1 " REFERENCE), text("no set")));
}

/* The words of a table of the new server are dropped, and groups are kept. */
TEST(words_of_a_table_are_dropped)
{
	static const struct {
		const char *former, *here, *former_left, *here_left;
	} rows[] = {
		{ "@set.1 " REFERENCE "+a +b " S3 "+b ~e ",
			"-b @set.1 " REFERENCE "+b " S4 "-b ~e ",
			"@set.1 " REFERENCE "+a " S3 "+b ~e ",
			"@set.1 " REFERENCE "+b " S4 "-b ~e " },
		{ "+b " H1 S3 "+b ~e ", "-b " H1, "+b " H1 S3 "+b ~e ", "-b " H1 },
		{ "+a +b ", "-b @set.1 " REFERENCE, "+a ", "@set.1 " REFERENCE },
	};
	struct table_writer writer = { .count = 0 };
	struct buf table = BUF_EMPTY;

	table_writer_add(&writer, SLICE("b"), false);
	table_writer_finish(&writer, &table);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf former = BUF_EMPTY, here = BUF_EMPTY;
		buf_add_slice(&former, text(rows[i].former));
		buf_add_slice(&here, text(rows[i].here));
		join_drop_words(&former, &here, buf_slice(&table));
		assert_bytes(buf_slice(&former), rows[i].former_left);
		assert_bytes(buf_slice(&here), rows[i].here_left);
		buf_free(&former);
		buf_free(&here);
	}
	buf_free(&table);
	table_writer_free(&writer);
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
