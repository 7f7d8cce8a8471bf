/*
 * Packed tables: that every table unpacks to the bytes that were packed, how small the common
 * kinds of members become, and that invalid tables are rejected.
 */
#include "collection/text/packed.h"

#include <inttypes.h>

#include "table_model.h"
#include "unit.h"
#include "util/random.h"

enum { NAME = 160, MANY = 1000 };

static struct buf written, packed, text;
static struct table_writer writer;
static struct table table, unpacked;

/* Dates of members: the first one, and how many there are; none if `count` is 0. */
static struct {
	uint32_t first;
	uint64_t count;
} dates;

static void teardown(void)
{
	dates.count = 0;
	buf_free(&written);
	buf_free(&packed);
	buf_free(&text);
	table_writer_free(&writer);
}

static void empty(struct buf *b)
{
	buf_consume(b, buf_size(b));
}

/* Packs what was added to the writer. Returns false if it is not worth it. */
static bool pack(void)
{
	bool good;

	empty(&written);
	empty(&packed);
	table_writer_finish(&writer, &written);
	ck_assert(table_trust(&table, buf_slice(&written)));
	BUF_ADD(&packed, "before");
	good = packed_write(&packed, &table);
	ck_assert(good || buf_size(&packed) == 6);
	buf_consume(&packed, 6);
	return good;
}

/* Returns whether the packed table unpacks to what was written, from bytes that nothing follows. */
static bool unpacks(void)
{
	return packed_open(&unpacked, guard_place(buf_slice(&packed)), &text) &&
		slice_equal(buf_slice(&text), buf_slice(&written)) &&
		unpacked.count == table.count && unpacked.entries_end == table.entries_end &&
		(unpacked.dates != NULL) == (table.dates != NULL);
}

/* --- kinds of members --- */

struct kind {
	const char *name, *letters;
	unsigned shortest, longest; /* random bytes; 0 for a number */
	uint64_t first, step;       /* of numbers; a random step up to this one */
	const char *before, *after; /* of numbers */
	int digits;
	double bytes; /* a member of a table of MANY has no more; 0: not packed */
};

#define DIGITS "0123456789"
#define SMALL "abcdefghijklmnopqrstuvwxyz"
#define BIG "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define HIGH "\x80\x90\xa0\xb0\xc0\xd0\xe0\xf0\xff"

