/* The parsed base of a collection: its parts, its references, and its version. */
#include "collection/text/oplog.h"

#include "unit.h"
#include "util/random.h"

#define L1 "l00000000001.3.1"
#define L2 "s00000000002.40.1"
#define LC "l00000000001.3.1.0123456789abcdef"
#define ABC_CHECK 0xff822a2867ea9b22 /* of "+a +b +c " */
#define T1 "t00000000001.1.3.0.99.0123456789abcdef"
#define T2 "t0000000000z.1.3.3.99.fedcba9876543210"
#define I1 "i00000000003.2.4294967295.7.4294967295.0000000000000000"
#define C1 "c00000000001.0.1"

static const struct {
	const char *base;
	enum oplog_form form;
	const char *head, *refs, *log;
	size_t ref_count;
	bool is_list;
} splits[] = {
	{ "", OPLOG_GOOD, "", "", "", 0, false },
	{ "+a -b ", OPLOG_GOOD, "", "", "+a -b ", 0, false },
	{ "@list ", OPLOG_GOOD, "", "", "", 0, true },
	{ "+x @list +a ", OPLOG_GOOD, "+x ", "", "+a ", 0, true },
	{ "+x -z @" L1 " -a ", OPLOG_GOOD, "+x -z ", "@" L1 " ", "-a ", 1, true },
	{ "@" L1 ":1:2 @" L2 " +a ", OPLOG_GOOD, "", "@" L1 ":1:2 @" L2 " ", "+a ", 2, true },
	{ "+x @list @" L1 " ", OPLOG_GOOD, "+x ", "@" L1 " ", "", 1, true },
	{ "@list @" LC " @" LC ":1:2 @" L2 " ", OPLOG_GOOD, "", "@" LC " @" LC ":1:2 @" L2 " ", "",
		3, true },
	{ "@set.1 ", OPLOG_GOOD, "", "", "", 0, false },
	{ "@set.1 @" T1 " ", OPLOG_GOOD, "", "@" T1 " ", "", 1, false },
	{ "@set.1 @" T1 " @" T2 " @" I1 " +a -b ", OPLOG_GOOD, "", "@" T1 " @" T2 " @" I1 " ",
		"+a -b ", 3, false },
	{ "+x+@ -y @set.1 @" I1 " -a ", OPLOG_GOOD, "+x+@ -y ", "@" I1 " ", "-a ", 1, false },
	{ "+a@list +b ", OPLOG_GOOD, "", "", "+a@list +b ", 0, false },
	{ "+@list +@set.1 -@set.4 ", OPLOG_GOOD, "", "", "+@list +@set.1 -@set.4 ", 0, false },
	/* The log is not looked at. */
	{ "@set.1 @" T1 " anything", OPLOG_GOOD, "", "@" T1 " ", "anything", 1, false },
};

