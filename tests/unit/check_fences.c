/* Indexes of runs: their bytes, the table of each member, and that invalid indexes are rejected. */
#include "collection/text/fences.h"

#include "table_model.h"
#include "unit.h"
#include "util/random.h"

enum { INDEXES = 200 };

/* The fences of the model are its names, but that the first one is empty. */
static struct table_model model;
static struct buf written;
static struct fences fences;
static struct fence said[TABLE_MODEL_MAX];
static size_t ends[TABLE_MODEL_MAX]; /* of the entries in the bytes */
static bool with_dates;              /* The index has some. */

static void random_id(uint64_t *random, char id[OPLOG_ID])
{
	static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyz";

	id[0] = 't';
	for (size_t i = 1; i < OPLOG_ID; i++)
		id[i] = letters[random_next(random) % (sizeof(letters) - 1)];
}

/* A number of each size there is. */
static uint32_t random_number(uint64_t *random, uint32_t least)
{
	uint32_t number = (uint32_t)random_next(random) >> random_next(random) % 32;

	return number > least ? number : least;
}

static void random_dates(uint64_t *random, struct fence *fence)
{
	uint64_t most = fence->entries - fence->removals;

	if (most == 0 || random_next(random) % 2)
		return;
	fence->dated = (uint32_t)(1 + random_next(random) % most);
	fence->first_date = random_number(random, 0);
	fence->mean_date = random_number(random, fence->first_date ? fence->first_date : 1);
	with_dates = true;
}

/* Every second one has dates. */
static void random_index(uint64_t *random, struct buf *out)
{
	struct fences_writer w = { .count = 0 };
	bool dated = random_next(random) % 2;

	with_dates = false;
	do
		table_model_random(&model, random);
	while (model.count == 0);
	model.list[0].size = 0;
	buf_consume(out, buf_size(out));
	for (size_t i = 0; i < model.count; i++) {
		struct fence *fence = &said[i];
		*fence = (struct fence){ .check = random_next(random),
			.first = table_model_name(&model, i) };
		random_id(random, fence->id);
		fence->bytes = random_number(random, 1);
		fence->entries = random_number(random, 1);
		fence->removals = random_next(random) % 2
			? 0
			: random_number(random, 0) % (fence->entries + 1ull);
		if (dated)
			random_dates(random, fence);
		fences_add(&w, fence);
		ends[i] = buf_size(&w.text);
	}
	buf_add_slice(out, fences_text(&w));
	/* It has an end already. */
	ck_assert(slice_equal(fences_text(&w), buf_slice(out)));
	fences_writer_free(&w);
}

static void teardown(void)
{
	buf_free(&written);
}

/* --- what was written is read back --- */

static bool same(const struct fence *a, const struct fence *b)
{
	return memcmp(a->id, b->id, OPLOG_ID) == 0 && a->check == b->check &&
		a->bytes == b->bytes && a->entries == b->entries && a->removals == b->removals &&
		a->dated == b->dated && a->first_date == b->first_date &&
		a->mean_date == b->mean_date && slice_equal(a->first, b->first);
}

/* The first `count` fences, and their bytes. */
static bool reads_as(const struct fences *f, size_t count)
{
	uint64_t entries = 0, removals = 0, bytes = 0, dated = 0;
	bool good = f->count == count;

	for (size_t i = 0; i < count && good; i++) {
		good = same(&f->list[i], &said[i]) && f->list[i].before == entries;
		entries += said[i].entries;
		removals += said[i].removals;
		bytes += said[i].bytes;
		dated += said[i].dated;
	}
	return good && f->entries == entries && f->removals == removals && f->bytes == bytes &&
		f->dated == dated;
}

static bool finds(const void *f, struct slice member)
{
	size_t expected = 0;

	while (expected + 1 < model.count &&
		table_model_order(table_model_name(&model, expected + 1), member) <= 0)
		expected++;
	return fences_find(f, member) == expected;
}

TEST(as_a_sorted_array)
{
	for (uint64_t seed = 1; seed <= INDEXES; seed++) {
		uint64_t random = seed;
		random_index(&random, &written);
		ck_assert_msg(fences_read(&fences, guard_place(buf_slice(&written))), "seed %d",
			(int)seed);
		ck_assert_msg(reads_as(&fences, model.count), "seed %d", (int)seed);
		ck_assert_msg(
			table_model_tries(&model, finds, &fences, &random), "seed %d", (int)seed);
		fences_free(&fences);
		ck_assert(fences.count == 0 && !fences.list);
	}
}

/* --- the form --- */

#define FIRST "t0123456789a\x08\7\6\5\4\3\2\1\x80\1\x12\1\0"
#define SECOND "tzzzzzzzzzzz\0\0\0\0\0\0\0\xf0\xff\xff\xff\xff\x0f\2\0\2b!"

