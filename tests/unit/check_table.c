/*
 * Sorted tables: their bytes, that they equal a sorted array, and that invalid tables are
 * rejected.
 */
#include "collection/text/table.h"

#include "table_model.h"
#include "unit.h"
#include "util/random.h"

enum { TABLES = 2000, NUMBER = 4 };

static struct table_model model;
static struct buf written;
static struct table_writer writer;
static struct table table;
static uint64_t ranks[TABLE_MODEL_MAX];

/* Writes the model; the writer's own figures must be correct. */
static void write_model(struct table_writer *w, struct buf *out)
{
	size_t removals = 0, dated = 0, before = buf_size(out), size;
	uint32_t first = UINT32_MAX;
	uint64_t sum = 0;

	table_model_write(&model, 0, model.count, w);
	for (size_t i = 0; i < model.count; i++) {
		uint32_t date = model.list[i].date;
		removals += model.list[i].removed;
		dated += date > 0;
		sum += date;
		first = date && date < first ? date : first;
	}
	ck_assert_uint_eq(w->count, model.count);
	ck_assert_uint_eq(w->removals, removals);
	ck_assert_uint_eq(w->dated, dated);
	ck_assert(dated == 0 || (w->first_date == first && w->date_sum == sum));
	if (model.count)
		ck_assert(slice_equal(slice_of(w->last, w->last_size),
			table_model_name(&model, model.count - 1)));
	size = table_writer_size(w);
	table_writer_finish(w, out);
	ck_assert_uint_eq(buf_size(out) - before, size);
	ck_assert(w->count == 0 && w->removals == 0 && w->dated == 0 && w->last_size == 0);
	ck_assert_uint_eq(table_writer_size(w), 2 + NUMBER);
}

static void teardown(void)
{
	buf_free(&written);
	table_writer_free(&writer);
}

/*
 * --- comparison with a sorted array; these return the result, since an assert of Check takes
 * longer than all of them ---
 */

/* The cursor is on this entry of the model, or after the last. */
static bool stands_on(const struct table_cursor *c, bool there, size_t i)
{
	if (c->at != i || there != (i < model.count))
		return false;
	return !there ||
		(slice_equal(table_member(c), table_model_name(&model, i)) &&
			c->removed == model.list[i].removed &&
			table_date(c->table, c->at) == model.list[i].date);
}

static bool has_places(const struct table *t)
{
	struct table_cursor c;
	bool there = table_first(&c, t), good = true;

	for (size_t i = 0; i <= model.count; i++) {
		good = good && stands_on(&c, there, i);
		there = table_next(&c);
	}
	good = good && stands_on(&c, there, model.count) && !table_next(&c);
	for (size_t i = 0; i <= model.count + 1; i++) {
		there = table_nth(&c, t, (uint32_t)i);
		good = good && stands_on(&c, there, i < model.count ? i : model.count);
	}
	there = table_nth(&c, t, UINT32_MAX);
	return good && stands_on(&c, there, model.count) && !table_next(&c);
}

static bool finds(const void *where, struct slice name)
{
	const struct table *t = where;
	size_t i = table_model_seek(&model, name);
	bool named = i < model.count && slice_equal(table_model_name(&model, i), name),
	     gone = false, there, good;
	int64_t date = named ? model.list[i].date : 0;
	struct table_cursor c;

	there = table_seek(&c, t, name);
	good = stands_on(&c, there, i);
	if (there) {
		there = table_next(&c);
		good = good && stands_on(&c, there, i + 1);
	}
	for (int64_t now = date - 1; now <= date + 1; now++)
		good = good && table_find(t, name, now, &gone) == named &&
			(!named || gone == table_model_gone(&model, i, now));
	return good;
}

static bool expires(const struct table *t, int64_t now)
{
	uint32_t expired = 0, next = UINT32_MAX, got_next;

	for (size_t i = 0; i < model.count; i++) {
		uint32_t date = model.list[i].date;
		expired += date && date <= now;
		if (date && date > now && date < next)
			next = date;
	}
	return table_expired(t, now, &got_next) == expired && got_next == next;
}