static const struct {
	const char *base;
	enum oplog_form form;
} refused[] = {
	{ "@list @list ", OPLOG_CORRUPT },
	{ "@list +a @list ", OPLOG_CORRUPT },
	{ "@list +a @" L1 " ", OPLOG_CORRUPT },
	{ "@" L1 " @list ", OPLOG_CORRUPT },
	{ "@lists ", OPLOG_CORRUPT },
	{ "@list", OPLOG_CORRUPT },
	{ "@list @" T1 " ", OPLOG_CORRUPT },
	{ "@" T1 " ", OPLOG_CORRUPT },
	{ "@set.1 @" L1 " ", OPLOG_CORRUPT },
	{ "@set.1 @" T1 " @" L1 " ", OPLOG_CORRUPT },
	{ "@set.1 @set.1 ", OPLOG_CORRUPT },
	{ "@set.1 @" T1 " +a @set.1 @" T2 " ", OPLOG_CORRUPT },
	{ "@set.1", OPLOG_CORRUPT },
	{ "@set.1 @" T1, OPLOG_CORRUPT },
	{ "@set ", OPLOG_CORRUPT },
	{ "@set. ", OPLOG_CORRUPT },
	{ "@set.0 ", OPLOG_CORRUPT },
	{ "@set.x ", OPLOG_CORRUPT },
	{ "@set.-1 ", OPLOG_CORRUPT },
	{ "@ ", OPLOG_CORRUPT },
	{ "@", OPLOG_CORRUPT },
	{ "+a  @set.1 ", OPLOG_CORRUPT },
	{ "a @set.1 ", OPLOG_CORRUPT },
	{ "+a\t @set.1 ", OPLOG_CORRUPT },
	{ "+ @set.1 ", OPLOG_CORRUPT },
	{ "@" L1 ":0:0 ", OPLOG_CORRUPT },
	{ "@" L1 ":1:3 ", OPLOG_CORRUPT },
	{ "@" L1 ":4294967295:2 ", OPLOG_CORRUPT },
	{ "@" L1 ":1 ", OPLOG_CORRUPT },
	{ "@" L1 ":1:1:1 ", OPLOG_CORRUPT },
	{ "@l00000000001.0.1 ", OPLOG_CORRUPT },
	{ "@list @" L1 ".0123456789abcde ", OPLOG_CORRUPT },
	{ "@list @" L1 ".0123456789abcdef0 ", OPLOG_CORRUPT },
	{ "@list @" L1 ".0123456789abcdeF ", OPLOG_CORRUPT },
	{ "@list @" L1 ".0123456789abcdef.1 ", OPLOG_CORRUPT },
	{ "@list @l00000000001.3.0123456789012345 ", OPLOG_CORRUPT },
	{ "@list @" L1 ":1:2.0123456789abcdef ", OPLOG_CORRUPT },
	{ "@x00000000001.0.1 ", OPLOG_CORRUPT },
	{ "@list @" C1 " ", OPLOG_CORRUPT },
	/* Sets of version 0.1.0, which are no longer read. */
	{ "@" C1 " ", OPLOG_OUTDATED },
	{ "@" C1 " @d00000000001.0.1 +a -b ", OPLOG_OUTDATED },
	{ "@d0000000000z.12.3 ", OPLOG_OUTDATED },
	{ "+x -z @" C1 " +a ", OPLOG_OUTDATED },
	{ "@c0000000000A.0.1 ", OPLOG_CORRUPT },
	{ "@c0000000000.0.1 ", OPLOG_CORRUPT },
	{ "@c00000000001 ", OPLOG_CORRUPT },
	{ "@e00000000001.0.1 ", OPLOG_CORRUPT },
	/* Any bytes after the mark of a later version. */
	{ "@set.4 ", OPLOG_NEWER },
	{ "@set.4 @" T1 " +a ", OPLOG_NEWER },
	{ "@set.17 what is it", OPLOG_NEWER },
	{ "+x @set.4 ", OPLOG_NEWER },
	{ "@list.4 @l.1 ", OPLOG_NEWER },
	{ "+x @list.4294967295 ", OPLOG_NEWER },
};

TEST(splitting)
{
	for (size_t i = 0; i < sizeof(splits) / sizeof(splits[0]); i++) {
		struct oplog_base base;
		struct slice text = guard_text(splits[i].base);

		ck_assert_msg(oplog_split(text, &base) && base.form == OPLOG_GOOD, "\"%s\"",
			splits[i].base);
		ck_assert_msg(base.is_list == splits[i].is_list, "\"%s\"", splits[i].base);
		ck_assert_uint_eq(base.ref_count, splits[i].ref_count);
		assert_bytes(base.head, splits[i].head);
		assert_bytes(base.refs, splits[i].refs);
		assert_bytes(base.log, splits[i].log);
		/* The parts are all there is, and the references end the block. */
		ck_assert_uint_eq(base.head.n + base.block.n + base.log.n, text.n);
		ck_assert(base.block.n == 0 || base.block.p == text.p + base.head.n);
		ck_assert(base.refs.n == 0 ||
			base.refs.p + base.refs.n == base.block.p + base.block.n);
	}
}

TEST(refusing)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct oplog_base base;

		ck_assert_msg(!oplog_split(guard_text(refused[i].base), &base), "\"%s\"",
			refused[i].base);
		ck_assert_msg(base.form == refused[i].form, "\"%s\": %d", refused[i].base,
			(int)base.form);
	}
}

