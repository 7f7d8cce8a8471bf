/*
 * Histories of one client: commands on two sets, several concurrently, sent to the lanes in front
 * of a server, and to sorted arrays. Logs and tables are tiny, so that sets are spilled and merged
 * all the time. Every reply is compared.
 */
#include "conversations.h"
#include "parts.h"
#include "server.h"
#include "table_model.h"
#include "util/random.h"

enum { SETS = 2, AT_ONCE = 5, STEPS = 120 };

static struct collection_options options;
static struct server server;
static struct table_model world;
static uint64_t chance;

static struct set {
	bool there;
	bool in[TABLE_MODEL_MAX];
} sets[SETS];

static const char keys[SETS][2] = { "k", "l" };

/* A command, and its arguments. */
static struct asked {
	enum {
		ADD,
		REMOVE,
		REPLACE,
		TEST,
		COUNT,
		RANGE,
		SCAN,
		ALL,
		SAMPLE,
		POP,
		COMPACT,
		TOUCH,
		TAKE,
		UNITE,
		MEET,
		LESSEN,
		VERBS
	} verb;
	size_t set, members[64], member_count, count;
	size_t from, to; /* numbers of members; world.count for none */
} asked[AT_ONCE];

static size_t below(size_t n)
{
	return (size_t)(random_next(&chance) % n);
}

/* --- commands --- */

static void add_member(struct buf *line, size_t i)
{
	BUF_ADD(line, " ");
	buf_add_slice(line, table_model_name(&world, i));
}

static void add_members(struct buf *line, struct asked *a, size_t most)
{
	a->member_count = 1 + below(most);
	for (size_t i = 0; i < a->member_count; i++)
		add_member(line, a->members[i] = below(world.count));
}

static void add_range(struct buf *line, struct asked *a)
{
	a->from = below(world.count);
	a->to = below(world.count);
	add_member(line, a->from);
	add_member(line, a->to);
}

static void write_line(struct buf *line, struct asked *a)
{
	static const char *const names[VERBS] = { "sadd", "srem", "sset", "smismember", "scount",
		"srange", "sscan", "smembers", "srandmember", "spop", "scompact", "touch", "stake",
		"sunion", "sinter", "sdiff" };

	buf_printf(line, "%s %s", names[a->verb], keys[a->set]);
	a->member_count = 0;
	a->count = below(4) ? below(6) : below(100);
	a->from = a->to = world.count;
	if (a->verb == ADD || a->verb == REMOVE || a->verb == TEST)
		add_members(line, a, below(6) ? 3 : 20);
	else if (a->verb == REPLACE)
		add_members(line, a, 60);
	else if (a->verb == COUNT || a->verb == RANGE)
		add_range(line, a);
	else if (a->verb == TOUCH)
		buf_printf(line, " %d", (int)below(2) * 1000);
	else if (a->verb >= UNITE)
		buf_printf(line, " %s", keys[1 - a->set]);
	if (a->verb == RANGE || a->verb == SCAN || a->verb == SAMPLE || a->verb == POP)
		buf_printf(line, " %zu", a->count += a->verb == SCAN && a->count == 0);
	if (a->verb == SCAN && below(3))
		add_member(line, a->from = below(world.count));
	BUF_ADD(line, "\r\n");
}

/* --- expected replies --- */

static struct slice told; /* the part that has not been checked yet */

static struct part part(void)
{
	struct part taken;

	ck_assert(parts_next(&told, &taken));
	return taken;
}

static bool hears(const char *text)
{
	return slice_equal(part().line, slice_of(text, strlen(text)));
}

/* Reads a VALUE of any key: its text. Returns false if there is none. */
static bool value(struct slice *text)
{
	struct part taken = part();

	if (slice_equal(taken.line, SLICE("END")))
		return false;
	ck_assert_uint_gt(taken.key.n, 0);
	*text = taken.data;
	return true;
}

static size_t number_of(struct slice member)
{
	size_t i = table_model_seek(&world, member);

	ck_assert(i < world.count && slice_equal(table_model_name(&world, i), member));
	return i;
}

