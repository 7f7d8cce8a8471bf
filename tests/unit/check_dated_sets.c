/*
 * Views of sets with members that expire: at every moment each answer equals that of a sorted
 * array, however the set is stored and whatever is in memory, and what was computed is kept as long
 * as nothing expires.
 */
#include "collection/set/answer.h"
#include "collection/set/moment.h"

#include "dated.h"
#include "unit.h"
#include "util/random.h"
#include "viewing.h"

/* --- a model --- */

enum { WORLD = 40, LAYERS = 6, LASTS = 30 /* seconds in which members expire */ };

/* What the layers have about each member: the head, the runs, the log. */
static struct layer {
	struct word {
		enum { NOTHING, ADDED, REMOVED } what;
		int date; /* if it is added, in seconds from DATED_AT; 0 for none */
	} words[WORLD];
} layers[LAYERS];

enum { HEAD, LOG = LAYERS - 1 };

static uint64_t chance;
static struct oplog_run runs[LAYERS];
static size_t run_count;
static struct buf head_text, log_text;

static size_t below(size_t n)
{
	return random_next(&chance) % n;
}

static struct word random_word(void)
{
	struct word word = { .what = below(4) ? ADDED : REMOVED };

	if (word.what == ADDED && below(4))
		word.date = (int)below(LASTS + 6) - 4;
	return word;
}

static const char *name_of(size_t i)
{
	static char names[4][16];
	static unsigned next;
	char *name = names[next++ % 4];

	snprintf(name, 16, "m%02zu", i);
	return name;
}

static void write_word(struct buf *out, const struct word *word, size_t i)
{
	buf_printf(out, "%s%s", word->what == ADDED ? "+" : "-", name_of(i));
	if (word->date)
		buf_printf(out, "^%d", word->date);
	BUF_ADD(out, " ");
}

/* Fills a layer. Returns its text. */
static const char *fill(struct layer *layer, size_t part, struct buf *out)
{
	buf_consume(out, buf_size(out));
	memset(layer, 0, sizeof(*layer));
	for (size_t i = 0; i < WORLD; i++) {
		if (below(part))
			continue;
		layer->words[i] = random_word();
		write_word(out, &layer->words[i], i);
	}
	BUF_ADD(out, "\0");
	out->end--;
	return buf_slice(out).p;
}

static bool is_in(size_t i, int64_t now)
{
	struct word word = { NOTHING, 0 };

	for (size_t l = 0; l < LAYERS; l++) {
		if (layers[l].words[i].what != NOTHING)
			word = layers[l].words[i];
	}
	return word.what == ADDED && (word.date == 0 || DATED_AT + word.date > now);
}

static uint64_t ttl_of(size_t i, int64_t now)
{
	for (size_t l = LAYERS; l-- > 0;) {
		const struct word *word = &layers[l].words[i];
		if (word->what != NOTHING)
			return !is_in(i, now) ? SET_TTL_NONE
				: word->date  ? (uint64_t)(DATED_AT + word->date - now)
					      : SET_TTL_NEVER;
	}
	return SET_TTL_NONE;
}

static void update_view(void)
{
	struct buf base = BUF_EMPTY;

	cupboard_base(&base, dated_log(buf_slice(&head_text).p), runs, run_count,
		dated_log(buf_slice(&log_text).p));
	ck_assert_int_eq(set_model_update(&view, buf_slice(&base)), OPLOG_GOOD);
	/* As each read does. */
	set_view_advance(&view, view.now);
	buf_free(&base);
}

static void append(void)
{
	for (size_t n = 1 + below(4); n > 0; n--) {
		size_t i = below(WORLD);
		layers[LOG].words[i] = random_word();
		write_word(&log_text, &layers[LOG].words[i], i);
	}
	BUF_ADD(&log_text, "\0");
	log_text.end--;
	update_view();
}

