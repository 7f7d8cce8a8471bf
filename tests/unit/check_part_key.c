/* The keys of parts, and whose place they have. */
#include <stdio.h>

#include "collection/text/oplog.h"
#include "collection/text/part_key.h"
#include "guard.h"
#include "unit.h"

/* The keys of the second copy, of which the first has this key. The base is that of the first copy. */
static void check_second(struct slice key, struct slice base)
{
	struct buf text = BUF_EMPTY;
	struct slice second, place;
	unsigned behind, further;

	part_key_second(key, &text);
	second = guard_place(buf_slice(&text));
	ck_assert_uint_eq(second.n, key.n + PART_SECOND_SIZE);
	ck_assert(part_key_is_second(second) && !part_key_is_second(key));
	ck_assert(part_key_is_reserved(second));
	ck_assert(slice_equal(part_key_first_base(second), base));
	ck_assert(slice_equal(part_key_first_base(key), base));
	if (base.n < key.n) {
		ck_assert_uint_eq(part_key_base(second).n, base.n + PART_SECOND_SIZE);
		ck_assert(slice_equal(
			slice_skip(second, base.n + PART_SECOND_SIZE), slice_skip(key, base.n)));
	} else {
		ck_assert_uint_eq(part_key_base(second).n, 0);
	}
	place = part_key_place(key, &behind);
	ck_assert(slice_equal(part_key_place(second, &further), place));
	ck_assert_uint_eq(further, behind + 1);
	ck_assert_uint_lt(further, PART_ALL_PLACES);
	ck_assert(part_key_is_at_base(second) == part_key_is_at_base(key));
	buf_free(&text);
}

/* Whether <before><id><after> is the key of a part, and then of this base. It has the place of its base, other keys their own. */
static bool is_part(const char *before, const char *id, const char *after, const char *of)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "%s%.*s%s", before, OPLOG_ID, id, after);
	struct slice key = guard_place(slice_of(text, (size_t)n)), base = part_key_base(key), place;
	bool is = base.n > 0 && slice_equal(base, slice_of(of, strlen(of)));
	unsigned behind;

	ck_assert(is || base.n == 0);
	place = part_key_place(key, &behind);
	ck_assert(slice_equal(place, is ? base : key) && place.p == key.p);
	ck_assert_uint_eq(behind, is ? (unsigned)(id[1] - '0') : 0);
	ck_assert(part_key_is_at_base(key) == (is && behind == 0));
	ck_assert(part_key_is_reserved(key) == is);
	if (n)
		check_second(slice_of(text, (size_t)n), slice_of(text, is ? base.n : (size_t)n));
	return is;
}

static bool has_own_place(struct slice key)
{
	unsigned behind;

	return slice_equal(part_key_place(key, &behind), key) && behind == 0 &&
		!part_key_is_at_base(key);
}

TEST(parts)
{
	static const enum oplog_kind kinds[] = { OPLOG_TABLE, OPLOG_INDEX };
	uint64_t random = 1;
	char id[OPLOG_ID];

	for (size_t i = 0; i < 1000; i++) {
		oplog_new_id(kinds[i % 2], i % PART_PLACES, &random, id);
		ck_assert(is_part("k.", id, "", "k") && is_part("a.b..", id, "", "a.b."));
		ck_assert(!is_part("", id, "", "") && !is_part(".", id, "", "") &&
			!is_part("k:", id, "", ""));
		ck_assert(!is_part("k.", id, "x", "") && !is_part("k.x", id, "", "") &&
			!is_part("k.", id, ".1", "") && !is_part("k.", id, ".1.2", ""));
		oplog_new_id(OPLOG_LIST, i % PART_PLACES, &random, id);
		ck_assert(is_part("k.", id, ".1.2", "k") &&
			is_part("1.2.", id, ".4294967295.0", "1.2"));
		ck_assert(!is_part("k.", id, "", "") && !is_part("k.", id, ".1", "") &&
			!is_part("k.", id, ".1.", "") && !is_part("k.", id, "..1", "") &&
			!is_part(".", id, ".1.2", ""));
	}
}

/* New parts are on the server of their base, or on this number of servers in equal numbers. */
TEST(places)
{
	uint64_t random = 1;
	char id[OPLOG_ID];

	for (unsigned most = 0; most < PART_PLACES; most++) {
		unsigned found[PART_PLACES] = { 0 };
		for (int i = 0; i < 1000; i++) {
			oplog_new_id(OPLOG_TABLE, most, &random, id);
			found[id[1] - '0']++;
		}
		for (unsigned i = 0; i < PART_PLACES; i++)
			ck_assert(i > most ? found[i] == 0 : found[i] > 700 / (most + 1));
	}
}

/* Segments of 0.1.0 are read where 0.1.0 wrote them. */
TEST(old_segments)
{
	static const char *const keys[] = { "k.labcdefghijk.3.64", "k.l4k0zq81mfwx.3.64",
		"k.l0k0zq81mfwx.3.64" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct slice key = guard_text(keys[i]);
		assert_bytes(part_key_base(key), "k");
		ck_assert(has_own_place(key));
	}
}

/* Typical keys of applications. */
TEST(others)
{
	static const char *const keys[] = { "", ".", "k", "app.transactions", "app.introduction",
		"app.transaction1", "user.t20251123101", "user.i12345678901", "user.item12345678",
		"v1.2.3", "10.0.0.1", "a.list.1.2", "k.T1abcdefghij", "k.t1abcdefghi",
		"k.t1abcdefghi-", "user.lastlogin01.1.2x", "app.statistics01.1.2",
		"app.settlements.1.2" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct slice key = guard_text(keys[i]);
		ck_assert_msg(part_key_base(key).n == 0 && has_own_place(key), "%s", keys[i]);
		ck_assert_msg(!part_key_is_reserved(key), "%s", keys[i]);
	}
}

TEST(second_copies)
{
	struct buf text = BUF_EMPTY;
	unsigned behind;

	part_key_second(SLICE("k"), &text);
	assert_bytes(buf_slice(&text), "k.~copy");
	buf_free(&text);
	part_key_second(SLICE("k.t3k0zq81mfwx"), &text);
	assert_bytes(buf_slice(&text), "k.~copy.t3k0zq81mfwx");
	assert_bytes(part_key_base(buf_slice(&text)), "k.~copy");
	assert_bytes(part_key_place(buf_slice(&text), &behind), "k");
	ck_assert_uint_eq(behind, 4);
	buf_free(&text);
	check_second(SLICE("e::2015022016"), SLICE("e::2015022016"));
	check_second(SLICE("e::2015022016::7"), SLICE("e::2015022016::7"));
}

/* What looks similar is an ordinary key. */
TEST(no_second_copies)
{
	static const char *const keys[] = { ".~copy", "~copy", "k.~cop", "k~copy", "k:~copy",
		"k.~copy.", "k.~copy.x", "k.~copyx", "k.~Copy", "k.~copy.t1abcdefghi",
		"k.~copy.~cop" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct slice key = guard_text(keys[i]);
		ck_assert_msg(
			!part_key_is_second(key) && !part_key_is_reserved(key), "%s", keys[i]);
		ck_assert_msg(has_own_place(key), "%s", keys[i]);
		assert_bytes(part_key_first_base(key), keys[i]);
	}
}

/* Segments of 0.1.0 lie where their own keys do, under any name. No client may write one. */
TEST(old_segments_of_second_copies)
{
	struct slice key = guard_text("k.~copy.labcdefghijk.3.64");

	ck_assert(has_own_place(key) && part_key_is_reserved(key) && part_key_is_second(key));
	assert_bytes(part_key_first_base(key), "k");
}
