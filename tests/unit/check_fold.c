#include <stdio.h>

#include "collection/text/fold.h"
#include "model.h"
#include "unit.h"
#include "util/heap.h"
#include "util/random.h"

enum { MOMENTS = 24 /* of random dates */ };

/* Dates of members. */
#define AT_1000 \
	"\x02" \
	"0000001000"
#define AT_2000 \
	"\x02" \
	"0000002000"
#define AT_3000 \
	"\x02" \
	"0000003000"

/* The encoding of a fold has the announced length. */
static void takes(struct buf *out, size_t size, const char *expected)
{
	ck_assert_uint_eq(buf_size(out), size);
	assert_bytes(buf_slice(out), expected);
	buf_free(out);
}

static void joins(const struct fold *f, const char *expected)
{
	struct buf out = BUF_EMPTY;

	fold_join(f, &out);
	takes(&out, fold_joined_size(f), expected);
}

static void encodes(const struct fold *f, bool removals, const char *expected)
{
	struct buf out = BUF_EMPTY;

	fold_encode(f, removals, &out);
	takes(&out, fold_log_size(f, removals), expected);
}

/* Folds one log, checks the result, and clears the fold. */
static void folds(const char *log, const char *joined, const char *encoded)
{
	struct fold f = { .seed = 1 };

	ck_assert_msg(fold_log(&f, guard_text(log)), "\"%s\" does not parse", log);
	joins(&f, joined);
	encodes(&f, false, encoded);
	fold_free(&f);
}

TEST(last_word_wins)
{
	folds("", "", "");
	folds("+a ", "a", "+a ");
	folds("+a +b ", "a b", "+a +b ");
	folds("+a +a +a ", "a", "+a ");
	folds("+a -a ", "", "");
	folds("-a ", "", "");
	folds("-a +a ", "a", "+a ");
	folds("+a +b -a +c ", "b c", "+b +c ");
	folds("+a +b -a +a ", "a b", "+a +b ");
	folds("+a +ab +abc -ab ", "a abc", "+a +abc ");
	folds("++ +- --- ", "+ -", "++ +- ");
	folds("++a -+a +-a ", "-a", "+-a ");
	folds("+@x +\x80\xff ", "@x \x80\xff", "+@x +\x80\xff ");
}

/* Input that does not parse is never interpreted as something else. */
TEST(strict)
{
	static const char *const wrong[] = { " ", "a", "a ", "+", "-", "+ ", "- ", "+a", "+a +b",
		"+a  +b ", " +a ", "+a +b  ", "+a\r\n", "+a\n", "+a\t", "+a\x01 ", "+\x01\x43 ",
		"+a\tb ", "@x ", "+a @x ", "+a,b", "1", "+a *b ", "+a + ", "-a" AT_1000 " ",
		"+a" AT_1000, "+a" AT_1000 AT_1000 " ", "+" AT_1000 " ", "+a\x02 ", "a" AT_1000 " ",
		"+a\x02"
		"000001000 ",
		"+a\x02"
		"0000000000 ",
		"+a\x02"
		"4294967296 ",
		"+a" AT_1000 "b ", "+a " AT_1000 " ", "+a b" AT_1000 " " };
	struct fold f = { .seed = 1 };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ck_assert_msg(!fold_log(&f, guard_text(wrong[i])), "\"%s\" parses", wrong[i]);
		fold_reset(&f);
	}
	ck_assert(!fold_log(&f, guard_place(SLICE("+a\0 "))));
	fold_free(&f);
}

TEST(cut_at_every_byte)
{
	static const char log[] = "+alpha +beta -alpha +\x80x" AT_1000 " -gamma +beta" AT_2000 " ";
	struct fold f = { .seed = 1 };

	for (size_t n = 0; n < sizeof(log); n++) {
		bool whole = n == 0 || log[n - 1] == ' ';
		ck_assert_int_eq(fold_log(&f, guard_place(slice_of(log, n))), whole);
		fold_reset(&f);
	}
	fold_free(&f);
}

TEST(longest_member)
{
	char log[2100];
	struct fold f = { .seed = 1 };
	int n = snprintf(log, sizeof(log), "+%02000d ", 7);

	ck_assert(fold_log(&f, guard_place(slice_of(log, (size_t)n))));
	n = snprintf(log, sizeof(log), "+%02001d ", 7);
	ck_assert(!fold_log(&f, guard_place(slice_of(log, (size_t)n))));
	fold_reset(&f);
	n = snprintf(log, sizeof(log), "+%02000d" AT_1000 " ", 7);
	ck_assert(fold_log(&f, guard_place(slice_of(log, (size_t)n))) && !f.has_long);
	n = snprintf(log, sizeof(log), "+%02001d" AT_1000 " ", 7);
	ck_assert(!fold_log(&f, guard_place(slice_of(log, (size_t)n))) && f.has_long);
	fold_free(&f);
}