static void make_set(uint64_t seed)
{
	struct buf text = BUF_EMPTY;
	size_t count;

	chance = seed;
	memset(layers, 0, sizeof(layers));
	(void)fill(&layers[HEAD], below(2) ? 4 : SIZE_MAX, &head_text);
	count = below(LAYERS - 1);
	for (run_count = 0; run_count < count;) {
		const char *log = fill(&layers[1 + run_count], 1 + below(4), &text);
		/* A run without entries is none. */
		if (*log)
			runs[run_count] = dated_run(&cupboard, log, 1 + below(WORLD));
		else
			count--;
		run_count += *log != 0;
	}
	(void)fill(&layers[LOG], 1 + below(4), &log_text);
	buf_free(&text);
	update_view();
}

/* --- answers --- */

static bool over(struct env *e)
{
	e->grain = random_next(&e->random) % 64;
	return true;
}

static struct env env = { .is_over = over };

/* The world moves on while an answer is in progress, in tests of that. */
static bool moves_on;

static void move_on(int64_t seconds)
{
	set_view_advance(&view, view.now + seconds);
}

/* As in a cache that is too small, when no reader has the view open. */
static void throw_out(void)
{
	struct set_part *item, *next;

	for (item = TAILQ_FIRST(&store.used); item; item = next) {
		next = TAILQ_NEXT(item, link);
		if (below(3) == 0)
			set_part_drop(item);
	}
}

static void ask(struct set_request *r)
{
	enum { ROUNDS = 100000 };

	for (int i = 0; i < ROUNDS && !set_answer(&view, r); i++) {
		ck_assert(view.want_count || view.env);
		ck_assert(set_model_load(&cupboard, &view));
		if (moves_on && below(8) == 0)
			move_on((int64_t)below(2));
		if (below(200) == 0)
			throw_out();
	}
	ck_assert(r->answered);
	set_view_end_wants(&view);
}

/* The number of a member. */
static size_t number_of(struct slice member)
{
	ck_assert_uint_eq(member.n, 3);
	return (size_t)(member.p[1] - '0') * 10 + (size_t)(member.p[2] - '0');
}

/* Each is a member, and there are this many of them; each only once, unless `repeats`. */
static void has_members(struct slice text, uint64_t count, bool repeats, const char *verb)
{
	bool seen[WORLD] = { false };
	struct slice member;

	for (; (member = slice_token(&text)).n; count--) {
		size_t i = number_of(member);
		ck_assert_msg(is_in(i, view.now), "%s: %s at %d", verb, name_of(i),
			(int)(view.now - DATED_AT));
		ck_assert_msg(repeats || !seen[i], "%s: %s twice", verb, name_of(i));
		ck_assert_msg(count > 0, "%s: too many", verb);
		seen[i] = true;
	}
	ck_assert_msg(count == 0, "%s: %d too few", verb, (int)count);
}

static uint64_t members(size_t from, size_t to)
{
	uint64_t count = 0;

	for (size_t i = from; i < to; i++)
		count += is_in(i, view.now);
	return count;
}

static void check_all(void)
{
	struct set_request r = { .verb = SET_ALL };

	ask(&r);
	has_members(buf_slice(&r.shared->text), members(0, WORLD), false, "all");
	set_request_free(&r);
}

static void check_test(void)
{
	struct buf names = BUF_EMPTY;
	struct set_request r = { .verb = SET_TEST };

	for (size_t i = 0; i < WORLD; i++)
		buf_printf(&names, "%s ", name_of(i));
	r.members = buf_slice(&names);
	ask(&r);
	for (size_t i = 0; i < WORLD; i++)
		ck_assert_msg(buf_slice(&r.text).p[2 * i] == '0' + is_in(i, view.now), "test %s",
			name_of(i));
	set_request_free(&r);
	buf_free(&names);
}

static void check_one(void)
{
	size_t i = below(WORLD);
	struct slice name = slice_of(name_of(i), 3);
	struct set_request has = { .verb = SET_HAS, .members = name },
			   ttl = { .verb = SET_TTL, .members = name };

	ask(&has);
	ck_assert_uint_eq(has.number, is_in(i, view.now));
	ask(&ttl);
	ck_assert_uint_eq(ttl.number, ttl_of(i, view.now));
	set_request_free(&has);
	set_request_free(&ttl);
}