static const char *const wrong_runs[] = { "t00000000001.2.3.0.99.0123456789abcdef",
	"i00000000001.1.3.0.99.0123456789abcdef", "t00000000001.0.3.0.99.0123456789abcdef",
	"t00000000001.1.0.0.99.0123456789abcdef", "t00000000001.1.3.4.99.0123456789abcdef",
	"t00000000001.1.3.0.99.0123456789abcde", "t00000000001.1.3.0.99.0123456789abcdeff",
	"t00000000001.1.3.0.99.0123456789ABCDEF", "t00000000001.1.3.0.99.", "t00000000001.1.3.0.99",
	"t00000000001.1.3.0.0123456789abcdef", "t00000000001.1.4294967296.0.99.0123456789abcdef",
	"t00000000001.1.3.0.-1.0123456789abcdef", "t00000000001.1..0.99.0123456789abcdef",
	"t00000000001.1.3.0.99.0123456789abcdef.", "t00000000001",
	"t0000000001.1.3.0.99.0123456789abcdef", "t000000000001.1.3.0.99.0123456789abcdef",
	"tA0000000001.1.3.0.99.0123456789abcdef", "l00000000001.1.3.0.99.0123456789abcdef", "",
	"t00000000001.1.3.0.99.0123456789abcde\x7f",
	/* With dates: none, one number or three, too many members, no mean, and no numbers. */
	"t00000000001.1.3.0.99.0.0.0123456789abcdef", "t00000000001.1.3.0.99.0.7.0123456789abcdef",
	"t00000000001.1.3.0.99.2.0.0123456789abcdef", "t00000000001.1.3.0.99.2.0123456789abcdef",
	"t00000000001.1.3.0.99.2.7.7.0123456789abcdef",
	"t00000000001.1.3.0.99.4.7.0123456789abcdef", "t00000000001.1.3.2.99.2.7.0123456789abcdef",
	"t00000000001.1.3.3.99.1.7.0123456789abcdef",
	"i00000000001.2.3.1.99.4294967295.7.0123456789abcdef",
	"t00000000001.1.3.0.99.2.4294967296.0123456789abcdef",
	"t00000000001.1.3.0.99.4294967296.7.0123456789abcdef",
	"t00000000001.1.3.0.99..7.0123456789abcdef", "t00000000001.1.3.0.99.2..0123456789abcdef",
	"t00000000001.1.3.0.99.-2.7.0123456789abcdef",
	"t00000000001.1.3.0.99.2.-7.0123456789abcdef",
	"t00000000001.1.3.0.99.2.7x.0123456789abcdef", "t00000000001.1.3.0.99.2.7.0123456789abcde",
	"t00000000001.1.3.0.99.2.7.", "t00000000001.1.3.0.99.2.7",
	"t00000000001.1.3.0.99.2.7.0123456789abcdef.",
	"t00000000001.1.3.0.99.2.7.0123456789abcdef0",
	"t00000000001.1.3.0.99.2.7.0123456789ABCDEF" };

TEST(wrong_references_to_runs)
{
	char base[200];

	for (size_t i = 0; i < sizeof(wrong_runs) / sizeof(wrong_runs[0]); i++) {
		struct oplog_base split;
		struct oplog_run run;
		int n = snprintf(base, sizeof(base), "@%s ", wrong_runs[i]);
		struct slice refs = slice_of(base, (size_t)n);

		ck_assert_msg(!oplog_next_run(&refs, &run), "\"%s\"", wrong_runs[i]);
		ck_assert_msg(refs.p == base && refs.n == (size_t)n, "\"%s\" is taken off",
			wrong_runs[i]);
		n = snprintf(base, sizeof(base), OPLOG_SET_MARK "@" T1 " @%s ", wrong_runs[i]);
		ck_assert_msg(
			!oplog_split(slice_of(base, (size_t)n), &split), "\"%s\"", wrong_runs[i]);
	}
}

