#include "unit.h"
#include "util/buf.h"

static struct buf b;

static void teardown(void)
{
	buf_free(&b);
}

TEST(empty_owns_nothing)
{
	ck_assert_uint_eq(buf_size(&b), 0);
	assert_bytes(buf_slice(&b), "");
	buf_consume(&b, 0);
	buf_add(&b, "x", 0);
	ck_assert_ptr_null(b.data);
}

TEST(adds_in_order)
{
	BUF_ADD(&b, "one ");
	buf_add_slice(&b, SLICE("two "));
	buf_add_u64(&b, UINT64_MAX);
	BUF_ADD(&b, " ");
	buf_add_i64(&b, INT64_MIN);
	BUF_ADD(&b, " ");
	buf_add_i64(&b, INT64_MAX);
	BUF_ADD(&b, " ");
	buf_add_u64(&b, 0);
	buf_printf(&b, " %s=%d", "n", -7);
	assert_bytes(buf_slice(&b),
		"one two 18446744073709551615 -9223372036854775808 9223372036854775807 0 n=-7");
	buf_free(&b);
	ck_assert_ptr_null(b.data);
}

TEST(consume_drops_the_front)
{
	BUF_ADD(&b, "abcdef");
	buf_consume(&b, 2);
	assert_bytes(buf_slice(&b), "cdef");
	buf_consume(&b, 4);
	ck_assert_uint_eq(buf_size(&b), 0);
	ck_assert_uint_eq(b.start, 0);
	BUF_ADD(&b, "gh");
	assert_bytes(buf_slice(&b), "gh");
}

TEST(reserve_and_commit)
{
	char *p;

	/* Nothing of an empty one. */
	ck_assert_ptr_nonnull(buf_reserve(&b, 0));
	p = buf_reserve(&b, 10000);
	memset(p, 'x', 10000);
	buf_commit(&b, 3);
	assert_bytes(buf_slice(&b), "xxx");
	ck_assert_ptr_nonnull(buf_reserve(&b, 0));
}

/* The buffer with more of the text than bytes after it, or of any other text. */
TEST(takes_most)
{
	struct buf taken;
	char other[] = "abcdef";
	struct slice in;

	buf_add(&b, "xabcdef", 7);
	buf_consume(&b, 1);
	in = buf_slice(&b);
	ck_assert(buf_is_mostly(&b, in));
	ck_assert(buf_is_mostly(&b, slice_of(in.p + 1, 3)));
	ck_assert(!buf_is_mostly(&b, slice_of(in.p, 3)));
	ck_assert(!buf_is_mostly(&b, slice_of(in.p, 0)));
	ck_assert(!buf_is_mostly(&b, slice_of(in.p + 6, 0)));
	ck_assert(!buf_is_mostly(&b, slice_of(other, 6)));
	taken = buf_take(&b);
	ck_assert_ptr_eq(buf_slice(&taken).p, in.p);
	ck_assert_uint_eq(b.cap, 0);
	ck_assert(!buf_is_mostly(&b, in));
	buf_free(&taken);
}

/* A stream of numbered bytes passes through in pieces of all sizes, unchanged. */
LOOP_TEST(many_sizes, 10)
{
	uint64_t state = (uint64_t)_i + 1;
	uint8_t in = 0, out = 0;

	for (int round = 0; round < 2000; round++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		size_t add = state >> 33 & 1023, take = state >> 45 & 2047;
		char *p = buf_reserve(&b, add);
		for (size_t i = 0; i < add; i++)
			p[i] = (char)in++;
		buf_commit(&b, add);
		take = take < buf_size(&b) ? take : buf_size(&b);
		bool same = true;
		for (size_t i = 0; i < take; i++)
			same &= (uint8_t)buf_slice(&b).p[i] == out++;
		ck_assert(same);
		buf_consume(&b, take);
	}
	ck_assert_uint_le(b.cap, 1 << 17);
}

FIXTURE(NULL, teardown)
