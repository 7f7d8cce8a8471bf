/* hash_slice is SipHash-1-3. Without the seed it is not possible to construct collisions. */
#include "unit.h"
#include "util/hash.h"

/* The values of CPython's hash() with the key of zeroes, which PYTHONHASHSEED=0 selects. */
TEST(is_siphash)
{
	static const struct {
		const char *text;
		uint64_t hash;
	} known[] = {
		{ "a", 0x407448d2b89b1813 },
		{ "ab", 0x555508cbc6add439 },
		{ "abc", 0xc03bc3a0042630f2 },
		{ "abcde", 0x251f3c725bd784a2 },
		{ "abcdefg", 0x6db12aae9070f506 },
		{ "member", 0x6a0d13241802fe80 },
		{ "user-001", 0xe064168d82a68a6a },
		{ "user-0000001", 0xf75fdc7c4823c763 },
		{ "0123456789abcdef0", 0xf738bb4f30801228 },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		ck_assert_uint_eq(hash_sip(slice_of(known[i].text, strlen(known[i].text)), 0, 0),
			known[i].hash);
}

/* Every length is read to its end and no further, and every byte counts. */
static void sees_every_byte(uint64_t (*hash)(struct slice s, uint64_t seed))
{
	const uint64_t seed = 0x0123456789abcdef;
	char bytes[64];

	for (size_t n = 0; n <= sizeof(bytes); n++) {
		memset(bytes, 'x', n);
		uint64_t h = hash(guard_place(slice_of(bytes, n)), seed);
		ck_assert_uint_eq(h, hash(slice_of(bytes, n), seed));
		ck_assert_uint_ne(h, hash(slice_of(bytes, n), ~seed));
		for (size_t i = 0; i < n; i++) {
			bytes[i] = 'y';
			ck_assert_uint_ne(h, hash(slice_of(bytes, n), seed));
			bytes[i] = 'x';
		}
	}
}

static uint64_t member_hash(struct slice s, uint64_t seed)
{
	const struct hash_secret secret = hash_secret_of(seed);

	return hash_member(s, &secret);
}

TEST(every_byte)
{
	sees_every_byte(member_hash);
	sees_every_byte(hash_key);
	sees_every_byte(hash_slice);
}

/* Members that differ in little do not crowd into a few slots. */
static void spreads(uint64_t (*hash)(struct slice s, uint64_t seed), const char *before, int digits,
	const char *behind)
{
	enum { SLOTS = 1024, MEMBERS = 16 * SLOTS };
	int low[SLOTS] = { 0 }, high[SLOTS] = { 0 };
	char name[32];

	for (int i = 0; i < MEMBERS; i++) {
		int n = snprintf(name, sizeof(name), "%s%0*d%s", before, digits, i, behind);
		uint64_t h = hash(slice_of(name, (size_t)n), 7);
		low[h % SLOTS]++;
		high[h >> 32 & (SLOTS - 1)]++;
	}
	for (int i = 0; i < SLOTS; i++) {
		ck_assert_int_le(low[i], 48);
		ck_assert_int_le(high[i], 48);
	}
}

TEST(hash_spreads)
{
	spreads(hash_slice, "user:", 1, "");
	spreads(member_hash, "user:", 1, "");
	spreads(member_hash, "", 1, "");
	spreads(member_hash, "", 6, ":a");
	spreads(member_hash, "user:", 8, ":a");
	spreads(member_hash, "a longer name:", 1, "");
}

/* A factor of zero would hide the other one. The constants are known, so only the seed may decide when a factor is zero. */
TEST(constants_make_no_collision)
{
	static const uint64_t constants[] = { 0, 0x9e3779b97f4a7c15u, 0xd6e8feb86659fd93u,
		0x243f6a8885a308d3u };
	uint64_t seen = 0, seen_member = 0;

	for (size_t c = 0; c < sizeof(constants) / sizeof(constants[0]); c++) {
		for (uint64_t i = 0; i < 1000; i++) {
			char member[16];
			memcpy(member, &constants[c], 8);
			memcpy(member + 8, &i, 8);
			uint64_t key = hash_key(slice_of(member, 16), 42),
				 sip = hash_slice(slice_of(member, 16), 42);
			uint64_t hash = member_hash(slice_of(member, 16), 42);
			ck_assert_uint_ne(hash, seen_member);
			seen_member = hash;
			ck_assert_uint_ne(key, seen);
			ck_assert_uint_ne(sip, seen);
			seen = key;
		}
	}
}

/* Words that overlap are the same for some strings of different lengths. */
TEST(lengths_differ)
{
	char bytes[16];
	uint64_t seen[17];

	memset(bytes, 'x', sizeof(bytes));
	for (size_t n = 0; n <= sizeof(bytes); n++) {
		seen[n] = member_hash(slice_of(bytes, n), 3);
		for (size_t i = 0; i < n; i++)
			ck_assert_uint_ne(seen[i], seen[n]);
	}
	memset(bytes, 0, sizeof(bytes));
	for (size_t n = 0; n <= sizeof(bytes); n++) {
		seen[n] = member_hash(slice_of(bytes, n), 3);
		for (size_t i = 0; i < n; i++)
			ck_assert_uint_ne(seen[i], seen[n]);
	}
}