static void check_sample(void)
{
	struct set_request r = { .verb = SET_SAMPLE,
		.count = below(3) ? 1 + below(3) : 1 + below(WORLD),
		.repeats = below(2),
		.random = random_next(&chance) };
	uint64_t all;

	ask(&r);
	all = members(0, WORLD);
	has_members(buf_slice(&r.text),
		r.repeats && all        ? r.count
			: r.count < all ? r.count
					: all,
		r.repeats, "sample");
	set_request_free(&r);
}

static void check_range(void)
{
	size_t from = below(WORLD), to = from + below(WORLD - from);
	struct set_range range = {
		.from = slice_of(name_of(from), 3), .to = slice_of(name_of(to), 3), .has_to = true
	};
	struct set_request r = { .verb = SET_RANGE, .range = range, .count = WORLD },
			   count = { .verb = SET_COUNT, .range = range };

	ask(&r);
	has_members(buf_slice(&r.text), members(from, to + 1), false, "range");
	ask(&count);
	ck_assert_uint_eq(count.number, members(from, to + 1));
	set_request_free(&r);
	set_request_free(&count);
}

static void check_count(void)
{
	struct set_request count = { .verb = SET_COUNT }, info = { .verb = SET_INFO };

	ask(&count);
	ck_assert_uint_eq(count.number, members(0, WORLD));
	ask(&info);
	ck_assert_uint_eq(info.info.members, members(0, WORLD));
	set_request_free(&count);
	set_request_free(&info);
}

static void check_take(void)
{
	struct set_request all = { .verb = SET_TAKE, .bytes = SIZE_MAX },
			   some = { .verb = SET_TAKE, .bytes = 1 + below(100) };
	struct slice text, member;
	uint64_t count = 0;

	ask(&all);
	has_members(buf_slice(&all.text), members(0, WORLD), false, "take");
	set_request_free(&all);
	ask(&some);
	text = buf_slice(&some.text);
	while ((member = slice_token(&text)).n)
		count++;
	has_members(buf_slice(&some.text), count, false, "take some");
	set_request_free(&some);
}

static void check_answers(void)
{
	static void (*const checks[])(void) = { check_all, check_test, check_one, check_sample,
		check_range, check_count, check_take };
	enum { CHECKS = sizeof(checks) / sizeof(checks[0]) };
	size_t first = below(CHECKS);

	for (size_t i = 0; i < CHECKS; i++)
		checks[(first + i) % CHECKS]();
}

static void see_all_expire(bool slices)
{
	enum { SEEDS = 40 };

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		viewing_teardown();
		viewing_setup();
		env.random = seed;
		view.env = slices ? &env : NULL;
		make_set(seed);
		for (set_view_advance(&view, DATED_AT); view.now < DATED_AT + LASTS + 4;
			move_on((int64_t)below(5))) {
			check_answers();
			if (below(4) == 0)
				append();
			if (below(4) == 0)
				throw_out();
		}
	}
	buf_free(&head_text);
	buf_free(&log_text);
}

TEST(answers_at_each_moment)
{
	see_all_expire(false);
}

TEST(answers_in_slices)
{
	see_all_expire(true);
}

/* An answer in progress begins again if a member expires, and it ends. */
TEST(members_expire_during_an_answer)
{
	moves_on = true;
	see_all_expire(true);
}

/* --- what is kept while nothing expires --- */

/* Computes everything that a view keeps, at this moment, and checks the number of members. */
static void keeps(int at, uint64_t count)
{
	struct set_request all = { .verb = SET_ALL }, counted = { .verb = SET_COUNT },
			   range = { .verb = SET_COUNT, .range = { .from = SLICE("a") } };

	set_view_advance(&view, DATED_AT + at);
	ask(&all);
	ask(&counted);
	ck_assert_uint_eq(counted.number, count);
	ask(&range);
	ck_assert_uint_eq(range.number, count);
	set_request_free(&all);
	set_request_free(&counted);
	set_request_free(&range);
	ck_assert(view.text && view.memos.any);
}

enum { TEXT = 1, BELOW = 2, COUNTED = 4, SORTED_HEAD = 8 };