TEST(form)
{
	const struct fence first = { .id = "t0123456789a",
		.check = 0x0102030405060708,
		.bytes = 128,
		.entries = 18,
		.removals = 1,
		.first = SLICE("") };
	const struct fence second = { .id = "tzzzzzzzzzzz",
		.check = 0xf000000000000000,
		.bytes = UINT32_MAX,
		.entries = 2,
		.first = SLICE("b!") };
	struct fences_writer w = { .count = 0 };

	fences_add(&w, &first);
	fences_add(&w, &second);
	ck_assert(slice_equal(fences_text(&w), SLICE("I1" FIRST SECOND)));
	ck_assert(fences_read(&fences, guard_place(SLICE("I1" FIRST SECOND))));
	ck_assert(fences.count == 2 && same(&fences.list[0], &first) &&
		same(&fences.list[1], &second));
	ck_assert(fences.entries == 20 && fences.removals == 1 &&
		fences.bytes == 128 + (uint64_t)UINT32_MAX);
	ck_assert_uint_eq(fences_find(&fences, SLICE("b")), 0);
	ck_assert_uint_eq(fences_find(&fences, SLICE("b!")), 1);
	fences_free(&fences);
	fences_writer_free(&w);
}

/* Of the first table, 17 members expire from 1000 on, and on average at 2^32 - 1. */
#define FIRST_DATES "\x11\0\0\0\xe8\3\0\0\xff\xff\xff\xff"
#define NO_DATES "\0\0\0\0\0\0\0\0\0\0\0\0"

TEST(form_with_dates)
{
	const struct fence first = { .id = "t0123456789a",
		.check = 0x0102030405060708,
		.bytes = 128,
		.entries = 18,
		.removals = 1,
		.dated = 17,
		.first_date = 1000,
		.mean_date = UINT32_MAX,
		.first = SLICE("") };
	const struct fence second = { .id = "tzzzzzzzzzzz",
		.check = 0xf000000000000000,
		.bytes = UINT32_MAX,
		.entries = 2,
		.first = SLICE("b!") };
	struct fences_writer w = { .count = 0 };

	fences_add(&w, &first);
	fences_add(&w, &second);
	ck_assert(slice_equal(
		fences_text(&w), SLICE("I2" FIRST SECOND FIRST_DATES NO_DATES "\2\0\0\0")));
	ck_assert(fences_read(&fences, guard_place(buf_slice(&w.text))));
	ck_assert(fences.count == 2 && same(&fences.list[0], &first) &&
		same(&fences.list[1], &second));
	ck_assert(fences.entries == 20 && fences.dated == 17);
	fences_free(&fences);
	fences_writer_free(&w);
}

/* A placeholder for a check, and a fence with its size. */
#define CHECK "12345678"
#define TABLE(id, numbers, fence) "t0000000000" id CHECK numbers fence