static const struct kind kinds[] = {
	{ "24 hex", DIGITS "abcdef", 24, 24, 0, 0, NULL, NULL, 0, 11.2 },
	{ "32 hex", DIGITS "abcdef", 32, 32, 0, 0, NULL, NULL, 0, 15.2 },
	{ "16 hex", DIGITS "abcdef", 16, 16, 0, 0, NULL, NULL, 0, 7.2 },
	{ "10 letters", SMALL, 10, 10, 0, 0, NULL, NULL, 0, 5 },
	{ "22 of base64", "-" DIGITS BIG "_" SMALL, 22, 22, 0, 0, NULL, NULL, 0, 15.8 },
	{ "70 bits", "01", 70, 70, 0, 0, NULL, NULL, 0, 8 },
	{ "62 bits", "01", 62, 62, 0, 0, NULL, NULL, 0, 7 },
	{ "63 bits", "01", 63, 63, 0, 0, NULL, NULL, 0, 7.2 },
	{ "up to 128 bits", "01", 1, 128, 0, 0, NULL, NULL, 0, 14.6 },
	{ "a few letters", SMALL, 1, 8, 0, 0, NULL, NULL, 0, 6 },
	{ "high bytes", HIGH, 8, 8, 0, 0, NULL, NULL, 0, 3 },
	{ "ids in sequence", NULL, 0, 0, 1000000, 1, "", "", 0, 0.2 },
	{ "ids from one on", NULL, 0, 0, 1, 1, "", "", 0, 0.3 },
	{ "ids around a power of ten", NULL, 0, 0, 99990, 1, "", "", 0, 0.5 },
	{ "sparse ids", NULL, 0, 0, 10000000, 100, "", "", 0, 1.1 },
	{ "large ids", NULL, 0, 0, 1, UINT64_MAX / 2000, "", "", 20, 7 },
	{ "users", NULL, 0, 0, 1, 1, "user-", "", 7, 0.3 },
	{ "pages", NULL, 0, 0, 1, 1000, "page:/2026/11/", "/view", 8, 2 },
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static char names[MANY + 1][NAME];

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void draw_name(const struct kind *kind, uint64_t *number, uint64_t *random, char *name)
{
	size_t letters = kind->letters ? strlen(kind->letters) : 0,
	       size = kind->letters
		? kind->shortest + random_next(random) % (kind->longest - kind->shortest + 1)
		: 0;

	*number += 1 + random_next(random) % (kind->step ? kind->step : 1);
	if (!kind->letters)
		snprintf(name, NAME, "%s%0*" PRIu64 "%s", kind->before, kind->digits,
			kind->first + *number - 1, kind->after);
	for (size_t i = 0; i < size; i++)
		name[i] = kind->letters[random_next(random) % letters];
	if (kind->letters)
		name[size] = '\0';
}

/* Gives the entry that was added last a date, or none. */
static void add_date(bool removed, uint64_t *random)
{
	if (dates.count && !removed && random_next(random) % 4)
		table_writer_date(
			&writer, (uint32_t)(dates.first + random_next(random) % dates.count));
}

/* Adds members of a kind to the writer; of each four removals, 0 to 4 are. */
static size_t add(const struct kind *kind, size_t count, unsigned removals, uint64_t *random)
{
	uint64_t number = 0;
	size_t added = 0;

	for (size_t i = 0; i < count; i++)
		draw_name(kind, &number, random, names[i]);
	qsort(names, count, NAME, by_name);
	for (size_t i = 0; i < count; i++) {
		if (i && strcmp(names[i], names[i - 1]) == 0)
			continue;
		bool removed = random_next(random) % 4 < removals;
		table_writer_add(&writer, slice_of(names[i], strlen(names[i])), removed);
		add_date(removed, random);
		added++;
	}
	return added;
}

LOOP_TEST(any_count, KINDS)
{
	static const size_t counts[] = { 1, 2, 3, 15, 16, 17, 31, 32, 33, 127, 128, 500, MANY };
	const struct kind *kind = &kinds[_i];
	size_t times = 0;

	for (uint64_t seed = 1; seed <= 8; seed++) {
		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
			uint64_t random = seed * 100 + i;
			add(kind, counts[i], (unsigned)(seed % 5), &random);
			if (!pack())
				continue;
			ck_assert_msg(
				unpacks(), "%s, %zu, seed %d", kind->name, counts[i], (int)seed);
			ck_assert_uint_le(
				buf_size(&packed), buf_size(&written) - buf_size(&written) / 10);
			times++;
		}
	}
	ck_assert_uint_ge(times, 8);
}

/* As many dates as have a number of each size, up to the last second there is. */
LOOP_TEST(any_dates, 33)
{
	uint64_t random = (uint64_t)_i + 1, most = UINT64_C(1) << _i;
	size_t times = 0, kind = (size_t)_i % KINDS;

	dates.count = most > UINT32_MAX ? UINT32_MAX : most;
	for (int i = 0; i < 6; i++) {
		dates.first = i % 2 || dates.count == UINT32_MAX
			? (uint32_t)(UINT32_MAX - dates.count + 1)
			: 1 + (uint32_t)(random_next(&random) % (UINT32_MAX - dates.count));
		add(&kinds[(kind + (size_t)i) % KINDS], 300, (unsigned)i % 4, &random);
		if (!pack())
			continue;
		ck_assert_msg(unpacks(), "%d, %d", _i, i);
		times++;
	}
	ck_assert_uint_ge(times, _i < 24 ? 5 : 1);
}

/* The bytes of a member's date, for dates within an hour: 12 bits. */
TEST(bytes_of_dates)
{
	size_t sizes[2];

	for (int dated = 0; dated < 2; dated++) {
		uint64_t random = 1;
		for (unsigned i = 0; i < MANY; i++) {
			int size = snprintf(names[0], NAME, "%u", 1000000 + i);
			table_writer_add(&writer, slice_of(names[0], (size_t)size), false);
			if (dated)
				table_writer_date(&writer,
					1424450096 + (uint32_t)(random_next(&random) % 3600));
		}
		ck_assert(pack() && unpacks());
		sizes[dated] = buf_size(&packed);
	}
	ck_assert_uint_ge(sizes[1] - sizes[0], MANY * 3 / 2);
	ck_assert_uint_le(sizes[1] - sizes[0], MANY * 3 / 2 + 8);
}