/*
 * Checks that the members of the text are those from `from` up to `to`, but at most this number,
 * in order if required.
 */
static bool lists(
	struct slice text, const bool in[], size_t from, size_t to, size_t most, bool order)
{
	bool seen[TABLE_MODEL_MAX] = { false };
	size_t count = 0, expected = 0, last = 0;
	struct slice member;

	while ((member = slice_token(&text)).n) {
		size_t i = number_of(member);
		if (!in[i] || seen[i] || i < from || i >= to || (order && i < last))
			return false;
		seen[i] = true;
		last = i;
		count++;
	}
	/* In order nothing is left out before the last. */
	for (size_t i = from; i < to && expected < most; i++) {
		expected += in[i];
		if (order && in[i] && !seen[i])
			return false;
	}
	return count == expected;
}

/* --- each command --- */

static bool changed(struct set *s, const struct asked *a)
{
	if (a->verb == REPLACE)
		memset(s->in, 0, sizeof(s->in));
	if (a->verb == REMOVE && !s->there)
		return hears("NOT_FOUND");
	s->there = true;
	for (size_t i = 0; i < a->member_count; i++)
		s->in[a->members[i]] = a->verb != REMOVE;
	return hears(a->verb == REMOVE ? "DELETED" : "STORED");
}

static bool tested(const struct set *s, const struct asked *a)
{
	struct slice digits = part().line;

	for (size_t i = 0; i < a->member_count; i++) {
		if (2 * i >= digits.n || digits.p[2 * i] != (s->in[a->members[i]] ? '1' : '0'))
			return false;
	}
	return digits.n == 2 * a->member_count - 1;
}

static bool counted(const struct set *s, const struct asked *a)
{
	size_t count = 0;
	char text[24];

	for (size_t i = a->from; i <= a->to; i++)
		count += s->in[i];
	snprintf(text, sizeof(text), "%zu", count);
	return hears(text);
}

/* Some members in order, or any. */
static bool listed(const struct set *s, const struct asked *a)
{
	size_t from = a->verb == RANGE ? a->from : a->from < world.count ? a->from + 1 : 0;
	size_t to = a->verb == RANGE ? a->to + 1 : world.count;
	struct slice text = { "", 0 };
	bool any = value(&text);

	if (a->verb == SAMPLE || a->verb == POP)
		from = 0;
	return lists(text, s->in, from, to > from ? to : from, a->count,
		       a->verb == RANGE || a->verb == SCAN) &&
		(!any || hears("END"));
}

static bool popped(struct set *s, const struct asked *a)
{
	struct slice before = told, text = { "", 0 }, member;

	if (!listed(s, a))
		return false;
	told = before;
	if (!value(&text))
		return true;
	while ((member = slice_token(&text)).n)
		s->in[number_of(member)] = false;
	return hears("END");
}

/* A block of a large set may be any part of it, but it has a member if the set has one. */
static bool taken(struct set *s)
{
	struct slice text = { "", 0 }, member;

	if (!value(&text))
		return !memchr(s->in, true, sizeof(s->in));
	while ((member = slice_token(&text)).n) {
		size_t i = number_of(member);
		if (!s->in[i])
			return false;
		s->in[i] = false;
	}
	return hears("END");
}

static bool listed_all(const struct set *s)
{
	struct slice text = { "", 0 };
	bool any = value(&text);

	return any == s->there && lists(text, s->in, 0, world.count, SIZE_MAX, false) &&
		(!any || hears("END"));
}

static bool combined(const struct asked *a)
{
	bool in[TABLE_MODEL_MAX];
	struct slice text;

	for (size_t i = 0; i < world.count; i++) {
		bool first = sets[a->set].in[i], second = sets[1 - a->set].in[i];
		in[i] = a->verb == UNITE  ? first || second
			: a->verb == MEET ? first && second
					  : first && !second;
	}
	return value(&text) && lists(text, in, 0, world.count, SIZE_MAX, true) && hears("END");
}

