#include <stdio.h>

#include "collection/text/fold.h"
#include "model.h"
#include "unit.h"
#include "util/random.h"

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
		"+a\tb ", "@x ", "+a @x ", "+a,b", "1", "+a *b ", "+a + " };
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
	static const char log[] = "+alpha +beta -alpha +\x80x -gamma ";
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

/* A log of members from a small or a large world, most of it well-formed. */
static void random_log(struct buf *log, uint64_t *state, bool flawed)
{
	uint64_t world = 1 + random_next(state) % (random_next(state) % 2 ? 20 : 2000);
	size_t tokens = random_next(state) % 1500;

	for (size_t i = 0; i < tokens; i++) {
		uint64_t member = random_next(state) % world;
		BUF_ADD(log, "+");
		if (random_next(state) % 3 == 0)
			log->data[log->end - 1] = '-';
		buf_printf(log, "%.*llu ", (int)(member % 30), (unsigned long long)member);
		if (member % 30 == 0 && member == 0)
			log->end--, BUF_ADD(log, "0 ");
	}
	if (flawed && buf_size(log))
		log->data[log->start + random_next(state) % buf_size(log)] =
			" +-\0x\x01"[random_next(state) % 6];
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
			ck_assert_msg(
				model_agrees(&model, &f), "seed %llu", (unsigned long long)seed);
		buf_free(&log);
	}
	fold_free(&f);
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
