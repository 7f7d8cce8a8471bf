/* Dates in bases: parsed, found, replaced; and what they mean in each form of a base. */
#include "collection/text/date.h"

#include "collection/list/segmented_list.h"
#include "collection/text/fold.h"
#include "collection/text/oplog.h"
#include "unit.h"

#define DATE "~t1424450096 "

TEST(tokens)
{
	static const char *const good[] = { "~t0 ", DATE, "~t2592001 ", "~t4294967295 " };
	static const char *const malformed[] = { "~t", "~t ", "~t1424450096", "~t01 ", "~t00 ",
		"~t2592000 ", "~t4294967296 ", "~t14244500961 ", "~t-1 ", "~t+1 ", "~t1424450096x ",
		"~T0 ", "~u0 ", "~0 ", "~ ", "t0 ", "+t0 ",
		("~t\x01"
		 "0 ") };

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct slice s = guard_text(good[i]);
		ck_assert_ptr_eq(date_end(s.p, s.p + s.n), s.p + s.n);
		ck_assert(oplog_is_log(s));
		for (size_t n = 0; n < s.n; n++)
			ck_assert_ptr_null(date_end(s.p, s.p + n));
	}
	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
		struct slice s = guard_text(malformed[i]);
		ck_assert_msg(!date_end(s.p, s.p + s.n), "%s", malformed[i]);
		ck_assert_msg(date_last(s) == DATE_NONE, "%s", malformed[i]);
		if (s.p[0] == '~')
			ck_assert_msg(!oplog_is_log(s), "%s", malformed[i]);
	}
}

/* The last one counts. A word may have any of its bytes. */
TEST(found)
{
	static const struct {
		const char *base;
		int64_t date;
	} cases[] = {
		{ "", DATE_NONE },
		{ "+a +b ", DATE_NONE },
		{ DATE, 1424450096 },
		{ "+a " DATE "+b -c ", 1424450096 },
		{ "+a " DATE "+b ~t0 +c ", 0 },
		{ "+a ~t0 " DATE, 1424450096 },
		{ "+~t5000000 +a~t0 +x~ ", DATE_NONE },
		{ "+~t5000000 " DATE "+a~t0 +~t0 ", 1424450096 },
		{ "+a " DATE "@set.1 @t +b ", 1424450096 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_int_eq(date_last(guard_text(cases[i].base)), cases[i].date);
}

static void becomes(const char *base, int64_t date, const char *expected)
{
	struct buf value = BUF_EMPTY;

	buf_add(&value, base, strlen(base));
	date_set(&value, date);
	assert_bytes(buf_slice(&value), expected);
	buf_free(&value);
}

TEST(replaced)
{
	becomes("", DATE_NONE, "");
	becomes("", 0, "~t0 ");
	becomes("+a ", 1424450096, "+a " DATE);
	becomes("+a " DATE "+b ~t0 -c ", 1424450096, "+a +b -c " DATE);
	becomes(DATE DATE DATE, DATE_NONE, "");
	becomes("+~t0 " DATE "@list +~t0 ~t0 ", 0, "+~t0 @list +~t0 ~t0 ");
	/* It must not be taken for a number of seconds. */
	becomes("", 5, "~t2592001 ");
}

/* A fold drops dates, and takes no notice of them in anything that it counts. */
TEST(folded)
{
	struct fold f = { .seed = 7 };
	struct buf log = BUF_EMPTY;

	ck_assert(fold_log(&f, guard_text(DATE "+a " DATE "+b -a ~t0 ")));
	ck_assert_uint_eq(f.tokens, 3);
	ck_assert_uint_eq(f.live, 1);
	fold_encode(&f, true, &log);
	assert_bytes(buf_slice(&log), "-a +b ");
	fold_reset(&f);
	ck_assert(!fold_log(&f, guard_text("+a ~u0 ")));
	fold_free(&f);
	buf_free(&log);
}

static void lists(const char *base, bool good, const char *encoded)
{
	struct segmented_list list;
	struct buf out = BUF_EMPTY;

	ck_assert_msg(segmented_list_read(&list, guard_text(base)) == good, "%s", base);
	if (good) {
		assert_bytes(buf_slice(&list.base), base);
		segmented_list_encode(&list, SLICE(""), false, &out);
		assert_bytes(buf_slice(&out), encoded);
	}
	segmented_list_free(&list);
	buf_free(&out);
}

/* A list is read without dates. It keeps the base as it was read. */
TEST(listed)
{
	lists("+a " DATE "@list +b ~t0 +c " DATE, true, "+a @list +b +c ");
	lists(DATE, true, "");
	lists("@list +a ~u0 ", false, "");
	lists("@list +a ~t01 ", false, "");
}