TEST(as_a_sorted_array)
{
	for (uint64_t seed = 1; seed <= TABLES; seed++) {
		uint64_t random = seed;
		table_model_random(&model, &random);
		table_model_random_dates(&model, &random);
		buf_consume(&written, buf_size(&written));
		/* Written bytes follow others, and do not depend on their position. */
		BUF_ADD(&written, "before");
		write_model(&writer, &written);
		ck_assert_msg(table_open(&table, guard_place(slice_skip(buf_slice(&written), 6))),
			"seed %d", (int)seed);
		ck_assert_uint_eq(table.count, model.count);
		ck_assert_msg(has_places(&table), "seed %d", (int)seed);
		for (size_t i = 0; i < model.count; i++)
			ck_assert_msg(expires(&table, model.list[i].date - 1ll) &&
					expires(&table, model.list[i].date),
				"seed %d", (int)seed);
		ck_assert_msg(
			table_model_tries(&model, finds, &table, &random), "seed %d", (int)seed);
		ck_assert_uint_eq(table_restarts(&table),
			(model.count + TABLE_INTERVAL - 1) / TABLE_INTERVAL);
		table_rank(&table, ranks);
		ck_assert_msg(table_model_tries(&model, finds, &table, &random),
			"seed %d, with ranks", (int)seed);
	}
}

TEST(order)
{
	static const struct slice names[] = { BYTES(""), BYTES("a"), BYTES("aa"), BYTES("ab"),
		BYTES("b"), BYTES("ba"), BYTES("~"), BYTES("\x80"), BYTES("\xc3\xa9"),
		BYTES("\xff"), BYTES("\xff!") };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
			int got = member_compare(names[i], names[k]);
			ck_assert_msg(i < k     ? got < 0
					: i > k ? got > 0
						: got == 0,
				"%zu and %zu", i, k);
		}
	}
}

TEST(below_a_rank)
{
	for (uint64_t seed = 1; seed <= TABLES; seed++) {
		uint64_t random = seed;
		size_t count = random_next(&random) % 40, below = 0, through = 0;
		uint64_t rank = random_next(&random) % 30;
		/* In steps of 0 to 2, the last of them to the highest there is. */
		for (size_t i = 0; i < count; i++) {
			ranks[i] = (i ? ranks[i - 1] : 0) + random_next(&random) % 3;
			if (i == count - 1 && seed % 8 == 0)
				ranks[i] = rank = UINT64_MAX;
		}
		for (size_t i = 0; i < count; i++) {
			below += ranks[i] < rank;
			through += ranks[i] <= rank;
		}
		ck_assert_uint_eq(ranks_below(ranks, count, rank, false), below);
		ck_assert_uint_eq(ranks_below(ranks, count, rank, true), through);
	}
}

/* --- the form --- */

/* Two restarts, a removal, a byte beyond ASCII: the form by the letter. */
#define TABLE \
	"T1\0\6a00\2\0021\2\0022\2\0023\2\0024\2\0025\2\0026\2\0027\2\0028\2\0029\1\00410\2\0021" \
	"\2\0022\2\0023\2\0024" \
	"\2\0025\0\7a16\3\6\xc3\xa9!\2\0\0\0\x35\0\0\0\x12\0\0\0"

TEST(form)
{
	struct table_cursor c;
	bool removed;

	for (int i = 0; i < 17; i++) {
		char name[] = { 'a', (char)('0' + i / 10), (char)('0' + i % 10) };
		table_writer_add(&writer, slice_of(name, sizeof(name)), i == 16);
	}
	table_writer_add(&writer, SLICE("a16\xc3\xa9!"), false);
	table_writer_finish(&writer, &written);
	ck_assert(slice_equal(buf_slice(&written), SLICE(TABLE)));
	ck_assert(table_open(&table, guard_place(SLICE(TABLE))));
	ck_assert(table_find(&table, SLICE("a16"), 0, &removed) && removed);
	ck_assert(table_find(&table, SLICE("a16\xc3\xa9!"), 0, &removed) && !removed);
	ck_assert(table_nth(&c, &table, 10));
	assert_bytes(table_member(&c), "a10");

	buf_consume(&written, buf_size(&written));
	table_writer_finish(&writer, &written);
	ck_assert(slice_equal(buf_slice(&written), SLICE("T1\0\0\0\0")));
	ck_assert(table_open(&table, guard_place(SLICE("T1\0\0\0\0"))));
	ck_assert(!table_first(&c, &table) && !table_seek(&c, &table, SLICE("a")) &&
		!table_find(&table, SLICE("a"), 0, &removed));
}

/* The same members with dates: three entries, the last of them a removal; and one without. */
#define DATED "T3\0\2a\0\2b\0\3c\0\2d\2\0\0\0"
#define DATES "\0\0\0\0\xe8\3\0\0\0\0\0\0\xff\xff\xff\xff"
#define NO_DATES "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define FOUR "\4\0\0\0"

