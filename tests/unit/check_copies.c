/*
 * The form and the join of copies, with generated bases of four members, against a model: a set of
 * stamped words after a horizon, which this file parses from the text by itself.
 */
#include "collection/copies/copy.h"

#include "collection/copies/join.h"
#include "collection/copies/stamp.h"
#include "collection/text/fold.h"
#include "collection/text/lease.h"
#include "collection/text/log_index.h"
#include "collection/text/oplog.h"
#include "guard.h"
#include "unit.h"
#include "util/random.h"

enum { MEMBERS = 4, LAST_STAMP = 24, CASES = 4000, PORTION = 100, DATE = MEMBERS, CLOSED = 1000 };

/* The word that counts for each member and for the date, and the largest stamp that creates. */
struct model {
	uint64_t horizon, created;
	bool gone;
	char closed[CLOSED];
	struct {
		uint64_t stamp;
		char token[20];
	} words[MEMBERS + 1];
};

static struct copy parsed(struct slice base)
{
	struct copy copy;

	ck_assert_msg(copy_parse(base, &copy), "%.*s", (int)base.n, base.p);
	return copy;
}

static uint64_t stamp_in(const char *token)
{
	return stamp_parse(token + 2);
}

/* One name begins with another one. */
static const char *const names[MEMBERS] = { "a", "aa", "b", "c" };

static int member_of(const char *token)
{
	int i = 0;

	if (token[0] == '~')
		return DATE;
	while (strcmp(names[i], token + 1) != 0)
		i++;
	return i;
}

/* Of two words, the one with the larger stamp counts, then a removal, then the later date. */
static void count_word(struct model *m, uint64_t stamp, const char *token)
{
	int i = member_of(token);

	if (stamp <= m->horizon || stamp < m->words[i].stamp ||
		(stamp == m->words[i].stamp && strcmp(token, m->words[i].token) < 0))
		return;
	m->words[i].stamp = stamp;
	snprintf(m->words[i].token, sizeof(m->words[i].token), "%s", token);
}

/* Takes the last words of a group for its members. */
static void count_group(struct model *m, uint64_t stamp, char tokens[MEMBERS + 1][20])
{
	for (int i = 0; i <= MEMBERS; i++) {
		if (tokens[i][0])
			count_word(m, stamp, tokens[i]);
		tokens[i][0] = '\0';
	}
}

static struct model model_of(const char *base)
{
	struct model m = { .horizon = 0 };
	char text[2000], tokens[MEMBERS + 1][20] = { "" }, *word;
	uint64_t stamp = 0, largest = 0;
	bool closed = false, grouped = false;

	snprintf(text, sizeof(text), "%s", base);
	for (word = strtok(text, " "); word; word = strtok(NULL, " ")) {
		char kind = word[0] == '~' ? word[1] : 0;
		if (kind == 'o') {
			m.horizon = largest = stamp_in(word);
			closed = true;
		} else if (kind == 'g') {
			m.gone = true;
		} else if (kind == 's' || kind == 'c') {
			count_group(&m, stamp, tokens);
			stamp = stamp_in(word);
			grouped = closed = true;
			largest = stamp > largest ? stamp : largest;
			if (kind == 'c' && stamp > m.created && stamp > m.horizon)
				m.created = stamp;
		} else if (kind == 'e') {
			count_group(&m, stamp, tokens);
			grouped = false;
			stamp = 0;
		} else if (closed && kind != 'f') {
			if (!grouped && !stamp)
				stamp = ++largest;
			snprintf(tokens[member_of(word)], sizeof(tokens[0]), "%s", word);
		} else if (!closed) {
			strcat(strcat(m.closed, word), " ");
		}
	}
	count_group(&m, stamp, tokens);
	return m;
}