/* Where a set is replaced its runs may be being merged, and then it is not done. */
static bool compacted(void)
{
	struct slice got = part().line;

	return slice_equal(got, SLICE("OK")) || slice_equal(got, SLICE("SERVER_ERROR busy"));
}

static bool is_right(const struct asked *a)
{
	struct set *s = &sets[a->set];

	if (!s->there &&
		(a->verb == TEST || a->verb == COUNT || a->verb == COMPACT || a->verb == TOUCH))
		return hears("NOT_FOUND");
	switch (a->verb) {
	case ADD:
	case REMOVE:
	case REPLACE:
		return changed(s, a);
	case TEST:
		return tested(s, a);
	case COUNT:
		return counted(s, a);
	case POP:
		return popped(s, a);
	case TAKE:
		return taken(s);
	case ALL:
		return listed_all(s);
	case COMPACT:
		return compacted();
	case TOUCH:
		return hears("TOUCHED");
	case UNITE:
	case MEET:
	case LESSEN:
		return combined(a);
	default:
		return listed(s, a);
	}
}

/* --- histories --- */

/* Answers calls in any order, but those on one key in their order; meanwhile time passes. */
static void answer_all(void)
{
	while (fake_waiting(&fake) || fake.turn_count) {
		size_t i = fake.first, key;

		(void)fake_pass(&fake, below(3));
		if (fake_waiting(&fake) == 0)
			continue;
		for (size_t skip = below(4); skip > 0 && i + 1 < fake.count; skip--)
			i++;
		while (fake.calls[i].answered)
			i = i + 1 < fake.count ? i + 1 : fake.first;
		for (key = fake.first; key < i; key++) {
			if (!fake.calls[key].answered &&
				slice_equal(fake.calls[key].call.key, fake.calls[i].call.key))
				break;
		}
		server_answer(&server, key);
	}
}

/* A command that reads several times must not be followed by one that writes. */
static size_t ask_some(void)
{
	struct buf text = BUF_EMPTY;
	size_t count = 1 + below(AT_ONCE), n = 0;

	while (n < count) {
		struct asked *a = &asked[n++];
		a->verb = below(2) ? ADD + below(2) : below(VERBS);
		if (a->verb == REPLACE && below(4))
			a->verb = TEST;
		a->set = below(SETS);
		write_line(&text, a);
		if (a->verb >= TAKE)
			break;
	}
	BUF_ADD(&text, "\0");
	ck_assert_pstr_eq(fake_ask(&fake, buf_slice(&text).p), NULL);
	buf_free(&text);
	return n;
}

static void history(uint64_t seed)
{
	chance = seed;
	memset(sets, 0, sizeof(sets));
	world.count = 0;
	while (world.count == 0 || world.count > 150)
		table_model_random(&world, &chance);
	options = (struct collection_options){ .log_size = 40 + below(300),
		.table_size = 40 + below(500),
		.cache = below(3) * below(20000),
		.merges = 1 + below(2),
		.block = 1 + below(500) };
	fake_setup();
	fake_takes(&options);
	if (below(2))
		fake_has_time(&fake);
	server_init(&server, &fake);
	/* Both are there from the start. */
	ck_assert_pstr_eq(fake_ask(&fake, "sset k\r\nsset l\r\n"), NULL);
	answer_all();
	sets[0].there = sets[1].there = true;
	(void)fake_told(&fake);
	for (int step = 0; step < STEPS; step++) {
		size_t count = ask_some();
		answer_all();
		const char *text = fake_told(&fake);
		told = slice_of(text, strlen(text));
		for (size_t i = 0; i < count; i++)
			ck_assert_msg(is_right(&asked[i]),
				"seed %d, step %d: number %zu, verb %d: %s", (int)seed, step, i,
				(int)asked[i].verb, text);
		ck_assert_uint_eq(told.n, 0);
	}
	server_free(&server);
	fake_teardown();
}

TEST(histories)
{
	for (uint64_t seed = 1; seed <= 150; seed++)
		history(seed);
}

/* Each history has its own. */
FIXTURE(NULL, NULL)