TEST(counts)
{
	struct fold f = { .seed = 1 };

	ck_assert(!fold_contains(&f, SLICE("a")));
	ck_assert(fold_log(&f, SLICE("+a +bb -a +bb ")));
	ck_assert_uint_eq(f.live, 1);
	ck_assert_uint_eq(f.tokens, 4);
	ck_assert_uint_eq(f.bytes, 14);
	ck_assert(fold_contains(&f, SLICE("bb")));
	ck_assert(!fold_contains(&f, SLICE("a")));
	ck_assert(!fold_contains(&f, SLICE("b")));
	ck_assert_uint_eq(f.all_bytes, 3);
	ck_assert_uint_eq(f.live_bytes, 2);
	/* A second log continues where the first has ended. */
	ck_assert(fold_log(&f, SLICE("-bb +a ")));
	joins(&f, "a");
	ck_assert_uint_eq(f.tokens, 6);
	fold_reset(&f);
	ck_assert_uint_eq(f.live, 0);
	ck_assert_uint_eq(f.tokens, 0);
	ck_assert(!fold_contains(&f, SLICE("a")));
	joins(&f, "");
	fold_add(&f, SLICE("x"));
	fold_add(&f, SLICE("y"));
	fold_remove(&f, SLICE("x"));
	joins(&f, "y");
	fold_free(&f);
}

TEST(delta_keeps_removals)
{
	struct fold f = { .seed = 1 };
	bool live = true;

	ck_assert(fold_log(&f, SLICE("+a -b -a +c +b -d ")));
	encodes(&f, true, "-a +b +c -d ");
	ck_assert(fold_mentions(&f, SLICE("d"), &live));
	ck_assert(!live);
	ck_assert(fold_mentions(&f, SLICE("b"), &live));
	ck_assert(live);
	ck_assert(!fold_mentions(&f, SLICE("e"), &live));
	fold_reset(&f);
	encodes(&f, true, "");
	fold_free(&f);
}

/* --- dates --- */

static void folds_at(const char *log, int64_t now, const char *joined, const char *encoded)
{
	struct fold f = { .seed = 1 };

	ck_assert_msg(fold_log(&f, guard_text(log)), "\"%s\" does not parse", log);
	(void)fold_expire(&f, now);
	joins(&f, joined);
	encodes(&f, true, encoded);
	fold_free(&f);
}

/* From its date on, a member is removed. Until then the last word of it decides. */
TEST(dates)
{
	folds_at("+a" AT_1000 " ", 0, "a", "+a" AT_1000 " ");
	folds_at("+a" AT_1000 " ", 999, "a", "+a" AT_1000 " ");
	folds_at("+a" AT_1000 " ", 1000, "", "-a ");
	folds_at("+a" AT_1000 " ", 1001, "", "-a ");
	folds_at("+a" AT_1000 " +b +c" AT_3000 " ", 2000, "b c", "-a +b +c" AT_3000 " ");
	/* Later, earlier, for ever, and removed. */
	folds_at("+a" AT_1000 " +a" AT_3000 " ", 2000, "a", "+a" AT_3000 " ");
	folds_at("+a" AT_3000 " +a" AT_1000 " ", 999, "a", "+a" AT_1000 " ");
	folds_at("+a" AT_3000 " +a" AT_1000 " ", 2000, "", "-a ");
	folds_at("+a" AT_1000 " +a ", 2000, "a", "+a ");
	folds_at("+a +a" AT_1000 " ", 999, "a", "+a" AT_1000 " ");
	folds_at("+a" AT_3000 " -a ", 2000, "", "-a ");
	folds_at("-a +a" AT_3000 " ", 2000, "a", "+a" AT_3000 " ");
	folds_at("+a" AT_1000 " -a +a ", 2000, "a", "+a ");
	folds_at("+ab" AT_1000 " +a" AT_3000 " ", 2000, "a", "-ab +a" AT_3000 " ");
	folds_at("+\x01!" AT_1000 " +\x01\x22 ", 999, "\x01! \x01\x22",
		"+\x01!" AT_1000 " +\x01\x22 ");
}