LOOP_TEST(bytes_of_a_member, KINDS)
{
	uint64_t random = 1;
	size_t count = add(&kinds[_i], MANY, 0, &random);

	ck_assert_msg(pack(), "%s", kinds[_i].name);
	ck_assert_msg((double)buf_size(&packed) / (double)count <= kinds[_i].bytes, "%s: %f",
		kinds[_i].name, (double)buf_size(&packed) / (double)count);
}

TEST(a_hundred_thousand_entries)
{
	char name[NAME];

	for (unsigned i = 0; i < 100000; i++) {
		int size = snprintf(name, sizeof(name), "%u", 1000000 + i * 3);
		table_writer_add(&writer, slice_of(name, (size_t)size), i % 7 == 0);
	}
	ck_assert(pack() && buf_size(&packed) < 60000);
	ck_assert(unpacks());
}

TEST(too_large)
{
	char name[NAME];

	for (unsigned i = 0; table_writer_size(&writer) <= PACKED_TABLE_MAX; i++) {
		int size = snprintf(name, sizeof(name), "%0100u", i);
		table_writer_add(&writer, slice_of(name, (size_t)size), false);
	}
	ck_assert(!pack());
}

/* Tables with the longest members, with escapes, and of any other kind. */
TEST(as_written)
{
	static struct table_model model;
	size_t times = 0;

	for (uint64_t seed = 1; seed <= 2000; seed++) {
		uint64_t random = seed;
		table_model_random(&model, &random);
		table_model_random_dates(&model, &random);
		table_model_write(&model, 0, model.count, &writer);
		if (writer.count == 0 || !pack())
			table_writer_free(&writer);
		else if (times++, !unpacks())
			ck_abort_msg("seed %d", (int)seed);
	}
	ck_assert_uint_ge(times, 100);
}

/* Adds a hundred members that differ only in two digits before `after`. */
static void add_hundred(const char *before, size_t padding, struct slice after)
{
	char name[MEMBER_WORD_MAX];
	size_t size = strlen(before);

	memcpy(name, before, size);
	memset(name + size, 'x', padding);
	size += padding;
	for (int i = 0; i < 100; i++) {
		name[size] = (char)('0' + i / 10);
		name[size + 1] = (char)('0' + i % 10);
		memcpy(name + size + 2, after.p, after.n);
		table_writer_add(&writer, slice_of(name, size + 2 + after.n), false);
	}
}

TEST(limits)
{
	add_hundred("", PACKED_MEMBER_MAX - 2, SLICE(""));
	ck_assert(pack() && unpacks());
	add_hundred("", PACKED_MEMBER_MAX - 1, SLICE(""));
	ck_assert(!pack());
	add_hundred("", MEMBER_MAX - 2, SLICE(""));
	ck_assert(!pack());
	add_hundred("a", 0, SLICE("\x7f!"));
	ck_assert(pack() && unpacks());
	add_hundred("a", 0, SLICE("\x01\x42"));
	ck_assert(!pack());
	add_hundred("\x01\x22", 0, SLICE(""));
	ck_assert(!pack());
}

/* All members with two of the letters from '!' on. */
static void add_pairs(unsigned letters)
{
	for (unsigned i = 0; i < letters * letters; i++) {
		char name[2] = { (char)('!' + i / letters), (char)('!' + i % letters) };
		table_writer_add(&writer, slice_of(name, 2), false);
	}
}

TEST(letters)
{
	add_pairs(128);
	ck_assert(pack() && unpacks());
	add_pairs(129);
	ck_assert(!pack());
}

TEST(not_worth_it)
{
	table_writer_add(&writer, SLICE("apple"), false);
	table_writer_add(&writer, SLICE("pear tree"), true);
	table_writer_add(&writer, SLICE("quince"), false);
	ck_assert(!pack());
}

/* --- the bytes --- */

/*
 * The table of 10 to 19, 8 and 9, in this order; 8 is removed. The first digit is 1, 8 or 9, the
 * second one the end or any of ten, so that 33 numbers are possible: 10 is 1, 8 is 11, 9 is 22.
 */
#define LETTERS \
	"\x0a" \
	"0123456789"
/* The fields before the letters. */
#define FIELDS(flags, rate, count, size, shortest, longest) \
	"T2" flags rate count size shortest longest
#define TWELVE_HEAD FIELDS("\1", "\0", "\x0c", "\x2f", "\1", "\2") LETTERS

/* The bits 0100000011 1111111111, 0 100, nine times 0 0, 1 0, 0 1110110, the lowest first. */
#define TWELVE_BITS "\x02\xff\x2f\x00\x00\xe4\x06"