/* Checks which of it is still there at that moment. */
static void still_has(int at, unsigned what)
{
	uint64_t version = view.version;
	unsigned has;

	set_view_advance(&view, DATED_AT + at);
	has = (view.text ? TEXT : 0) | (view.below ? BELOW : 0) |
		(view.counted_runs ? COUNTED : 0) | (buf_size(&view.sorted_head) ? SORTED_HEAD : 0);
	ck_assert_msg(has == what, "at %d: %u", at, has);
	ck_assert(view.memos.any == (view.text != NULL));
	ck_assert((version == view.version) == (view.text != NULL));
}

static void update(const char *head, size_t count, const char *log)
{
	struct buf base = BUF_EMPTY;

	cupboard_base(&base, dated_log(head), runs, count, dated_log(log));
	ck_assert_int_eq(set_model_update(&view, buf_slice(&base)), OPLOG_GOOD);
	buf_free(&base);
}

FIXTURE(viewing_setup, viewing_teardown)

TEST(dates_in_the_log)
{
	runs[0] = dated_run(&cupboard, "+a +b +c ", 2);
	update("", 1, "+a^5 +d^9 +e -b ");
	keeps(0, 4);
	still_has(4, TEXT | BELOW | COUNTED);
	/* The other layers are as before. */
	still_has(5, BELOW | COUNTED);
	keeps(5, 3);
	still_has(8, TEXT | BELOW | COUNTED);
	still_has(100, BELOW | COUNTED);
	keeps(100, 2);
	still_has(1000, TEXT | BELOW | COUNTED);
}

/* A date that a later word has replaced has no effect. */
TEST(replaced_dates)
{
	runs[0] = dated_run(&cupboard, "+a +b +c ", 2);
	update("", 1, "+a^5 +d^20 +a ");
	keeps(0, 4);
	still_has(19, TEXT | BELOW | COUNTED);
	still_has(20, BELOW | COUNTED);
	keeps(20, 3);
	update("", 1, "+a^5 +d^20 +a +x^30 -x ");
	keeps(20, 3);
	still_has(30, TEXT | BELOW | COUNTED);
}

TEST(dates_in_the_head)
{
	runs[0] = dated_run(&cupboard, "+a +b +c ", 2);
	update("+x^5 +y ", 1, "-b ");
	keeps(0, 4);
	still_has(4, TEXT | BELOW | SORTED_HEAD);
	still_has(5, 0);
	keeps(5, 3);
	still_has(1000, TEXT | BELOW | SORTED_HEAD);
}

/* The tables are in memory, and have all dates. */
static void dates_in(size_t count, const char *log, uint64_t all)
{
	update("", count, log);
	keeps(0, all);
	keeps(1, all);
	still_has(4, TEXT | BELOW | COUNTED);
	still_has(5, 0);
	keeps(5, all - 1);
	still_has(6, TEXT | BELOW | COUNTED);
	still_has(8, TEXT | BELOW | COUNTED);
	/* Moments may be missed. */
	still_has(11, 0);
	keeps(11, all - 2);
	still_has(12, TEXT | BELOW | COUNTED);
	still_has(1000, TEXT | BELOW | COUNTED);
}

TEST(dates_in_one_table)
{
	runs[0] = dated_run(&cupboard, "+a +b^5 +c +d^9 ", 9);
	dates_in(1, "+x -y ", 5);
}

TEST(dates_in_several_tables)
{
	runs[0] = dated_run(&cupboard, "+a +b^5 +c +d^9 +e ", 2);
	dates_in(1, "+x -y ", 6);
}

TEST(dates_in_several_runs)
{
	runs[0] = dated_run(&cupboard, "+a +b^5 +c +d +e ", 2);
	runs[1] = dated_run(&cupboard, "-a +d^9 ", 2);
	runs[2] = dated_run(&cupboard, "+f ", 2);
	dates_in(3, "+x -y ", 6);
}

/* What a first read computes at the date of nothing is of use to the next one. */
TEST(a_cold_view_is_computed_once)
{
	runs[0] = dated_run(&cupboard, "+a +b^5 +c +d^9 +e ", 2);
	runs[1] = dated_run(&cupboard, "-a +f^7 ", 9);
	update("", 2, "+x ");
	keeps(0, 6);
	still_has(1, TEXT | BELOW | COUNTED);
	still_has(4, TEXT | BELOW | COUNTED);
	still_has(5, 0);
}