TEST(references_to_runs)
{
	struct slice refs = SLICE("@" T2 " @" I1 " +a ");
	struct buf again = BUF_EMPTY;
	struct oplog_run run;

	ck_assert(oplog_next_run(&refs, &run));
	assert_bytes(run.id, "t0000000000z");
	ck_assert(!run.indexed && run.tables == 1 && run.entries == 3 && run.removals == 3 &&
		run.bytes == 99);
	ck_assert_uint_eq(run.check, 0xfedcba9876543210u);
	oplog_add_run(&again, &run);
	ck_assert(oplog_next_run(&refs, &run));
	ck_assert(run.indexed && run.tables == 2 && run.entries == UINT32_MAX && run.removals == 7);
	ck_assert(run.bytes == UINT32_MAX && run.check == 0);
	oplog_add_run(&again, &run);
	assert_bytes(buf_slice(&again), "@" T2 " @" I1 " ");
	ck_assert(!oplog_next_run(&refs, &run));
	assert_bytes(refs, "+a ");
	buf_free(&again);
}

#define D1 "t00000000001.1.3.1.99.2.1424450096.0123456789abcdef"
#define D2 "i00000000003.2.4294967295.0.7.4294967295.4294967295.0000000000000000"
#define D3 "t00000000004.1.1.0.99.1.1.0123456789abcdef"

TEST(references_with_dates)
{
	struct slice refs = SLICE("@" D1 " @" T1 " @" D2 " @" D3 " ");
	static const uint64_t dates[][2] = { { 2, 1424450096 }, { 0, 0 },
		{ UINT32_MAX, UINT32_MAX }, { 1, 1 } };
	struct buf again = BUF_EMPTY;
	struct oplog_run run = { .dated = 9, .mean = 9 };
	struct oplog_base base;

	ck_assert(
		oplog_split(guard_text(OPLOG_WIDE_SET_MARK "@" D1 " @" T1 " @" D2 " +a "), &base));
	ck_assert(base.ref_count == 3 && base.wide);
	assert_bytes(base.log, "+a ");
	for (size_t i = 0; i < sizeof(dates) / sizeof(dates[0]); i++) {
		ck_assert(oplog_next_run(&refs, &run));
		ck_assert_uint_eq(run.dated, dates[i][0]);
		ck_assert_uint_eq(run.mean, dates[i][1]);
		oplog_add_run(&again, &run);
	}
	ck_assert_uint_eq(refs.n, 0);
	assert_bytes(buf_slice(&again), "@" D1 " @" T1 " @" D2 " @" D3 " ");
	buf_free(&again);
}

/* A reference is another one if any of its numbers differs. */
TEST(same_references)
{
	static const char *const others[] = { D1,
		"t00000000002.1.3.1.99.2.1424450096.0123456789abcdef",
		"t00000000001.1.4.1.99.2.1424450096.0123456789abcdef",
		"t00000000001.1.3.0.99.2.1424450096.0123456789abcdef",
		"t00000000001.1.3.1.98.2.1424450096.0123456789abcdef",
		"t00000000001.1.3.1.99.1.1424450096.0123456789abcdef",
		"t00000000001.1.3.1.99.2.1424450097.0123456789abcdef",
		"t00000000001.1.3.1.99.2.1424450096.0123456789abcdee",
		"t00000000001.1.3.1.99.0123456789abcdef" };
	struct slice refs = SLICE("@" D1 " ");
	struct oplog_run run, other;
	char text[100];

	ck_assert(oplog_next_run(&refs, &run));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		refs = slice_of(text, (size_t)snprintf(text, sizeof(text), "@%s ", others[i]));
		ck_assert(oplog_next_run(&refs, &other));
		ck_assert_msg(oplog_same_run(&run, &other) == (i == 0), "%s", others[i]);
	}
}