static void add_twelve(void)
{
	for (char digit = '0'; digit <= '9'; digit++)
		table_writer_add(&writer, slice_of((char[]){ '1', digit }, 2), false);
	table_writer_add(&writer, SLICE("8"), true);
	table_writer_add(&writer, SLICE("9"), false);
}

TEST(twelve)
{
	add_twelve();
	ck_assert(pack());
	ck_assert_uint_eq(buf_size(&written), 0x2f);
	ck_assert(slice_equal(buf_slice(&packed), SLICE(TWELVE_HEAD TWELVE_BITS)));
	ck_assert(unpacks());
}

/*
 * The same with dates: that of 10 is 1000, of 19 it is 1003, of 9 it is 1000. The others have none.
 * The bits of a date are three, before those of its gap.
 */
#define DATED_HEAD(size) FIELDS("\3", "\0", "\x0c", size, "\1", "\2") LETTERS
#define DATED_BITS "\x02\xff\x2f\x01\x00\x00\x00\x00\x40\x41\x6e"

TEST(twelve_with_dates)
{
	for (char digit = '0'; digit <= '9'; digit++) {
		table_writer_add(&writer, slice_of((char[]){ '1', digit }, 2), false);
		table_writer_date(&writer, digit == '0' ? 1000 : digit == '9' ? 1003 : EXPIRY_NONE);
	}
	table_writer_add(&writer, SLICE("8"), true);
	table_writer_add(&writer, SLICE("9"), false);
	table_writer_date(&writer, 1000);
	ck_assert(pack());
	ck_assert_uint_eq(buf_size(&written), 0x5f);
	ck_assert(
		slice_equal(buf_slice(&packed), SLICE(DATED_HEAD("\x5f") "\xe8\x07\3" DATED_BITS)));
	ck_assert(unpacks());
	ck_assert_uint_eq(table_date(&unpacked, 0), 1000);
	ck_assert_uint_eq(table_date(&unpacked, 9), 1003);
	ck_assert_uint_eq(table_date(&unpacked, 10), EXPIRY_NONE);
	/* The last of the dates is the last second there is; and so it is with 32 bits a date. */
	ck_assert(packed_open(&unpacked,
		guard_place(SLICE(DATED_HEAD("\x5f") "\xfc\xff\xff\xff\x0f\3" DATED_BITS)), &text));
	ck_assert_uint_eq(table_date(&unpacked, 9), UINT32_MAX);
	ck_assert(packed_open(&unpacked,
		guard_place(
			SLICE(DATED_HEAD("\x5f") "\1\x20"
						 "\x02\xff\x2f\0\0\0\x20\0\0\0\0\0\0\0\0\0\0\0\0\0"
						 "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
						 "\0\xfe\xff\xff\xff\x05\0\0\0\0\0\0\0\xe0\x06")),
		&text));
	ck_assert(table_date(&unpacked, 0) == 1 && table_date(&unpacked, 9) == UINT32_MAX);
}