/* Only a fold with a date that has passed is searched. */
TEST(expires_when_due)
{
	struct fold f = { .seed = 1 };
	size_t at;

	ck_assert(!fold_expire(&f, INT64_MAX));
	ck_assert(fold_log(&f, SLICE("+a -b +c ")));
	ck_assert(!fold_expire(&f, INT64_MAX));
	ck_assert(fold_log(&f, SLICE("+b" AT_2000 " +d" AT_3000 " +e" AT_1000 " ")));
	ck_assert(f.dated == 3 && f.first_date == 1000 && f.live == 5 && f.live_bytes == 5);
	ck_assert(!fold_expire(&f, 999));
	ck_assert_uint_eq(f.dated, 3);
	ck_assert(fold_expire(&f, 1000));
	ck_assert(f.dated == 2 && f.first_date == 2000 && f.live == 4 && f.live_bytes == 4);
	ck_assert(fold_find(&f, SLICE("b"), &at));
	ck_assert_uint_eq(fold_date(&f.members[at]), 2000);
	ck_assert(!fold_expire(&f, 1999));
	ck_assert(fold_expire(&f, 5000));
	ck_assert(f.dated == 0 && f.live == 2 && !fold_expire(&f, 5000));
	joins(&f, "a c");
	/* A later word counts from its own date on. */
	ck_assert(fold_log(&f, SLICE("+e" AT_3000 " +c" AT_2000 " ")));
	ck_assert(f.dated == 2 && f.first_date == 2000);
	fold_set(&f, at, true);
	fold_add(&f, SLICE("c"));
	fold_remove(&f, SLICE("e"));
	ck_assert_uint_eq(f.dated, 0);
	joins(&f, "a b c");
	encodes(&f, false, "+a +b +c ");
	ck_assert(fold_log(&f, SLICE("+x" AT_1000 " ")));
	fold_reset(&f);
	ck_assert(f.dated == 0 && !fold_expire(&f, 5000));
	fold_free(&f);
}

/* A portion ends with a whole word, whose date is a part of it. */
TEST(portions_with_dates)
{
	enum { MEMBERS = 9000 };
	struct fold whole = { .seed = 1 }, parts = { .seed = 2 };
	struct buf log = BUF_EMPTY, a = BUF_EMPTY, b = BUF_EMPTY;
	struct slice rest;
	size_t portions = 0;

	for (unsigned i = 0; i < MEMBERS; i++)
		buf_printf(&log, "+%u\x02%010u ", i * 7 % 5000, 1 + i % 1000);
	rest = buf_slice(&log);
	ck_assert(fold_log(&whole, rest));
	for (; rest.n; portions++)
		ck_assert(fold_portion(&parts, &rest));
	ck_assert_uint_gt(portions, 8);
	ck_assert(whole.dated == parts.dated && parts.dated == 5000 && parts.tokens == MEMBERS);
	ck_assert(fold_expire(&whole, 500) && fold_expire(&parts, 500));
	fold_encode(&whole, true, &a);
	fold_encode(&parts, true, &b);
	ck_assert(slice_equal(buf_slice(&a), buf_slice(&b)));
	fold_free(&whole);
	fold_free(&parts);
	buf_free(&log);
	buf_free(&a);
	buf_free(&b);
}

/* A log of members from a small or a large world, most of it well-formed. */
static void random_log(struct buf *log, uint64_t *state, bool flawed)
{
	uint64_t world = 1 + random_next(state) % (random_next(state) % 2 ? 20 : 2000);
	size_t tokens = random_next(state) % 1500;
	bool dated = random_next(state) % 4;

	for (size_t i = 0; i < tokens; i++) {
		uint64_t member = random_next(state) % world;
		bool added = random_next(state) % 3;
		buf_add(log, added ? "+" : "-", 1);
		buf_printf(log, "%.*llu", (int)(member % 30), (unsigned long long)member);
		if (member == 0)
			BUF_ADD(log, "0");
		if (added && dated && random_next(state) % 2)
			buf_printf(log, "\x02%010u", (unsigned)(1 + random_next(state) % MOMENTS));
		BUF_ADD(log, " ");
	}
	if (flawed && buf_size(log))
		log->data[log->start + random_next(state) % buf_size(log)] =
			" +-\0x\x01\x02"
			"0"[random_next(state) % 8];
}

/* The fold's log of all members, and the same log at another place, have the same members. */
static bool agrees_elsewhere(const struct model *model, struct fold *f)
{
	struct buf without = BUF_EMPTY, log = BUF_EMPTY, moved = BUF_EMPTY;
	bool good;

	/* Without the removals it is not the log of the fold. */
	fold_encode(f, false, &without);
	good = model->live == model->count || !fold_take_encoded(f, buf_slice(&without));
	fold_encode(f, true, &log);
	good = good && fold_take_encoded(f, buf_slice(&log)) && f->bytes == buf_size(&log) &&
		f->tokens == model->count && model_agrees(model, f);
	BUF_ADD(&moved, "before");
	buf_add_slice(&moved, buf_slice(&log));
	fold_rebase(f, buf_slice(&log).p, buf_slice(&moved).p + 6);
	buf_free(&without);
	buf_free(&log);
	good = good && model_agrees(model, f);
	/* It borrows a copy, which the caller does not have. */
	fold_reset(f);
	buf_free(&moved);
	return good;
}