/* At least a quarter of the run has dates, and about half of these have passed. */
TEST(spent)
{
	static const struct {
		uint64_t entries, dated, mean;
		int64_t now;
		bool spent;
	} cases[] = { { 100, 100, 1000, 1000, true }, { 100, 100, 1000, 999, false },
		{ 100, 100, 1000, 5000, true }, { 100, 25, 1000, 1000, true },
		{ 100, 24, 1000, 5000, false }, { 3, 1, 1000, 1000, true },
		{ 7, 1, 1000, 1000, true }, { 8, 1, 1000, 1000, false }, { 100, 0, 0, 5000, false },
		{ 3, 0, 0, 5000, false }, { 100, 100, 1000, 0, false },
		{ UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, true },
		{ UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX - 1ll, false } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct oplog_run run = {
			.entries = cases[i].entries, .dated = cases[i].dated, .mean = cases[i].mean
		};
		ck_assert_msg(oplog_is_spent(&run, cases[i].now) == cases[i].spent, "case %zu", i);
	}
}

/* --- logs with dates of members --- */

#define EXPIRES \
	"\x02" \
	"1424450096"

TEST(dated_logs)
{
	static const char *const good[] = { "", "+a" EXPIRES " ",
		"+a" EXPIRES " -a +b" EXPIRES " +c ", "~t0 +a" EXPIRES " ~t1424450096 ",
		"+\x01!" EXPIRES " ", "-a +@set.1" EXPIRES " " };
	static const char *const bad[] = { "-a" EXPIRES " ", "a" EXPIRES " ", "@a" EXPIRES " ",
		"~t0" EXPIRES " ", "+" EXPIRES " ", "+a" EXPIRES, "+a\x02 ",
		"+a\x02"
		"142445009 ",
		"+a\x02"
		"0000000000 ",
		"+a\x02"
		"4294967296 ",
		"+a" EXPIRES EXPIRES " ", "+a " EXPIRES " ", "+b -a" EXPIRES " ", "+a" EXPIRES "  ",
		"+a" EXPIRES " b", "+a" EXPIRES " +", "+a" EXPIRES " -" };

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		ck_assert_msg(oplog_is_log(guard_text(good[i])), "%zu: \"%s\"", i, good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(!oplog_is_log(guard_text(bad[i])), "%zu: \"%s\"", i, bad[i]);
}

TEST(dated_log_cut_at_every_byte)
{
	static const char log[] = "+a" EXPIRES " -b +\x01\x22 ~t0 +c" EXPIRES " ";

	for (size_t n = 0; n < sizeof(log); n++)
		ck_assert_int_eq(
			oplog_is_log(guard_place(slice_of(log, n))), n == 0 || log[n - 1] == ' ');
}

/* The end of the first token, whatever follows it. Only members of sets have dates. */
TEST(dated_tokens)
{
	enum { PAST = 12 };
	static const char log[] = "+a" EXPIRES " -b +c x ";
	static char token[ELEMENT_WORD_MAX + 1 + PAST + 1];
	const char *end = log + sizeof(log) - 1;

	ck_assert_ptr_eq(oplog_dated_token_end(log, end), log + 2 + PAST);
	ck_assert_ptr_null(oplog_token_end(log, end));
	ck_assert_ptr_eq(oplog_dated_token_end(log + 2 + PAST, end), log + 2 + PAST + 3);
	ck_assert_ptr_null(oplog_dated_token_end(end - 2, end));
	for (size_t n = MEMBER_WORD_MAX; n <= MEMBER_WORD_MAX + 1; n++) {
		memset(token, 'x', sizeof(token));
		token[0] = '+';
		memcpy(token + 1 + n, EXPIRES " ", PAST);
		struct slice s = guard_place(slice_of(token, 1 + n + PAST));
		ck_assert_ptr_eq(oplog_dated_token_end(s.p, s.p + s.n),
			n > MEMBER_WORD_MAX ? NULL : s.p + s.n);
		/* Elements of lists are longer, but have no dates. */
		token[1 + n] = ' ';
		s = guard_place(slice_of(token, 2 + n));
		ck_assert_ptr_eq(oplog_dated_token_end(s.p, s.p + s.n), s.p + s.n);
	}
}

TEST(new_ids)
{
	static const enum oplog_kind kinds[] = { OPLOG_TABLE, OPLOG_INDEX, OPLOG_LIST };
	uint64_t random = 1;
	char ids[300][OPLOG_ID];

	for (size_t i = 0; i < 300; i++) {
		enum oplog_kind kind = kinds[i % 3];
		oplog_new_id(kind, 0, &random, ids[i]);
		for (size_t k = 0; k < 3; k++)
			ck_assert(oplog_is_id(slice_of(ids[i], OPLOG_ID), kinds[k]) ==
				(kinds[k] == kind));
		ck_assert(!oplog_is_id(slice_of(ids[i], OPLOG_ID - 1), kind));
		for (size_t k = 0; k < i; k++)
			ck_assert(memcmp(ids[i], ids[k], OPLOG_ID) != 0);
	}
}

TEST(windows)
{
	struct slice refs = SLICE("@" L1 ":1:2 @" L1 " ");
	struct oplog_ref ref;
	struct buf again = BUF_EMPTY;

	ck_assert(oplog_next_ref(&refs, &ref));
	assert_bytes(ref.id, L1);
	ck_assert(ref.count == 3 && ref.skip == 1 && ref.keep == 2);
	assert_bytes(oplog_window(SLICE("+a +b +c "), &ref), "+b +c ");
	oplog_add_ref(&again, &ref);
	assert_bytes(buf_slice(&again), "@" L1 ":1:2 ");
	ck_assert(oplog_next_ref(&refs, &ref));
	ck_assert(ref.skip == 0 && ref.keep == 3);
	assert_bytes(oplog_window(SLICE("+a +b +c "), &ref), "+a +b +c ");
	buf_free(&again);
}

/* A reference of 0.1.0 has no check, and is not changed. */
TEST(checks)
{
	struct slice refs = SLICE("@l00000000001.3.1.3a3a3a3a3a3a3a3a:1:2 @" L1 " ");
	struct oplog_ref ref;
	struct buf again = BUF_EMPTY;

	ck_assert(oplog_next_ref(&refs, &ref));
	assert_bytes(ref.id, L1);
	ck_assert(ref.check.known && ref.check.value == 0x3a3a3a3a3a3a3a3a && ref.count == 3 &&
		ref.skip == 1 && ref.keep == 2);
	ck_assert(!oplog_matches(ref.check, SLICE("+a +b +c ")));
	oplog_add_ref(&again, &ref);
	ck_assert(oplog_next_ref(&refs, &ref));
	assert_bytes(ref.id, L1);
	ck_assert(!ref.check.known);
	ck_assert(oplog_matches(ref.check, SLICE("+a +b +c ")));
	oplog_add_ref(&again, &ref);
	assert_bytes(buf_slice(&again), "@l00000000001.3.1.3a3a3a3a3a3a3a3a:1:2 @" L1 " ");
	ck_assert(oplog_matches((struct oplog_check){ true, ABC_CHECK }, SLICE("+a +b +c ")));
	ck_assert(!oplog_matches((struct oplog_check){ true, ABC_CHECK }, SLICE("+a +b +d ")));
	buf_free(&again);
}

/* A piece ends with a complete token; one at the end begins with one too. */
TEST(cutting)
{
	struct slice log = SLICE("+aa +b +ccc ");

	ck_assert_uint_eq(oplog_cut(log, 100), 12);
	ck_assert_uint_eq(oplog_cut(log, 12), 12);
	ck_assert_uint_eq(oplog_cut(log, 11), 7);
	ck_assert_uint_eq(oplog_cut(log, 7), 7);
	ck_assert_uint_eq(oplog_cut(log, 4), 4);
	ck_assert_uint_eq(oplog_cut(log, 3), 4);
	ck_assert_uint_eq(oplog_cut(SLICE("+aaa "), 1), 5);
	ck_assert_uint_eq(oplog_cut(SLICE(""), 1), 0);
	ck_assert_uint_eq(oplog_cut_end(SLICE("+aaa "), 1), 5);
	ck_assert_uint_eq(oplog_cut_end(log, 100), 12);
	ck_assert_uint_eq(oplog_cut_end(log, 12), 12);
	ck_assert_uint_eq(oplog_cut_end(log, 11), 8);
	ck_assert_uint_eq(oplog_cut_end(log, 8), 8);
	ck_assert_uint_eq(oplog_cut_end(log, 7), 5);
	ck_assert_uint_eq(oplog_cut_end(log, 4), 5);
}