TEST(form_with_dates)
{
	static const uint32_t dates[] = { EXPIRY_NONE, 1000, EXPIRY_NONE, UINT32_MAX };
	uint32_t next;

	/* The first date is that of the second entry; and the last entry may be without one. */
	for (size_t count = 4; count >= 3; count--) {
		for (size_t i = 0; i < count; i++) {
			char name = (char)('a' + i);
			table_writer_add(&writer, slice_of(&name, 1), i == 2);
			table_writer_date(&writer, dates[i]);
		}
		table_writer_finish(&writer, &written);
		if (count == 4)
			ck_assert(slice_equal(buf_slice(&written), SLICE(DATED DATES FOUR)));
		buf_consume(&written, count == 4 ? buf_size(&written) : 0);
	}
	ck_assert(slice_equal(buf_slice(&written),
		SLICE("T3\0\2a\0\2b\0\3c\2\0\0\0"
		      "\0\0\0\0\xe8\3\0\0\0\0\0\0"
		      "\3\0\0\0")));
	ck_assert(table_open(&table, guard_place(SLICE(DATED DATES FOUR))));
	ck_assert_uint_eq(table_size(&table), sizeof(DATED DATES FOUR) - 1);
	for (uint32_t i = 0; i < 4; i++)
		ck_assert_uint_eq(table_date(&table, i), dates[i]);
	ck_assert(table_expired(&table, 999, &next) == 0 && next == 1000);
	ck_assert(table_expired(&table, 1000, &next) == 1 && next == UINT32_MAX);
	ck_assert(table_expired(&table, UINT32_MAX, &next) == 2 && next == UINT32_MAX);
	/* The writer begins again without dates. */
	buf_consume(&written, buf_size(&written));
	table_writer_add(&writer, SLICE("a"), false);
	table_writer_finish(&writer, &written);
	ck_assert(slice_equal(buf_slice(&written), SLICE("T1\0\2a\2\0\0\0\1\0\0\0")));
	ck_assert(table_open(&table, guard_place(buf_slice(&written))));
	ck_assert(table_date(&table, 0) == EXPIRY_NONE &&
		table_expired(&table, INT64_MAX, &next) == 0 && next == UINT32_MAX);
}

/* A table by hand, of entries that need not be right. */
struct raw {
	struct buf entries, restarts;
	uint32_t count;
};

static void add_number(struct buf *out, size_t value)
{
	char little[] = { (char)value, (char)(value >> 8), (char)(value >> 16),
		(char)(value >> 24) };

	buf_add(out, little, sizeof(little));
}

static void add_varint(struct buf *out, size_t value)
{
	for (; value >= 0x80; value >>= 7)
		buf_add(out, &(char){ (char)(value | 0x80) }, 1);
	buf_add(out, &(char){ (char)value }, 1);
}

static void raw_add(struct raw *r, size_t shared, struct slice bytes)
{
	if (r->count++ % TABLE_INTERVAL == 0)
		add_number(&r->restarts, 2 + buf_size(&r->entries));
	add_varint(&r->entries, shared);
	add_varint(&r->entries, bytes.n << 1);
	buf_add_slice(&r->entries, bytes);
}

/* Returns whether this is a table, and frees it. */
static bool raw_opens(struct raw *r)
{
	struct buf out = BUF_EMPTY;
	struct table t;
	bool good;

	BUF_ADD(&out, "T1");
	buf_add_slice(&out, buf_slice(&r->entries));
	buf_add_slice(&out, buf_slice(&r->restarts));
	add_number(&out, r->count);
	good = table_open(&t, guard_place(buf_slice(&out)));
	buf_free(&out);
	buf_free(&r->entries);
	buf_free(&r->restarts);
	*r = (struct raw){ .count = 0 };
	return good;
}

/* Of one or two entries: the first restart is at 2, and the count is stored. */
#define ONE "\2\0\0\0\1\0\0\0"
#define TWO "\2\0\0\0\2\0\0\0"