static const struct {
	const char *why;
	struct slice bytes;
} flawed[] = {
	{ "nothing", BYTES("") },
	{ "half of the mark", BYTES("I") },
	{ "another mark", BYTES("I3" FIRST SECOND) },
	{ "no dates", BYTES("I2" FIRST SECOND) },
	{ "no dates", BYTES("I2" FIRST SECOND "\0\0\0\0") },
	{ "no dates", BYTES("I2" FIRST SECOND "\2\0\0\0") },
	{ "only dates", BYTES("I2" FIRST_DATES "\1\0\0\0") },
	{ "only dates", BYTES("I2\0\0\0\0") },
	{ "only dates", BYTES("I2") },
	{ "dates in an index without them", BYTES("I1" FIRST FIRST_DATES "\1\0\0\0") },
	{ "dates of no member", BYTES("I2" FIRST NO_DATES "\1\0\0\0") },
	{ "dates of one table more", BYTES("I2" FIRST FIRST_DATES NO_DATES "\2\0\0\0") },
	{ "dates of one table more", BYTES("I2" FIRST FIRST_DATES NO_DATES "\1\0\0\0") },
	{ "dates of one table less", BYTES("I2" FIRST SECOND FIRST_DATES "\1\0\0\0") },
	{ "dates of one table less", BYTES("I2" FIRST SECOND FIRST_DATES "\2\0\0\0") },
	{ "many tables", BYTES("I2" FIRST FIRST_DATES "\xff\xff\xff\xff") },
	{ "many tables", BYTES("I2" FIRST FIRST_DATES "\x01\0\0\x80") },
	{ "a cut number of tables", BYTES("I2" FIRST FIRST_DATES "\1\0\0") },
	{ "a byte more", BYTES("I2" FIRST FIRST_DATES "\1\0\0\0\0") },
	{ "a byte more", BYTES("I2" FIRST "\0" FIRST_DATES "\1\0\0\0") },
	{ "more dates than members", BYTES("I2" FIRST "\x12\0\0\0\xe8\3\0\0\xe8\3\0\0\1\0\0\0") },
	{ "many more dates than members",
		BYTES("I2" FIRST "\xff\xff\xff\xff\xe8\3\0\0\xe8\3\0\0\1\0\0\0") },
	{ "the first date is after the mean",
		BYTES("I2" FIRST "\x11\0\0\0\xe8\3\0\0\xe7\3\0\0\1\0\0\0") },
	{ "no mean", BYTES("I2" FIRST "\x11\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0") },
	{ "the mean of no dates",
		BYTES("I2" FIRST SECOND FIRST_DATES "\0\0\0\0\0\0\0\0\1\0\0\0\2\0\0\0") },
	{ "the first one of no dates",
		BYTES("I2" FIRST SECOND FIRST_DATES "\0\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0") },
	{ "a table", BYTES("T1\0\0\0\0") },
	{ "a first fence that is not empty", BYTES("I1" SECOND) },
	{ "a first fence that is not empty",
		BYTES("I1" TABLE("1", "\7\1\0", "\1a") TABLE("2", "\7\1\0", "\1b")) },
	{ "two empty fences", BYTES("I1" FIRST FIRST) },
	{ "the same fence twice", BYTES("I1" FIRST SECOND TABLE("1", "\7\1\0", "\2b!")) },
	{ "out of order", BYTES("I1" FIRST SECOND TABLE("1", "\7\1\0", "\1a")) },
	{ "a prefix behind", BYTES("I1" FIRST SECOND TABLE("1", "\7\1\0", "\1b")) },
	{ "bytes beyond ASCII before others",
		BYTES("I1" FIRST TABLE("1", "\7\1\0", "\1\xc3") SECOND) },
	{ "an empty fence behind", BYTES("I1" FIRST SECOND TABLE("1", "\7\1\0", "\0")) },
	{ "more removals than entries", BYTES("I1" TABLE("1", "\7\1\2", "\0")) },
	{ "a fence that is longer than what is left",
		BYTES("I1" FIRST TABLE("1", "\7\1\0", "\2b")) },
	{ "much longer", BYTES("I1" FIRST TABLE("1", "\7\1\0", "\xff\xff\xff\xff\17b")) },
	{ "a number of more than 32 bits",
		BYTES("I1" TABLE("1", "\x87\x80\x80\x80\x10\1\0", "\0")) },
	{ "a number without an end", BYTES("I1" TABLE("1", "\x80\x80\x80\x80\x80\x80\x80", "\0")) },
	{ "something behind", BYTES("I1" FIRST SECOND "t") },
	{ "the id of an index", BYTES("I1i00000000001" CHECK "\7\1\0\0") },
	{ "an id with a capital letter", BYTES("I1" TABLE("A", "\7\1\0", "\0")) },
	{ "an id with a space", BYTES("I1" TABLE(" ", "\7\1\0", "\0")) },
	{ "an id with a line end", BYTES("I1" TABLE("\n", "\7\1\0", "\0")) },
};

TEST(refused)
{
	ck_assert(fences_read(&fences, guard_place(SLICE("I1" TABLE("1", "\7\1\1", "\0") SECOND))));
	fences_free(&fences);
	/* The first date may be unknown. */
	ck_assert(fences_read(
		&fences, guard_place(SLICE("I2" FIRST "\x11\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0"))));
	fences_free(&fences);
	for (size_t i = 0; i < sizeof(flawed) / sizeof(flawed[0]); i++)
		ck_assert_msg(!fences_read(&fences, guard_place(flawed[i].bytes)), "%zu: %s", i,
			flawed[i].why);
}

/*
 * After an entry there may be no more of them, unless there are dates; at any other position it is
 * invalid.
 */
TEST(cut)
{
	for (uint64_t seed = 1; seed <= INDEXES / 10; seed++) {
		uint64_t random = seed;
		size_t count = 0, n = 0;
		bool good = true;
		random_index(&random, &written);
		for (; n < buf_size(&written) && good; n++) {
			bool whole = !with_dates && count < model.count && n == ends[count];
			bool read = fences_read(
				&fences, guard_place(slice_of(buf_slice(&written).p, n)));
			/* Whether an index may be empty is not tested. */
			good = n == 2 || read == whole;
			count += whole;
			good = good && (!whole || reads_as(&fences, count));
			if (read)
				fences_free(&fences);
		}
		ck_assert_msg(good, "seed %d, %zu bytes", (int)seed, n - 1);
	}
}