static const struct {
	const char *name;
	struct slice bytes;
} flawed[] = {
	{ "nothing", BYTES("") },
	{ "only the version", BYTES("T2") },
	{ "a newer version",
		BYTES("T3"
		      "\1"
		      "\0"
		      "\x0c"
		      "\x2f"
		      "\1"
		      "\2" LETTERS TWELVE_BITS) },
	{ "dates", BYTES(FIELDS("\2", "\0", "\x0c", "\x2f", "\1", "\2") LETTERS TWELVE_BITS) },
	{ "dates and removals",
		BYTES(FIELDS("\3", "\0", "\x0c", "\x2f", "\1", "\2") LETTERS TWELVE_BITS) },
	{ "another flag",
		BYTES(FIELDS("\x81", "\0", "\x0c", "\x2f", "\1", "\2") LETTERS TWELVE_BITS) },
	{ "no removals",
		BYTES(FIELDS("\0", "\0", "\x0c", "\x2f", "\1", "\2") LETTERS TWELVE_BITS) },
	{ "another rate",
		BYTES(FIELDS("\1", "\1", "\x0c", "\x2f", "\1", "\2") LETTERS TWELVE_BITS) },
	{ "the largest rate",
		BYTES(FIELDS("\1", "\x3d", "\x0c", "\x2f", "\1", "\2") LETTERS TWELVE_BITS) },
	{ "too large a rate",
		BYTES(FIELDS("\1", "\x3e", "\x0c", "\x2f", "\1", "\2") LETTERS TWELVE_BITS) },
	{ "a rate of 64",
		BYTES(FIELDS("\1", "\x40", "\x0c", "\x2f", "\1", "\2") LETTERS TWELVE_BITS) },
	{ "a rate of 255",
		BYTES(FIELDS("\1", "\xff", "\x0c", "\x2f", "\1", "\2") LETTERS TWELVE_BITS) },
	{ "no entries", BYTES(FIELDS("\1", "\0", "\0", "\x2f", "\1", "\2") LETTERS TWELVE_BITS) },
	{ "one entry less",
		BYTES(FIELDS("\1", "\0", "\x0b", "\x2f", "\1", "\2") LETTERS TWELVE_BITS) },
	{ "one entry more",
		BYTES(FIELDS("\1", "\0", "\x0d", "\x2f", "\1", "\2") LETTERS TWELVE_BITS) },
	{ "2^32 - 1 entries",
		BYTES(FIELDS("\1", "\0", "\xff\xff\xff\xff\x0f", "\x2f", "\1", "\2")
				LETTERS TWELVE_BITS) },
	{ "2^32 entries",
		BYTES(FIELDS("\1", "\0", "\x80\x80\x80\x80\x10", "\x2f", "\1", "\2")
				LETTERS TWELVE_BITS) },
	{ "a smaller table",
		BYTES(FIELDS("\1", "\0", "\x0c", "\x2e", "\1", "\2") LETTERS TWELVE_BITS) },
	{ "a larger table",
		BYTES(FIELDS("\1", "\0", "\x0c", "\x30", "\1", "\2") LETTERS TWELVE_BITS) },
	{ "a table of 9 bytes",
		BYTES(FIELDS("\1", "\0", "\x0c", "\x9", "\1", "\2") LETTERS TWELVE_BITS) },
	{ "a table of 10 bytes",
		BYTES(FIELDS("\1", "\0", "\x0c", "\xa", "\1", "\2") LETTERS TWELVE_BITS) },
	{ "a table of 4 MB",
		BYTES(FIELDS("\1", "\0", "\x0c", "\x81\x80\x80\2", "\1", "\2")
				LETTERS TWELVE_BITS) },
	{ "an empty member",
		BYTES(FIELDS("\1", "\0", "\x0c", "\x2f", "\0", "\2") LETTERS TWELVE_BITS) },
	{ "members of one size",
		BYTES(FIELDS("\1", "\0", "\x0c", "\x2f", "\2", "\2") LETTERS TWELVE_BITS) },
	{ "longest is shorter",
		BYTES(FIELDS("\1", "\0", "\x0c", "\x2f", "\2", "\1") LETTERS TWELVE_BITS) },
	{ "a longer one",
		BYTES(FIELDS("\1", "\0", "\x0c", "\x2f", "\1", "\3") LETTERS TWELVE_BITS) },
	{ "129 bytes",
		BYTES(FIELDS("\1", "\0", "\x0c", "\x2f", "\1", "\x81") LETTERS TWELVE_BITS) },
	{ "no letters", BYTES(FIELDS("\1", "\0", "\x0c", "\x2f", "\1", "\2") "\0" TWELVE_BITS) },
	{ "129 letters",
		BYTES(FIELDS("\1", "\0", "\x0c", "\x2f", "\1", "\2") "\x81"
								     "0123456789" TWELVE_BITS) },
	{ "more letters than bytes",
		BYTES(FIELDS("\1", "\0", "\x0c", "\x2f", "\1", "\2") "\x0b"
								     "0123456789") },
	{ "a space",
		BYTES(FIELDS("\1", "\0", "\x0c", "\x2f", "\1", "\2") "\x0a"
								     " 123456789" TWELVE_BITS) },
	{ "an escape",
		BYTES(FIELDS("\1", "\0", "\x0c", "\x2f", "\1", "\2") "\x0a"
								     "\x01"
								     "123456789" TWELVE_BITS) },
	{ "the reserved byte",
		BYTES(FIELDS("\1", "\0", "\x0c", "\x2f", "\1", "\2") "\x0a"
								     "\x02"
								     "123456789" TWELVE_BITS) },
	{ "a letter twice",
		BYTES(FIELDS("\1", "\0", "\x0c", "\x2f", "\1", "\2") "\x0a"
								     "0113456789" TWELVE_BITS) },
	{ "letters out of order",
		BYTES(FIELDS("\1", "\0", "\x0c", "\x2f", "\1", "\2") "\x0a"
								     "1023456789" TWELVE_BITS) },
	{ "no letter at a position", BYTES(TWELVE_HEAD "\x00\xfc\x2f\x00\x00\xe4\x06") },
	{ "only the end at a position", BYTES(TWELVE_HEAD "\x02\x03\x20\x00\x00\xe4\x06") },
	{ "too large a number", BYTES(TWELVE_HEAD "\x02\xff\x2f\x00\x00\xe4\x19") },
	{ "no member", BYTES(TWELVE_HEAD "\x02\xff\x2f\x00\x00\xe4\xff") },
	{ "ones up to the end",
		BYTES(TWELVE_HEAD "\x02\xff\x2f\x00\x00\xe4\xff\xff\xff\xff\xff\xff") },
	{ "ones up to the end",
		BYTES(TWELVE_HEAD "\x02\xff\x2f\x00\x00\xe4\xff\xff\xff\xff\xff\xff"
				  "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff") },
	{ "a letter after the end", BYTES("T2\0\0\2\x10\1\3\1a\x07") },
	{ "bits of the padding", BYTES(TWELVE_HEAD "\x02\xff\x2f\x00\x00\xe4\x16") },
	{ "bits of the padding", BYTES(TWELVE_HEAD "\x02\xff\x2f\x00\x00\xe4\x86") },
	{ "a byte more", BYTES(TWELVE_HEAD TWELVE_BITS "\0") },
	{ "nine bytes more", BYTES(TWELVE_HEAD TWELVE_BITS "\0\0\0\0\0\0\0\0\0") },
	{ "a byte less", BYTES(TWELVE_HEAD "\x02\xff\x2f\x00\x00\xe4") },
	{ "a date beyond the last second",
		BYTES(DATED_HEAD("\x5f") "\xfd\xff\xff\xff\x0f\3" DATED_BITS) },
	{ "the first date is none", BYTES(DATED_HEAD("\x5f") "\0\3" DATED_BITS) },
	{ "no bits of dates", BYTES(DATED_HEAD("\x5f") "\xe8\x07\0" TWELVE_BITS) },
	{ "no bits of dates", BYTES(DATED_HEAD("\x2f") "\xe8\x07\0" TWELVE_BITS) },
	{ "33 bits of dates",
		BYTES(DATED_HEAD("\x5f") "\1\x21"
					 "\x02\xff\x2f\0\0\0\x40\0\0\0\0\0\0\0\0\0\0\0\0\0"
					 "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
					 "\0\0\xfc\xff\xff\xff\x13\0\0\0\0\0\0\0\0\x6e") },
	{ "the date of a removal",
		BYTES(DATED_HEAD("\x5f") "\xe8\x07\3"
					 "\x02\xff\x2f\x01\x00\x00\x00\x00\x40\x45\x6e") },
	{ "no date in a table with dates",
		BYTES(DATED_HEAD("\x5f") "\xe8\x07\3"
					 "\x02\xff\x0f\x01\x00\x00\x00\x00\x00\x01\x6e") },
	{ "no room for dates", BYTES(DATED_HEAD("\x2f") "\xe8\x07\3" DATED_BITS) },
	{ "a date less", BYTES(DATED_HEAD("\x5b") "\xe8\x07\3" DATED_BITS) },
	{ "no first date", BYTES(DATED_HEAD("\x5f")) },
	{ "a first date without an end", BYTES(DATED_HEAD("\x5f") "\xe8") },
	{ "no number of bits", BYTES(DATED_HEAD("\x5f") "\xe8\x07") },
	{ "no bits", BYTES(DATED_HEAD("\x5f") "\xe8\x07\3") },
	{ "a third flag", BYTES("T2\4\0\2\x10\1\3\1a\x17") },
	{ "an eighth flag", BYTES("T2\x80\0\2\x10\1\3\1a\x17") },
};