static const struct {
	const char *why;
	struct slice bytes;
} flawed[] = {
	{ "nothing", BYTES("") },
	{ "no count", BYTES("T1\0\0\0") },
	{ "another mark", BYTES("T2\0\2a" ONE) },
	{ "another mark", BYTES("I1\0\2a" ONE) },
	{ "less is counted", BYTES("T1\0\2a\0\0\0\0") },
	{ "less is counted", BYTES("T1\0\2a\1\2b" ONE) },
	{ "more is counted", BYTES("T1\0\2a" TWO) },
	{ "more is counted", BYTES("T1\0\2a\2\0\0\0\x11\0\0\0") },
	{ "much more is counted", BYTES("T1\0\2a\2\0\0\0\xff\xff\xff\xff") },
	{ "much more is counted", BYTES("T1\0\2a\2\0\0\0\xf1\xff\xff\xff") },
	{ "a restart that is another", BYTES("T1\0\2a\1\0\0\0\1\0\0\0") },
	{ "a restart that is another", BYTES("T1\0\2a\3\0\0\0\1\0\0\0") },
	{ "a restart beyond the end", BYTES("T1\0\2a\2\0\0\x80\1\0\0\0") },
	{ "a restart too many", BYTES("T1\0\2a\2\0\0\0" ONE) },
	{ "no restart", BYTES("T1\0\2a\1\0\0\0") },
	{ "a byte too many", BYTES("T1\0\2ax" ONE) },
	{ "a byte too many", BYTES("T1\0\2a" ONE "\0") },
	{ "nothing before to be shared", BYTES("T1\1\2a" ONE) },
	{ "more shared than there is", BYTES("T1\0\2a\2\2b" TWO) },
	{ "much more shared", BYTES("T1\0\2a\xff\xff\xff\xff\x0f\2b" TWO) },
	{ "as if a byte less were shared",
		BYTES("T1\0\2a\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\4b" TWO) },
	{ "a number without an end",
		BYTES("T1\0\2a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80" TWO) },
	{ "a number of more than 32 bits", BYTES("T1\0\2a\x80\x80\x80\x80\x10\2b" TWO) },
	{ "a number of more than 32 bits", BYTES("T1\0\x82\x80\x80\x80\20a" ONE) },
	{ "longer than there is", BYTES("T1\0\4a" ONE) },
	{ "much longer than there is", BYTES("T1\0\xff\xff\xff\xff\17a" ONE) },
	{ "much longer than there is", BYTES("T1\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\1a" ONE) },
	{ "an empty member", BYTES("T1\0\0" ONE) },
	{ "an empty member", BYTES("T1\0\1" ONE) },
	{ "the same twice", BYTES("T1\0\2a\1\0" TWO) },
	{ "the same twice", BYTES("T1\0\2a\0\2a" TWO) },
	{ "the same, added and removed", BYTES("T1\0\2a\0\3a" TWO) },
	{ "out of order", BYTES("T1\0\2b\0\2a" TWO) },
	{ "out of order behind what is shared", BYTES("T1\0\4ab\1\2a" TWO) },
	{ "a prefix behind", BYTES("T1\0\4ab\0\2a" TWO) },
	{ "a prefix behind", BYTES("T1\0\4ab\1\0" TWO) },
	{ "bytes beyond ASCII before others", BYTES("T1\0\2\xc3\0\2a" TWO) },
	{ "what could be shared is repeated", BYTES("T1\0\2a\0\4ab" TWO) },
	{ "what could be shared is repeated", BYTES("T1\0\6abc\1\4bd" TWO) },
	{ "a space", BYTES("T1\0\2 " ONE) },
	{ "a control byte", BYTES("T1\0\2\0" ONE) },
	{ "a control byte", BYTES("T1\0\2\x1f" ONE) },
	{ "an escape without its byte", BYTES("T1\0\2\1" ONE) },
	{ "an escape of a byte that is not escaped", BYTES("T1\0\4\1C" ONE) },
	{ "the end of an escape that is not one, with the escape shared",
		BYTES("T1\0\6a\1\"\2\2\x43" TWO) },
	{ "a member after the empty one that contains it", BYTES("T1\0\4\1!\2\2a" TWO) },
	{ "a space within", BYTES("T1\0\42abcdef ghijklmnop" ONE) },
	{ "a line end within", BYTES("T1\0\42abcdefghijklmno\rp" ONE) },
	{ "a line end at the end", BYTES("T1\0\42abcdefghijklmnop\n" ONE) },
	{ "an escape within what is not shared", BYTES("T1\0\2a\1\6b\1c" TWO) },
	{ "no date in a table with dates", BYTES(DATED NO_DATES FOUR) },
	{ "dates of no entries", BYTES("T3\0\0\0\0") },
	{ "no room for dates", BYTES(DATED FOUR) },
	{ "a date less", BYTES(DATED "\0\0\0\0\xe8\3\0\0\0\0\0\0" FOUR) },
	{ "a date more", BYTES(DATED DATES "\0\0\0\0" FOUR) },
	{ "the date of a removal", BYTES(DATED "\0\0\0\0\xe8\3\0\0\1\0\0\0\xff\xff\xff\xff" FOUR) },
	{ "dates in a table without them", BYTES("T1\0\2a\2\0\0\0\xe8\3\0\0\1\0\0\0") },
	{ "much more is counted", BYTES("T3\0\2a\2\0\0\0\xff\xff\xff\xff") },
	{ "much more is counted", BYTES("T3\0\2a\2\0\0\0\xf1\xff\xff\xff") },
	{ "another mark", BYTES("T4\0\2a\2\0\0\0\xe8\3\0\0\1\0\0\0") },
};