/* The join of models, as its definition says. */
static struct model join_models(const struct model *a, const struct model *b)
{
	bool b_counts = b->horizon != a->horizon ? b->horizon > a->horizon
		: b->gone != a->gone             ? b->gone
						 : strcmp(b->closed, a->closed) > 0;
	const struct model *from = b_counts ? b : a, *other = b_counts ? a : b;
	struct model m = *from;

	if (other->created > m.horizon && other->created > m.created)
		m.created = other->created;
	for (int i = 0; i <= MEMBERS; i++) {
		if (other->words[i].stamp)
			count_word(&m, other->words[i].stamp, other->words[i].token);
	}
	return m;
}

static void assert_same(const struct model *a, const struct model *b, const char *why)
{
	ck_assert_msg(a->horizon == b->horizon && a->gone == b->gone && a->created == b->created,
		"%s", why);
	ck_assert_str_eq(a->closed, b->closed);
	for (int i = 0; i <= MEMBERS; i++) {
		ck_assert_msg(a->words[i].stamp == b->words[i].stamp, "%s: member %d", why, i);
		ck_assert_str_eq(a->words[i].token, b->words[i].token);
	}
}

/* --- generated bases --- */

static uint64_t state;

static unsigned below(unsigned n)
{
	return (unsigned)(random_next(&state) % n);
}

static void add_tokens(struct buf *out, unsigned most)
{
	for (unsigned n = below(most + 1); n; n--) {
		if (below(8) == 0)
			buf_printf(out, "~t%u ", 1424450096 + below(3));
		else
			buf_printf(out, "%c%s ", below(2) ? '+' : '-', names[below(MEMBERS)]);
	}
}

#define RUN "@t0k4zq81mfwx.1.3.0.29.1048f82143307346 "

/* A base as text: groups in any order, some words in no group. One in four had one copy so far. */
static char *generate(void)
{
	struct buf out = BUF_EMPTY, words = BUF_EMPTY;
	struct copy head = { .horizon = below(4) ? 1 + below(LAST_STAMP) : 0 };

	head.gone = head.horizon && below(4) == 0;
	if (!head.gone) {
		if (below(2))
			BUF_ADD(&words, "@set.1 " RUN);
		add_tokens(&words, 3);
	}
	head.fill = below(3) ? 0 : 1 + below(LAST_STAMP);
	head.closed = buf_slice(&words);
	copy_add_closed(&out, &head);
	copy_end_closed(&out, &head);
	for (unsigned n = below(6); n; n--) {
		buf_free(&words);
		add_tokens(&words, 4);
		if (below(6))
			copy_add_group(
				&out, 1 + below(LAST_STAMP), below(4) == 0, buf_slice(&words));
		else
			buf_add_slice(&out, buf_slice(&words));
	}
	buf_free(&words);
	BUF_ADD(&out, "\0");
	return out.data;
}

static struct slice text_of(const char *text)
{
	return slice_of(text, strlen(text));
}

static char *joined(const char *a, const char *b, uint64_t horizon, bool *exists)
{
	struct copy x = parsed(text_of(a)), y = { .horizon = 0 };
	struct copy_join join;
	enum copy_read read;
	char *out;

	if (b)
		y = parsed(text_of(b));
	copy_join_begin(&join, &x, b ? &y : NULL, horizon, 0, 7);
	while ((read = copy_join_step(&join)) == COPY_WORD)
		;
	ck_assert_int_eq(read, COPY_END);
	if (exists)
		*exists = join.exists;
	out = strndup(buf_slice(&join.out).p, buf_size(&join.out));
	copy_join_free(&join);
	return out;
}

/* Runs a portion of the cases: a process for each case would take much longer. */
static void for_cases(int portion, void (*check)(void))
{
	for (int i = 0; i < PORTION; i++) {
		state = (uint64_t)(portion * PORTION + i);
		check();
	}
}

static void check_model(void)
{
	char *a = generate(), *b = generate(), *c = joined(a, b, 0, NULL);
	struct model x = model_of(a), y = model_of(b), got = model_of(c);
	struct model expected = join_models(&x, &y);

	assert_same(&got, &expected, c);
	free(a);
	free(b);
	free(c);
}