/* The content of an index, whatever it is. */
static bool is_good(const struct fences *f, uint64_t *random)
{
	char name[MEMBER_WORD_MAX];
	bool good = true;

	for (unsigned i = 0; i < 10 && good; i++) {
		size_t n = table_model_random_name(random, i % TABLE_MODEL_WORLDS, name);
		good = table_model_walks_index(f, slice_of(name, n));
	}
	return good;
}

TEST(flipped)
{
	size_t read = 0, flips = 0;

	for (uint64_t seed = 1; seed <= INDEXES / 5; seed++) {
		uint64_t random = seed;
		random_index(&random, &written);
		for (int i = 0; i < 60; i++, flips++) {
			char *byte = written.data + written.start +
				random_next(&random) % buf_size(&written),
			     good = *byte;
			*byte ^= (char)(i % 2 ? 1u << random_next(&random) % 8
					      : 1 + random_next(&random) % 255);
			if (fences_read(&fences, guard_place(buf_slice(&written)))) {
				ck_assert_msg(is_good(&fences, &random), "seed %d, flip %d",
					(int)seed, i);
				fences_free(&fences);
				read++;
			}
			*byte = good;
		}
	}
	ck_assert(read > 0 && read < flips);
}

/* --- tables --- */

/* A table of the members from `first` to `last`; `date` is that of the last one. */
static struct slice make_table(char first, char last, uint32_t date)
{
	struct table_writer w = { .count = 0 };

	for (char letter = first; letter <= last; letter++)
		table_writer_add(&w, slice_of(&letter, 1), false);
	table_writer_date(&w, date);
	buf_consume(&written, buf_size(&written));
	table_writer_finish(&w, &written);
	table_writer_free(&w);
	return buf_slice(&written);
}

/* A table must have the members of its entry, and dates if these have some. */
TEST(tables_of_entries)
{
	static const struct {
		char first, last;
		uint32_t date;
		bool in_first, in_second;
	} cases[] = { { 'a', 'c', 0, true, false }, { 'a', 'c', 1000, false, false },
		{ 'a', 'd', 0, false, false }, { 'b', 'd', 0, false, false },
		{ 'd', 'f', 1000, false, true }, { 'd', 'f', 0, false, false },
		{ 'c', 'e', 1000, false, false }, { 'x', 'z', 1000, false, true },
		{ 'd', 'g', 1000, false, false } };
	struct fence entries[] = {
		{ .id = "t0123456789a", .bytes = 1, .entries = 3, .first = SLICE("") },
		{ .id = "t0123456789b",
			.bytes = 1,
			.entries = 3,
			.dated = 1,
			.first_date = 1000,
			.mean_date = 1000,
			.first = SLICE("d") }
	};
	struct fences_writer w = { .count = 0 };
	struct table table;

	fences_add(&w, &entries[0]);
	fences_add(&w, &entries[1]);
	ck_assert(fences_read(&fences, fences_text(&w)));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert(table_open(
			&table, make_table(cases[i].first, cases[i].last, cases[i].date)));
		ck_assert_msg(fences_hold(&fences, 0, &table) == cases[i].in_first &&
				fences_hold(&fences, 1, &table) == cases[i].in_second,
			"case %zu", i);
	}
	fences_free(&fences);
	fences_writer_free(&w);
}

/* --- fences --- */

TEST(shortest)
{
	static const struct {
		struct slice last, first;
		size_t size;
	} cases[] = { { BYTES("a"), BYTES("b"), 1 }, { BYTES("abc"), BYTES("abd"), 3 },
		{ BYTES("abc"), BYTES("abcd"), 4 }, { BYTES("abc"), BYTES("bxyz"), 1 },
		{ BYTES("abc"), BYTES("acxyz"), 2 }, { BYTES(""), BYTES("xyz"), 1 },
		{ BYTES("a"), BYTES("aaaa"), 2 }, { BYTES("a\x7e"), BYTES("a\x80zz"), 2 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_msg(
			fence_size(cases[i].last, cases[i].first) == cases[i].size, "case %zu", i);
	for (uint64_t seed = 1; seed <= INDEXES; seed++) {
		uint64_t random = seed;
		bool good = true;
		table_model_random(&model, &random);
		for (size_t i = 1; i < model.count && good; i++) {
			struct slice last = table_model_name(&model, i - 1),
				     first = table_model_name(&model, i);
			size_t n = fence_size(last, first);
			/* A byte less would not do. */
			good = n > 0 && n <= first.n &&
				table_model_order(last, slice_of(first.p, n)) < 0 &&
				table_model_order(last, slice_of(first.p, n - 1)) >= 0;
		}
		ck_assert_msg(good, "seed %d", (int)seed);
	}
}

FIXTURE(NULL, teardown)