TEST(refused)
{
	ck_assert(table_open(&table, guard_place(SLICE("T1\0\2a" ONE))));
	ck_assert(table_open(&table, guard_place(SLICE("T1\0\2a\1\3b" TWO))));
	ck_assert(table_open(&table, guard_place(SLICE("T1\0\6a\1\"\2\2#" TWO))));
	ck_assert(table_open(&table, guard_place(SLICE("T1\0\4\1!\1\2\"" TWO))));
	for (size_t i = 0; i < sizeof(flawed) / sizeof(flawed[0]); i++)
		ck_assert_msg(!table_open(&table, guard_place(flawed[i].bytes)), "%zu: %s", i,
			flawed[i].why);
}

TEST(too_long)
{
	char name[MEMBER_WORD_MAX + 1];
	struct raw r = { .count = 0 };

	memset(name, 'x', sizeof(name));
	raw_add(&r, 0, slice_of(name, MEMBER_WORD_MAX));
	ck_assert(raw_opens(&r));
	raw_add(&r, 0, slice_of(name, MEMBER_WORD_MAX + 1));
	ck_assert(!raw_opens(&r));
	for (size_t more = 0; more < 3; more++) {
		raw_add(&r, 0, slice_of(name, MEMBER_WORD_MAX - 1));
		raw_add(&r, MEMBER_WORD_MAX - 1, slice_of(name, more));
		ck_assert(raw_opens(&r) == (more == 1));
	}
}

/* The entry at a restart shares nothing, is at the recorded position, and continues the order. */
TEST(second_restart)
{
	static const struct {
		size_t shared;
		struct slice bytes;
		int moved;
		bool good;
	} cases[] = { { 0, BYTES("aq"), 0, true }, { 1, BYTES("q"), 0, false },
		{ 0, BYTES("aq"), 1, false }, { 0, BYTES("aq"), -1, false },
		{ 0, BYTES("ap"), 0, false }, { 0, BYTES("a"), 0, false },
		{ 0, BYTES("ab"), 0, false }, { 0, BYTES("b"), 0, true } };
	struct raw r = { .count = 0 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		raw_add(&r, 0, SLICE("aa"));
		for (char letter = 'b'; letter <= 'p'; letter++)
			raw_add(&r, 1, slice_of(&letter, 1));
		raw_add(&r, cases[i].shared, cases[i].bytes);
		r.restarts.data[r.restarts.start + NUMBER] += (char)cases[i].moved;
		ck_assert_msg(raw_opens(&r) == cases[i].good, "case %zu", i);
	}
}

TEST(cut)
{
	for (uint64_t seed = 1; seed <= TABLES / 10; seed++) {
		uint64_t random = seed;
		size_t n = 0;
		table_model_random(&model, &random);
		table_model_random_dates(&model, &random);
		buf_consume(&written, buf_size(&written));
		write_model(&writer, &written);
		while (n < buf_size(&written) &&
			!table_open(&table, guard_place(slice_of(buf_slice(&written).p, n))))
			n++;
		ck_assert_msg(n == buf_size(&written), "seed %d, %zu bytes", (int)seed, n);
	}
}

/* One byte is another. */
TEST(flipped)
{
	size_t opened = 0, flips = 0;

	for (uint64_t seed = 1; seed <= TABLES / 5; seed++) {
		uint64_t random = seed;
		table_model_random(&model, &random);
		table_model_random_dates(&model, &random);
		buf_consume(&written, buf_size(&written));
		write_model(&writer, &written);
		for (int i = 0; i < 60; i++, flips++) {
			char *byte = written.data + written.start +
				random_next(&random) % buf_size(&written),
			     good = *byte;
			*byte ^= (char)(i % 2 ? 1u << random_next(&random) % 8
					      : 1 + random_next(&random) % 255);
			if (table_open(&table, guard_place(buf_slice(&written)))) {
				ck_assert_msg(
					table_model_walks(&table, table_model_name(&model, 0)),
					"seed %d, flip %d", (int)seed, i);
				table_rank(&table, ranks);
				ck_assert_msg(
					table_model_walks(&table, table_model_name(&model, 0)),
					"seed %d, flip %d, with ranks", (int)seed, i);
				opened++;
			}
			*byte = good;
		}
	}
	/* Removals and letters may be flipped, but not much else. */
	ck_assert(opened > 0 && opened < flips / 2);
}

FIXTURE(NULL, teardown)