LOOP_TEST(malformed, sizeof(flawed) / sizeof(flawed[0]))
{
	ck_assert_msg(!packed_open(&unpacked, guard_place(flawed[_i].bytes), &text), "%s",
		flawed[_i].name);
}

/* The members a and aa, of three positions with one letter. */
TEST(ends)
{
	ck_assert(packed_open(&unpacked, guard_place(SLICE("T2\0\0\2\x10\1\3\1a\x17")), &text));
	ck_assert(slice_equal(buf_slice(&text), SLICE("T1\0\2a\1\2a\2\0\0\0\2\0\0\0")));
}

/* A table of the other form is copied, and checked. */
TEST(not_packed)
{
	ck_assert(packed_open(&unpacked, guard_place(SLICE("T1\0\2a\2\0\0\0\1\0\0\0")), &text));
	ck_assert(slice_equal(buf_slice(&text), SLICE("T1\0\2a\2\0\0\0\1\0\0\0")));
	ck_assert(!packed_open(&unpacked, guard_place(SLICE("T1\0\2 \2\0\0\0\1\0\0\0")), &text));
	ck_assert(packed_open(
		&unpacked, guard_place(SLICE("T3\0\2a\2\0\0\0\7\0\0\0\1\0\0\0")), &text));
	ck_assert_uint_eq(table_date(&unpacked, 0), 7);
	ck_assert(!packed_open(
		&unpacked, guard_place(SLICE("T3\0\3a\2\0\0\0\7\0\0\0\1\0\0\0")), &text));
}