LOOP_TEST(join_is_that_of_the_model, CASES / PORTION)
{
	for_cases(_i, check_model);
}

/* Equal in every byte, so that equal copies are found by comparing them. */
static void check_semilattice(void)
{
	char *a = generate(), *b = generate(), *c = generate();
	char *ab = joined(a, b, 0, NULL), *ba = joined(b, a, 0, NULL);
	char *bc = joined(b, c, 0, NULL), *aa = joined(a, a, 0, NULL);
	char *left = joined(ab, c, 0, NULL), *right = joined(a, bc, 0, NULL);
	char *alone = joined(a, NULL, 0, NULL), *again = joined(ab, b, 0, NULL);

	ck_assert_str_eq(ab, ba);
	ck_assert_str_eq(left, right);
	ck_assert_str_eq(aa, alone);
	ck_assert_str_eq(again, ab);
	char *all[] = { a, b, c, ab, ba, bc, aa, left, right, alone, again };
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		free(all[i]);
}

LOOP_TEST(join_is_a_semilattice, CASES / PORTION)
{
	for_cases(_i, check_semilattice);
}

/* Returns the members and the date, in the form of `closed` words that are folded. */
static void fold_model(const struct model *m, const char *in[MEMBERS + 1], char text[CLOSED])
{
	char *word;

	snprintf(text, CLOSED, "%s", m->closed);
	for (int i = 0; i <= MEMBERS; i++)
		in[i] = "-";
	for (word = strtok(text, " "); word; word = strtok(NULL, " ")) {
		if (word[0] != '@')
			in[member_of(word)] = word;
	}
	for (int i = 0; i <= MEMBERS; i++) {
		if (m->words[i].stamp)
			in[i] = m->words[i].token;
	}
}

/* Closing changes neither the members nor whether there is a set, and keeps later words as they are. */
static void check_closing(void)
{
	uint64_t horizon = 1 + below(LAST_STAMP + 4);
	bool existed, exists;
	char *a = generate(), *b = joined(a, NULL, 0, &existed),
	     *c = joined(a, NULL, horizon, &exists);
	struct model before = model_of(b), after = model_of(c);
	const char *in[MEMBERS + 1], *now[MEMBERS + 1];
	char text[2][CLOSED];

	ck_assert_int_eq(existed, !before.gone || before.created > 0);
	ck_assert_int_eq(exists, existed);
	ck_assert_int_eq(exists, !after.gone || after.created > 0);
	bool closes = horizon > before.horizon &&
		(!before.gone || (before.created && before.created <= horizon));
	ck_assert_uint_eq(after.horizon, closes ? horizon : before.horizon);
	fold_model(&before, in, text[0]);
	fold_model(&after, now, text[1]);
	for (int i = 0; i <= MEMBERS; i++) {
		ck_assert_msg(in[i][0] == now[i][0], "%s: %s, %d", b, c, i);
		if (i == DATE)
			ck_assert_str_eq(in[i], now[i]);
		if (before.words[i].stamp > after.horizon)
			ck_assert_uint_eq(after.words[i].stamp, before.words[i].stamp);
	}
	free(a);
	free(b);
	free(c);
}

LOOP_TEST(closing, CASES / PORTION)
{
	for_cases(_i, check_closing);
}

/* --- the rules --- */

/* The rules for a pair, written as in their definition. */
static bool lacks(const struct copy *c, uint64_t absence)
{
	return c && (c->horizon < absence || c->horizon < c->fill);
}

