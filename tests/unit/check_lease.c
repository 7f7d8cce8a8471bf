/*
 * The base of a set or list that is being loaded: its form, how it is written, and the result of
 * completing it.
 */
#include "collection/text/lease.h"

#include "unit.h"

#define T1 "@t00000000001.1.3.0.99.0123456789abcdef "
#define T2 "@t0000000000z.1.3.3.99.fedcba9876543210 "
#define I1 "@i00000000003.2.4294967295.7.4294967295.0000000000000000 "
#define L1 "@l00000000001.3.1.0123456789abcdef "
#define L2 "@l00000000002.40.1.0123456789abcdef "
#define FILL "@fill.abcdefg0.1700000010.10 "

static const struct {
	const char *base;
	bool is_list;
	const char *head, *runs, *loaded, *log;
} loading[] = {
	{ "@set.2 " FILL, false, "", "", "", "" },
	{ "@set.2 " FILL "+a -b ", false, "", "", "", "+a -b " },
	{ "@set.2 " FILL T1 I1, false, "", "", T1 I1, "" },
	{ "@set.2 " T1 FILL, false, "", T1, "", "" },
	{ "+x -y @set.2 " T1 T2 FILL I1 "-a ", false, "+x -y ", T1 T2, I1, "-a " },
	{ "@list.2 " FILL, true, "", "", "", "" },
	{ "+x @list.2 " FILL L1 L2 "+a ", true, "+x ", "", L1 L2, "+a " },
};

static struct slice text_of(const char *text)
{
	return slice_of(text, strlen(text));
}

TEST(what_it_says)
{
	for (size_t i = 0; i < sizeof(loading) / sizeof(loading[0]); i++) {
		struct slice text = guard_text(loading[i].base);
		struct buf out = BUF_EMPTY;
		struct oplog_base split;
		struct lease_base base;

		/* No reader accepts it as a complete set. */
		ck_assert_msg(!oplog_split(text, &split) && split.form == OPLOG_LOADING, "\"%s\"",
			loading[i].base);
		ck_assert_msg(lease_split(text, &base), "\"%s\"", loading[i].base);
		ck_assert(base.is_list == loading[i].is_list);
		assert_bytes(base.head, loading[i].head);
		assert_bytes(base.runs, loading[i].runs);
		assert_bytes(base.loaded, loading[i].loaded);
		assert_bytes(base.log, loading[i].log);
		assert_bytes(base.lease.token, "abcdefg0");
		ck_assert_uint_eq(base.lease.deadline, 1700000010);
		ck_assert_uint_eq(base.lease.seconds, 10);
		lease_write(&base, SLICE(""), &out);
		assert_bytes(buf_slice(&out), loading[i].base);
		buf_free(&out);
	}
}

static const struct {
	const char *base;
	enum oplog_form form;
} others[] = {
	{ "", OPLOG_GOOD },
	{ "+a ", OPLOG_GOOD },
	{ "@set.1 " T1, OPLOG_GOOD },
	{ "+@fill.abcdefg0.1.1 ", OPLOG_GOOD },
	{ "@set.1 " FILL, OPLOG_CORRUPT },
	{ "@list " FILL, OPLOG_CORRUPT },
	{ FILL, OPLOG_CORRUPT },
	{ "@set.4 " FILL, OPLOG_NEWER },
	{ "@list.4 " FILL, OPLOG_NEWER },
	{ "@set.2 ", OPLOG_CORRUPT },
	{ "@set.2 +a ", OPLOG_CORRUPT },
	{ "@set.2 " T1, OPLOG_CORRUPT },
	{ "@set.2 " FILL FILL, OPLOG_CORRUPT },
	{ "@set.2 " FILL "+a " T1, OPLOG_CORRUPT },
	{ "@set.2 " FILL L1, OPLOG_CORRUPT },
	{ "@set.2 @fill.abcdefg0.1.1", OPLOG_CORRUPT },
	{ "x @set.2 " FILL, OPLOG_CORRUPT },
	{ "@list.2 " FILL T1, OPLOG_CORRUPT },
	/* These differ only by the lease. */
	{ "@list.2 " L1 FILL, OPLOG_LOADING },
	{ "@set.2 @fill. ", OPLOG_LOADING },
	{ "@set.2 @fill.abcdefg.1.1 ", OPLOG_LOADING },
	{ "@set.2 @fill.abcdefg01.1.1 ", OPLOG_LOADING },
	{ "@set.2 @fill.abcdefG0.1.1 ", OPLOG_LOADING },
	{ "@set.2 @fill.abcdefg0.1 ", OPLOG_LOADING },
	{ "@set.2 @fill.abcdefg0..1 ", OPLOG_LOADING },
	{ "@set.2 @fill.abcdefg0.-1.1 ", OPLOG_LOADING },
	{ "@set.2 @fill.abcdefg0.1.0 ", OPLOG_LOADING },
	{ "@set.2 @fill.abcdefg0.1.3601 ", OPLOG_LOADING },
	{ "@set.2 @fill.abcdefg0.1.1.1 ", OPLOG_LOADING },
	{ "@set.2 @fill.abcdefg0.99999999999999999999.1 ", OPLOG_LOADING },
};