/* --- tails --- */

/*
 * Two members of 64 bits, whose first 62 are the number and equal; the last ones are these. Tries
 * all sizes that the unpacked table could have.
 */
static bool opens_with_tails(const char *first, const char *second)
{
	enum { LEAST = 74, MOST = 90 };
	unsigned tails = (unsigned)(first[0] - '0') << 1 | (unsigned)(first[1] - '0') << 2 |
		(unsigned)(second[0] - '0') << 4 | (unsigned)(second[1] - '0') << 5;
	bool good = false;

	/* The bits of an entry, from the lowest one: one for the gap of 0, and two of the tail. */
	for (int size = LEAST; size <= MOST; size++) {
		char bytes[] = "T2\0\0\2\x50\x40\x40\x02"
			       "01"
			       "\xff\xff\xff\xff\xff\xff\xff\xff"
			       "\xff\xff\xff\xff\xff\xff\xff\xff?";
		bytes[5] = (char)size;
		bytes[sizeof(bytes) - 2] = (char)tails;
		good |= packed_open(
			&unpacked, guard_place(slice_of(bytes, sizeof(bytes) - 1)), &text);
	}
	return good;
}

TEST(order_of_tails)
{
	ck_assert(opens_with_tails("00", "01"));
	ck_assert(!opens_with_tails("01", "01"));
	ck_assert(!opens_with_tails("01", "00"));
	ck_assert(!opens_with_tails("10", "01"));
}

/* --- damage --- */

static void pack_some(uint64_t seed)
{
	uint64_t random = seed;

	dates.first = (uint32_t)(1 + random_next(&random) % 2000000000);
	dates.count = seed % 2 ? 1u << random_next(&random) % 20 : 0;
	do
		add(&kinds[random_next(&random) % KINDS], 20 + random_next(&random) % 100,
			(unsigned)(seed % 3), &random);
	while (!pack());
}

TEST(cut)
{
	for (uint64_t seed = 1; seed <= 50; seed++) {
		pack_some(seed);
		for (size_t n = 0; n < buf_size(&packed); n++)
			ck_assert_msg(
				!packed_open(&unpacked,
					guard_place(slice_of(buf_slice(&packed).p, n)), &text),
				"seed %d, %zu bytes", (int)seed, n);
	}
}

/* One byte is another. A table that opens has all properties of a table. */
TEST(flipped)
{
	size_t opened = 0, flips = 0;

	for (uint64_t seed = 1; seed <= 300; seed++) {
		uint64_t random = seed;
		pack_some(seed);
		for (int i = 0; i < 60; i++, flips++) {
			char *byte = packed.data + packed.start +
				random_next(&random) % buf_size(&packed),
			     good = *byte;
			struct table checked;
			*byte ^= (char)(i % 2 ? 1u << random_next(&random) % 8
					      : 1 + random_next(&random) % 255);
			if (packed_open(&unpacked, guard_place(buf_slice(&packed)), &text)) {
				ck_assert_msg(table_open(&checked, buf_slice(&text)) &&
						table_model_walks(&unpacked, SLICE("5")),
					"seed %d, flip %d", (int)seed, i);
				opened++;
			}
			*byte = good;
		}
	}
	ck_assert(opened > 0 && opened < flips);
}

FIXTURE(NULL, teardown)