TEST(rules)
{
	enum { N = 4 };

	for (uint64_t i = 0; i < N * N * N * N * N * N * 4; i++) {
		uint64_t v = i, n[6];
		for (int k = 0; k < 6; k++, v /= N)
			n[k] = v % N;
		struct copy copies[2] = { { .horizon = n[0], .fill = n[1] },
			{ .horizon = n[2], .fill = n[3] } };
		const struct copy *a = v & 1 ? NULL : &copies[0], *b = v & 2 ? NULL : &copies[1];
		uint64_t h = n[0] > n[2] ? n[0] : n[2];
		bool a0 = n[4] > h, a1 = n[5] > h, f0 = n[1] > h, f1 = n[3] > h;
		bool whole = a && b ? !((a0 && f1) || (f0 && a1) || (f0 && f1))
				    : !lacks(a, n[4]) && !lacks(b, n[5]);
		ck_assert_int_eq(copy_pair_is_whole(a, b, n + 4), whole);
		ck_assert_int_eq(copy_is_believed(&copies[0], n[4]), !lacks(&copies[0], n[4]));
	}
}

/* --- the form --- */

TEST(stamps)
{
	struct buf out = BUF_EMPTY, next = BUF_EMPTY;
	struct stamp_clock clock = { 0 };

	state = 1;
	for (int i = 0; i < 10000; i++) {
		uint64_t a = random_next(&state) >> (16 + below(40)), b = a + 1 + below(70);
		b = b > STAMP_MAX ? STAMP_MAX : b;
		buf_free(&out);
		buf_free(&next);
		stamp_add(&out, a);
		stamp_add(&next, b);
		ck_assert_uint_eq(buf_size(&out), STAMP_DIGITS);
		ck_assert_uint_eq(stamp_parse(out.data), a);
		if (a < b)
			ck_assert_int_lt(memcmp(out.data, next.data, STAMP_DIGITS), 0);
	}
	ck_assert_uint_eq(stamp_parse("1aB2cD3 "), 0);
	ck_assert_uint_eq(stamp_parse("1aB2+D3x"), 0);
	buf_free(&out);
	buf_free(&next);

	ck_assert_uint_eq(stamp_next(&clock, 1000), stamp_at(1000));
	ck_assert_uint_eq(stamp_next(&clock, 1000), stamp_at(1000) + 1);
	ck_assert_uint_eq(stamp_next(&clock, 900), stamp_at(1000) + 2);
	ck_assert(stamp_see(&clock, stamp_at(2900), 900));
	ck_assert_uint_eq(stamp_next(&clock, 1000), stamp_at(2900) + 1);
	ck_assert(!stamp_see(&clock, stamp_at(3001), 1000));
	ck_assert(stamp_see(&clock, stamp_at(500), 1000));
	ck_assert_uint_eq(stamp_next(&clock, 1000), stamp_at(2900) + 2);
	ck_assert_uint_eq(stamp_before(stamp_at(2900), 400), stamp_at(2500));
	ck_assert_uint_eq(stamp_before(stamp_at(1), 2), 0);
}

#define H "~o---0aaaa "

