#include "unit.h"
#include "util/num.h"

TEST(u64)
{
	uint64_t v = 7;

	ck_assert(num_parse_u64(guard_text("0"), &v) && v == 0);
	ck_assert(num_parse_u64(guard_text("007"), &v) && v == 7);
	ck_assert(num_parse_u64(guard_text("18446744073709551615"), &v) && v == UINT64_MAX);
	ck_assert(num_parse_u64(guard_text("00000000000000000000000000018446744073709551615"), &v));
	v = 7;
	const char *bad[] = { "", "18446744073709551616", "18446744073709551620",
		"28446744073709551615", "99999999999999999999", "1a", "a", "-1", "+1", " 1", "1 ",
		"0x10", "1.0", "/", ":" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(!num_parse_u64(guard_text(bad[i]), &v), "\"%s\"", bad[i]);
	ck_assert_uint_eq(v, 7);
}

TEST(u32)
{
	uint32_t v = 7;

	ck_assert(num_parse_u32(guard_text("4294967295"), &v) && v == UINT32_MAX);
	ck_assert(!num_parse_u32(guard_text("4294967296"), &v));
	ck_assert(!num_parse_u32(guard_text("-1"), &v));
	ck_assert(!num_parse_u32(guard_text(""), &v));
}

TEST(i64)
{
	int64_t v = 7;

	ck_assert(num_parse_i64(guard_text("-9223372036854775808"), &v) && v == INT64_MIN);
	ck_assert(num_parse_i64(guard_text("9223372036854775807"), &v) && v == INT64_MAX);
	ck_assert(num_parse_i64(guard_text("0"), &v) && v == 0);
	ck_assert(!num_parse_i64(guard_text("-0"), &v));
	ck_assert(!num_parse_i64(guard_text("-00"), &v));
	ck_assert(!num_parse_i64(guard_text("+1"), &v));
	ck_assert(!num_parse_i64(guard_text("9223372036854775808"), &v));
	ck_assert(!num_parse_i64(guard_text("-9223372036854775809"), &v));
	ck_assert(!num_parse_i64(guard_text("-18446744073709551615"), &v));
	ck_assert(!num_parse_i64(guard_text("-"), &v));
	ck_assert(!num_parse_i64(guard_text("--1"), &v));
	ck_assert(!num_parse_i64(guard_text(""), &v));
}

TEST(exptime)
{
	int64_t v = 7;

	ck_assert(num_parse_exptime(guard_text("-2147483648"), &v) && v == INT32_MIN);
	ck_assert(num_parse_exptime(guard_text("2147483647"), &v) && v == INT32_MAX);
	ck_assert(num_parse_exptime(guard_text("2147483648"), &v) && v == INT32_MIN);
	ck_assert(num_parse_exptime(guard_text("4294967295"), &v) && v == -1);
	ck_assert(!num_parse_exptime(guard_text("4294967296"), &v));
	ck_assert(!num_parse_exptime(guard_text("-0"), &v));
	ck_assert(!num_parse_exptime(guard_text("-2147483649"), &v));
	ck_assert(!num_parse_exptime(guard_text(""), &v));
}

TEST(take)
{
	struct slice s = guard_text("12 345");
	uint64_t v = 7;

	ck_assert(num_take_u64(&s, &v) && v == 12 && s.n == 4);
	ck_assert(!num_take_u64(&s, &v) && s.n == 4);
	s = guard_text("");
	ck_assert(!num_take_u64(&s, &v));
	s = guard_text("18446744073709551616");
	ck_assert(num_take_u64(&s, &v) && v == UINT64_C(1844674407370955161) && s.n == 1);
}

TEST(format)
{
	char out[NUM_U64_MAX + 1] = { 0 };
	uint64_t v, back;

	ck_assert_uint_eq(num_format_u64(out, 0), 1);
	ck_assert_int_eq(out[0], '0');
	ck_assert_uint_eq(num_format_u64(out, UINT64_MAX), NUM_U64_MAX);
	ck_assert_str_eq(out, "18446744073709551615");
	for (v = 1; v < UINT64_MAX / 7; v *= 7) {
		size_t n = num_format_u64(out, v);
		ck_assert(num_parse_u64(slice_of(out, n), &back));
		ck_assert_uint_eq(back, v);
	}
}