/* Of tables that are not in memory only the first date is known: nothing may be missed. */
TEST(dates_of_tables_that_were_evicted)
{
	runs[0] = dated_run(&cupboard, "+a +b^5 +c +d^9 +e^6 +f^20 ", 2);
	update("", 1, "+x ");
	keeps(0, 7);
	keeps(1, 7);
	while (!TAILQ_EMPTY(&store.used) && TAILQ_LAST(&store.used, set_parts)->table.count)
		set_part_drop(TAILQ_LAST(&store.used, set_parts));
	still_has(4, TEXT | BELOW | COUNTED);
	still_has(5, 0);
	keeps(5, 6);
	still_has(6, 0);
	keeps(6, 5);
	keeps(9, 4);
	keeps(20, 3);
}

/* A new run has dates of its own, which may be before those of the others. */
TEST(dates_of_new_runs)
{
	runs[0] = dated_run(&cupboard, "+a +b^50 ", 9);
	runs[1] = dated_run(&cupboard, "+c^5 ", 9);
	update("", 1, "+x ");
	keeps(0, 3);
	keeps(1, 3);
	update("", 2, "+x ");
	keeps(1, 4);
	still_has(4, TEXT | BELOW | COUNTED);
	still_has(5, 0);
	keeps(5, 3);
}

/* Clocks of servers are estimates. A member that has expired does not return. */
TEST(a_clock_goes_back)
{
	update("", 0, "+a +b^5 ");
	keeps(5, 1);
	still_has(4, TEXT | BELOW);
	ck_assert_int_eq(view.now, DATED_AT + 5);
	keeps(0, 1);
}

/* A view spans the moment at which its base became one with dates. */
TEST(dates_that_are_appended)
{
	update("", 0, "+a ");
	ck_assert(!set_view_is_dated(&view));
	update("", 0, "+a +b^5 ");
	ck_assert(set_view_is_dated(&view));
	keeps(4, 2);
	keeps(5, 1);
	ck_assert(!set_view_is_dated(&view));
	/* A renewal that was written before its date, and is read after it. */
	update("", 0, "+a +b^5 +b^9 ");
	keeps(6, 2);
	/* One that comes too late adds the member again. */
	update("", 0, "+a +b^5 +b^9 +b^12 ");
	keeps(10, 2);
	keeps(12, 1);
}

/* Half of the members of a run have expired, which is worth a merge. */
TEST(spent_runs)
{
	runs[0] = dated_run(&cupboard, "+a +b +c +d ", 2);
	runs[1] = dated_run(&cupboard, "+e^4 +f^10 +g ", 2);
	update("", 2, "");
	set_view_advance(&view, DATED_AT + 6);
	ck_assert(!set_view_is_spent(&view));
	set_view_advance(&view, DATED_AT + 7);
	ck_assert(set_view_is_spent(&view));
	/* Few have dates. */
	runs[1] = dated_run(&cupboard, "+e^4 +f +g +h +i +j +k +l ", 2);
	update("", 2, "");
	set_view_advance(&view, DATED_AT + 8);
	ck_assert(!set_view_is_spent(&view));
	update("", 1, "");
	ck_assert(!set_view_is_spent(&view));
}

/* Without an entry for each member the dates of a table are refused, and so are others than said. */
TEST(runs_that_do_not_match)
{
	struct set_request all = { .verb = SET_ALL };

	runs[0] = dated_run(&cupboard, "+a +b^5 ", 9);
	runs[0].dated = 0;
	update("", 1, "");
	ck_assert(!set_answer(&view, &all) && !set_model_load(&cupboard, &view));
	runs[0] = dated_run(&cupboard, "+a +b^5 +c +d^7 ", 2);
	runs[0].dated = 1;
	update("", 1, "");
	ck_assert(!set_answer(&view, &all) && !set_model_load(&cupboard, &view));
	set_request_free(&all);
}