TEST(heads)
{
	static const char *const good[] = { H, H "~f---1aaaa ", H "~f---1aaaa ~g ", H "~g ",
		"+a~o +~s -~c " H, "@set.1 " RUN "+a -b ~t1424450096 " H, "+b @set.3 " RUN "-a " H,
		"@set.2 @fill.8f3k2w0q.1424450096.10 +a " H "~f---1aaaa ",
		/* Tokens of other kinds do not end the closed part. */
		"~t0 ~h1.0123456789ab.1.l.a ~d1.1 ~e ~f---1aaaa ~g ~x " H };
	static const char *const malformed[] = { "~o", "~o ", "~o---0aaa", "~o---0aaaa",
		"~o---0aaa ", "~o---0+aaa ", "~o-------- ", "~o---0aaaaa ", "+a ~o---0aaa -b ",
		("+a " H "~g "), ("+a " H "~f---1aaaa ~g ") };
	static const char *const single[] = { "+a ", "@set.3 +a ", ("@set.1 " RUN), "+a~o---0aaaa ",
		"+~s---0aaaa ", "+a ~", "~", "~e ", "~f---1aaaa ", "~g ", "+a ~t1424450096 ", "" };
	struct copy copy;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct slice base = guard_text(good[i]);
		struct buf out = BUF_EMPTY;
		ck_assert_msg(copy_parse(base, &copy), "%s", good[i]);
		ck_assert_uint_eq(copy.horizon, stamp_parse("---0aaaa"));
		ck_assert_uint_eq(copy.log.n, 0);
		copy_add_closed(&out, &copy);
		ck_assert(slice_equal(buf_slice(&out), copy.closed));
		ck_assert_uint_eq(copy.closed.n, (size_t)(strstr(good[i], H) - good[i]));
		copy_end_closed(&out, &copy);
		assert_bytes(buf_slice(&out), good[i]);
		buf_free(&out);
	}
	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
		ck_assert_msg(!copy_parse(guard_text(malformed[i]), &copy), "%s", malformed[i]);
	for (size_t i = 0; i < sizeof(single) / sizeof(single[0]); i++) {
		ck_assert_msg(copy_parse(guard_text(single[i]), &copy), "%s", single[i]);
		ck_assert_uint_eq(copy.horizon, 0);
		ck_assert_uint_eq(copy.closed.n, strlen(single[i]));
		ck_assert_uint_eq(copy.log.n, 0);
	}
}

/* Groups may follow a base that had one copy so far. A group ends the closed part, even if it is malformed. */
TEST(bases_that_had_one_copy)
{
	static const char *const logs[] = { "~s---1aaaa +b ~e ", "~c---1aaaa ~e +c ", "~s",
		"~c---1 ", "~s---1aaaa +b ~e ~o---0aaaa " };
	static const char *const closed[] = { "", "+a ", "@set.1 " RUN "+a~s ~t1424450096 " };

	for (size_t i = 0; i < sizeof(logs) / sizeof(logs[0]); i++) {
		for (size_t k = 0; k < sizeof(closed) / sizeof(closed[0]); k++) {
			char text[200];
			struct copy copy;
			snprintf(text, sizeof(text), "%s%s", closed[k], logs[i]);
			ck_assert(copy_parse(guard_text(text), &copy));
			ck_assert_uint_eq(copy.horizon, 0);
			assert_bytes(copy.closed, closed[k]);
			assert_bytes(copy.log, logs[i]);
		}
	}
}

TEST(malformed_logs)
{
	static const char *const logs[] = { "~s---1aaaa +a ", "~s---1aaaa ", "~s---1aaa +a ~e ",
		"~e ", "~x---1aaaa +a ~e ", "~s---1aaaa +a ~s---2aaaa +b ~e ~e ", "a ", "+a", "~g ",
		"~o---1aaaa ", "~f---1aaaa ", "~s---1aaaa +a ~e", "~s", "~c---1aaaa",
		"~h1.0123456789ab.1.l.a ", "~d1.1 ", "@t0k4zq81mfwx.1.3.0.29.1048f82143307346 " };

	for (size_t i = 0; i < sizeof(logs) / sizeof(logs[0]); i++) {
		struct copy copy = { .horizon = 1, .log = guard_text(logs[i]) };
		struct copy_join join;
		enum copy_read read;
		copy_join_begin(&join, &copy, NULL, 0, 0, 0);
		while ((read = copy_join_step(&join)) == COPY_WORD)
			;
		ck_assert_msg(read == COPY_MALFORMED, "%s", logs[i]);
		copy_join_free(&join);
	}
}