/* As time passes. */
static bool agrees_at_all_times(struct model *model, struct fold *f, uint64_t *state)
{
	bool good = true;

	for (int64_t now = 0; now <= MOMENTS && good;
		now += 1 + (int64_t)(random_next(state) % (MOMENTS / 4))) {
		size_t live = f->live;
		bool any = fold_expire(f, now);
		model_expire(model, now);
		good = model_agrees(model, f) && (any || f->live == live);
	}
	return good;
}

LOOP_TEST(as_the_model, 10)
{
	static struct model model;
	struct fold f = { .seed = (uint64_t)_i };

	for (uint64_t seed = (uint64_t)_i * 20; seed < (uint64_t)_i * 20 + 20; seed++) {
		uint64_t state = seed;
		struct buf log = BUF_EMPTY;
		random_log(&log, &state, seed % 2);
		model = (struct model){ .count = 0 };
		bool good = model_log(&model, buf_slice(&log));
		fold_reset(&f);
		ck_assert_msg(fold_log(&f, guard_place(buf_slice(&log))) == good, "seed %llu",
			(unsigned long long)seed);
		/* The fold borrowed the guarded copy, which is valid until the next round. */
		if (good)
			ck_assert_msg(model_agrees(&model, &f) &&
					agrees_at_all_times(&model, &f, &state) &&
					agrees_elsewhere(&model, &f),
				"seed %llu", (unsigned long long)seed);
		buf_free(&log);
	}
	fold_free(&f);
}

/*
 * The first use of a page is expensive: a portion has few new members for a new table, and no table is cleared that is not mapped
 * by itself.
 */
TEST(portions_of_a_new_table)
{
	enum { MEMBERS = 300000, BYTES = 9, FEW = 2048 / BYTES + 1 };
	struct buf log = BUF_EMPTY;
	struct fold f = { .seed = 1 };
	struct slice rest;

	for (size_t i = 0; i < MEMBERS; i++)
		buf_printf(&log, "+%07zu ", i);
	rest = buf_slice(&log);
	while (rest.n) {
		size_t members = f.member_count, slots = f.slot_count, size;
		bool moves = f.old;
		ck_assert(fold_portion(&f, &rest));
		if (moves || (slots > 65536 && f.slot_count > slots))
			ck_assert_uint_le(f.member_count - members, FEW);
		size = f.slot_count * 8;
		ck_assert(size <= HEAP_LARGE / 4 || size >= HEAP_LARGE);
	}
	ck_assert_uint_eq(f.member_count, MEMBERS);
	fold_free(&f);
	buf_free(&log);
}

/* A large table moves to a larger one step by step. At any moment each member is found once, and no other. */
TEST(grows_in_steps)
{
	enum { MEMBERS = 40000, LOOKS = 97 };
	static char names[MEMBERS][8];
	struct fold f = { .seed = 1 };
	size_t at, growing = 0;
	bool live;

	for (size_t i = 0; i < MEMBERS; i++) {
		size_t n = (size_t)snprintf(names[i], sizeof(names[i]), "%zu", i),
		       earlier = i * 31 % (i + 1);
		ck_assert(!fold_find(&f, slice_of(names[i], n), &at));
		fold_add(&f, slice_of(names[i], n));
		growing += f.old != NULL;
		ck_assert(fold_find(&f, slice_of(names[earlier], strlen(names[earlier])), &at));
		ck_assert_uint_eq(at, earlier);
		if (i % LOOKS == 0)
			fold_remove(&f, slice_of(names[earlier], strlen(names[earlier])));
		ck_assert_uint_eq(f.member_count, i + 1);
	}
	ck_assert_uint_gt(growing, MEMBERS / 4);
	for (size_t i = 0; i < MEMBERS; i++)
		ck_assert(fold_mentions(&f, slice_of(names[i], strlen(names[i])), &live) &&
			live == f.members[i].live);
	fold_reset(&f);
	ck_assert(!fold_find(&f, SLICE("1"), &at));
	fold_add(&f, SLICE("1"));
	ck_assert_uint_eq(f.member_count, 1);
	/* Emptied while it grows: nothing is left of the smaller table. */
	for (size_t i = 0; !f.old; i++)
		fold_add(&f, slice_of(names[i], strlen(names[i])));
	fold_reset(&f);
	ck_assert_ptr_null(f.old);
	for (size_t i = 0; i < MEMBERS / 4; i++)
		ck_assert(!fold_find(&f, slice_of(names[i], strlen(names[i])), &at));
	fold_free(&f);
}