TEST(what_is_none)
{
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct slice text = guard_text(others[i].base);
		struct oplog_base split;
		struct lease_base base;

		(void)oplog_split(text, &split);
		ck_assert_msg(split.form == others[i].form, "\"%s\": %d", others[i].base,
			(int)split.form);
		ck_assert_msg(!lease_split(text, &base), "\"%s\"", others[i].base);
	}
}

TEST(tokens)
{
	uint64_t random = 5;
	char one[LEASE_TOKEN], other[LEASE_TOKEN];
	struct buf out = BUF_EMPTY;
	struct lease_base base = { .head = SLICE("") }, read;

	lease_new_token(&random, one);
	lease_new_token(&random, other);
	ck_assert(memcmp(one, other, LEASE_TOKEN) != 0);
	base.lease = (struct lease){ slice_of(one, LEASE_TOKEN), 7, LEASE_SECONDS_MAX };
	lease_write(&base, SLICE(""), &out);
	ck_assert(lease_split(buf_slice(&out), &read));
	ck_assert(slice_equal(read.lease.token, slice_of(one, LEASE_TOKEN)));
	buf_free(&out);
}

TEST(when_it_is_over)
{
	struct lease lease = { .deadline = 10000, .seconds = 10 };

	ck_assert(!lease_is_over(&lease, 9000));
	ck_assert(!lease_is_over(&lease, 10000));
	ck_assert(lease_is_over(&lease, 10001));
	/* No client requests a lease for that long: a clock was wrong. */
	ck_assert(!lease_is_over(&lease, 10000 - LEASE_SECONDS_MAX));
	ck_assert(lease_is_over(&lease, 9999 - LEASE_SECONDS_MAX));
	ck_assert(lease_is_over(&lease, -1));
	lease.deadline = UINT64_MAX;
	ck_assert(lease_is_over(&lease, INT64_MAX));
}

static const struct {
	const char *base, *more, *log, *complete;
} fills[] = {
	/* The words override the loaded members, and have their order. */
	{ "@set.2 " FILL, "", "", "" },
	{ "@set.2 " FILL "-a +c ", "", "+a +b ", "+a +b -a +c " },
	{ "@set.2 " FILL T1 "-a ", "", "", "@set.1 " T1 "-a " },
	{ "@set.2 " FILL T1 "-a ", I1, "", "@set.1 " T1 I1 "-a " },
	{ "@set.2 " FILL T1 "-a ", "", "+a ", "@set.1 " T1 "+a -a " },
	{ "@set.2 " T2 FILL "-a ", I1, "", "@set.1 " I1 T2 "-a " },
	{ "+x @set.2 " T2 FILL T1 "-a ", I1, "", "+x @set.1 " T1 I1 T2 "-a " },
	{ "+x @set.2 " FILL "-a ", "", "+a ", "+x +a -a " },
	{ "@list.2 " FILL, "", "", "@list " },
	{ "+x @list.2 " FILL "+z ", "", "+a +b ", "+x @list +a +b +z " },
	{ "+x @list.2 " FILL L1 "+z ", L2, "", "+x @list " L1 L2 "+z " },
	{ "@list.2 " FILL L1, "", "+a ", "@list " L1 "+a " },
};

TEST(completing)
{
	for (size_t i = 0; i < sizeof(fills) / sizeof(fills[0]); i++) {
		struct buf out = BUF_EMPTY;
		struct oplog_base split;
		struct lease_base base;

		ck_assert(lease_split(text_of(fills[i].base), &base));
		lease_complete(&base, text_of(fills[i].more), text_of(fills[i].log), &out);
		assert_bytes(buf_slice(&out), fills[i].complete);
		ck_assert(oplog_split(buf_slice(&out), &split));
		buf_free(&out);
	}
}

TEST(all_references)
{
	struct buf out = BUF_EMPTY;

	lease_add_refs(SLICE("+x @set.2 " T2 FILL T1 "-a "), &out);
	assert_bytes(buf_slice(&out), T2 T1);
	lease_add_refs(SLICE("@set.1 " I1 "-a "), &out);
	assert_bytes(buf_slice(&out), T2 T1 I1);
	lease_add_refs(SLICE("@list.2 " FILL L1), &out);
	assert_bytes(buf_slice(&out), T2 T1 I1 L1);
	lease_add_refs(SLICE("@set.4 " T1), &out);
	lease_add_refs(SLICE("@set.2 @fill. " T1), &out);
	lease_add_refs(SLICE("what"), &out);
	assert_bytes(buf_slice(&out), T2 T1 I1 L1);
	buf_free(&out);
}