/* A proxy of a version without copies refuses such a base, and changes it only by appends. */
TEST(other_readers_refuse_it)
{
	for (unsigned i = 0; i < 1000; i++) {
		state = i;
		char *text = generate();
		struct oplog_base base;
		struct copy copy = parsed(text_of(text));
		bool is_good = oplog_split(text_of(text), &base),
		     same = !copy.horizon && !copy.log.n;
		struct fold fold = { .seed = 1 };
		struct log_index *index;
		ck_assert_msg(is_good, "%s", text);
		ck_assert_msg(oplog_is_log(base.log) == same, "%s", text);
		ck_assert_msg(fold_log(&fold, base.log) == same, "%s", text);
		index = log_index_create(base.log, NULL);
		ck_assert_msg(same || !index, "%s", text);
		log_index_release(index);
		fold_free(&fold);
		free(text);
	}
}

/* Also while a client loads it. */
TEST(other_readers_refuse_one_that_is_loaded)
{
	struct slice text = SLICE("@set.2 @fill.8f3k2w0q.1424450096.10 +a " H);
	struct buf complete = BUF_EMPTY;
	struct lease_base base;
	struct oplog_base split;

	ck_assert(lease_split(text, &base));
	ck_assert(!oplog_is_log(base.log));
	lease_complete(&base, SLICE(""), SLICE(""), &complete);
	ck_assert(oplog_split(buf_slice(&complete), &split) && !oplog_is_log(split.log));
	buf_free(&complete);
}

/* The references are found as in any other base, and a prefix of the item is the closed part. */
TEST(references)
{
	for (unsigned i = 0; i < 1000; i++) {
		state = i;
		char *text = generate(), *ordered = joined(text, NULL, 0, NULL);
		struct copy copy = parsed(text_of(ordered));
		struct oplog_base base, closed;
		bool has_run = strstr(text, RUN);
		ck_assert(oplog_split(text_of(ordered), &base));
		ck_assert(oplog_split(copy.closed, &closed) && oplog_is_log(closed.log));
		ck_assert_uint_eq(base.ref_count, has_run);
		ck_assert_uint_eq(closed.ref_count, has_run);
		ck_assert(slice_equal(base.refs, closed.refs));
		ck_assert(slice_starts(text_of(text), copy.closed));
		ck_assert(copy.closed.p == ordered);
		free(text);
		free(ordered);
	}
}

/* Portions of the work are small, however large the logs are, and the result is sorted. */
TEST(portions)
{
	enum { MANY = 20000 };
	struct buf base = BUF_EMPTY, expected = BUF_EMPTY;
	struct copy copy = { .horizon = 1 };
	struct copy_join join;
	size_t steps = 1;

	for (unsigned i = 0; i < MANY; i++) {
		buf_printf(&base, "+m%u ", i);
		copy_start_group(&base, 2 + MANY - i, false);
		buf_printf(&base, "-m%u +n%u ", i, i);
		copy_end_group(&base);
	}
	copy.log = buf_slice(&base);
	copy_join_begin(&join, &copy, &copy, 0, 0, 7);
	while (copy_join_step(&join) == COPY_WORD)
		steps++;
	ck_assert_uint_gt(steps, 2 * MANY * 3 / COPY_JOIN_STEPS);
	ck_assert_uint_gt(buf_size(&join.out), (size_t)MANY * 10);
	buf_add_slice(&expected, buf_slice(&join.out));
	copy_join_free(&join);
	ck_assert(copy_parse(buf_slice(&expected), &copy));
	copy_join_begin(&join, &copy, NULL, 0, 0, 3);
	while (copy_join_step(&join) == COPY_WORD)
		;
	ck_assert(slice_equal(buf_slice(&join.out), buf_slice(&expected)));
	copy_join_free(&join);
	buf_free(&base);
	buf_free(&expected);
}

/* A date at which a member expires is no part of its name. */
TEST(members)
{
	assert_bytes(copy_member(SLICE("+ann")), "ann");
	assert_bytes(copy_member(SLICE("-ann")), "ann");
	assert_bytes(copy_member(SLICE("+ann\x02"
				       "1424450096")),
		"ann");
	ck_assert(slice_equal(copy_member(SLICE("~t0")), copy_member(SLICE("~t1424450096"))));
}

FIXTURE(NULL, NULL)
