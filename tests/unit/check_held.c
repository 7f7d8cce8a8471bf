/* Held elements: their tokens, and requests that hold, acknowledge and give back, compared with a model. */
#include "collection/text/held.h"

#include "collection/list/hold.h"
#include "collection/text/date.h"
#include "collection/text/fold.h"
#include "collection/text/oplog.h"
#include "unit.h"
#include "util/random.h"

#define HELD "~h1424450096.a0b1c2d3e4f5.12.l.x "
#define COUNT "~d7.0123456789abcdef "

TEST(tokens)
{
	static const char *const good[] = { HELD, COUNT, "~h2592001.000000000000.1.r.a.b ",
		"~h4294967295.zzzzzzzzzzzz.4294967295.l.~t0 ", "~d4294967295.ffffffffffffffff ",
		"~h1424450096.a0b1c2d3e4f5.1.l.\x01\x42 " };
	static const char *const malformed[] = { "~h", "~h ", "~h1424450096.a0b1c2d3e4f5.1.l. ",
		"~h1424450096.a0b1c2d3e4f5.1.l.x", "~h1424450096.a0b1c2d3e4f5.1.m.x ",
		"~h1424450096.a0b1c2d3e4f5.0.l.x ", "~h1424450096.a0b1c2d3e4f5.01.l.x ",
		"~h1424450096.a0b1c2d3e4f.1.l.x ", "~h1424450096.a0b1c2d3e4f55.1.l.x ",
		"~h1424450096.A0b1c2d3e4f5.1.l.x ", "~h2592000.a0b1c2d3e4f5.1.l.x ",
		"~h4294967296.a0b1c2d3e4f5.1.l.x ", "~h01424450096.a0b1c2d3e4f5.1.l.x ",
		"~h1424450096.a0b1c2d3e4f5.1.lx ", "~h1424450096.a0b1c2d3e4f5.1.l",
		"~h1424450096.a0b1c2d3e4f5.1.l.\x02 ", "~d7.0123456789abcde ",
		"~d7.0123456789abcdef0 ", "~d0.0123456789abcdef ", "~d7.0123456789abcdeF ", "~d7 ",
		"~d.0123456789abcdef ", "~e7.0123456789abcdef " };

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct slice s = guard_text(good[i]);
		ck_assert_msg(held_end(s.p, s.p + s.n) == s.p + s.n, "%s", good[i]);
		ck_assert(oplog_is_log(s));
		for (size_t n = 0; n < s.n; n++)
			ck_assert_ptr_null(held_end(s.p, s.p + n));
	}
	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
		struct slice s = guard_text(malformed[i]);
		ck_assert_msg(!held_end(s.p, s.p + s.n), "%s", malformed[i]);
		ck_assert_msg(!oplog_is_log(s), "%s", malformed[i]);
	}
}

/* Reads and writes a base. */
static void is_split(const char *base, const char *rest, const char *held_tokens)
{
	struct held held = { 0 };
	struct buf out = BUF_EMPTY, written = BUF_EMPTY, copy = BUF_EMPTY;

	assert_bytes(held_read(guard_text(base), &held, &out), rest);
	held_write(&held, &written);
	assert_bytes(buf_slice(&written), held_tokens);
	held_copy(guard_text(base), &copy);
	assert_bytes(buf_slice(&copy), held_tokens);
	held_free(&held);
	buf_free(&out);
	buf_free(&written);
	buf_free(&copy);
}

TEST(of_a_base)
{
	is_split("", "", "");
	is_split("+a ~t0 +b ", "+a ~t0 +b ", "");
	is_split("+a " HELD "+b ", "+a +b ", HELD);
	is_split(HELD "+z @list +a " COUNT "~t0 ", "+z @list +a ~t0 ", COUNT HELD);
	is_split("+" HELD "+a" COUNT, "+" HELD "+a" COUNT, "");
	is_split(HELD HELD, "", HELD HELD);
	is_split("~h1.2 " HELD, "~h1.2 ", HELD);
}

/* A set does not see them, and a date is still found. */
TEST(other_readers)
{
	struct fold fold = { .seed = 1 };

	ck_assert(fold_log(&fold, SLICE("+a " HELD "+b " COUNT "-a ")));
	ck_assert_uint_eq(fold.live, 1);
	ck_assert(!fold_log(&fold, SLICE("~h1.2 ")));
	fold_free(&fold);
	ck_assert_int_eq(date_last(SLICE("+a ~t0 " HELD)), 0);
	ck_assert_int_eq(date_last(SLICE("~h1424450096.a0b1c2d3e4f5.1.l.~t0 ")), DATE_NONE);
}

TEST(limits)
{
	static char word[HELD_BYTES / 3];
	struct held held = { 0 };
	struct held_element element = { .date = 1424450096, .deliveries = 1, .word = SLICE("x") };

	for (int i = 0; i < HELD_MAX; i++) {
		ck_assert(held_has_room(&held, element.word));
		held_add(&held, &element);
		held_count_keep(&held, &element);
	}
	ck_assert(!held_has_room(&held, element.word));
	held_count_keep(&held, &element);
	ck_assert_uint_eq(held.count_count, HELD_MAX);
	held_remove(&held, 5);
	ck_assert(held_has_room(&held, element.word));
	held_forget(&held, 0);
	element.word = slice_of(word, sizeof(word));
	for (int i = 0; i < 2; i++) {
		ck_assert(held_has_room(&held, element.word));
		held_add(&held, &element);
	}
	ck_assert(!held_has_room(&held, element.word));
	ck_assert(held_has_room(&held, SLICE("x")));
	held_free(&held);
}

TEST(tickets)
{
	uint64_t random = 1;
	char one[HELD_TICKET], other[HELD_TICKET];

	held_new_ticket(&random, one);
	held_new_ticket(&random, other);
	ck_assert(memcmp(one, other, HELD_TICKET) != 0);
}

/* Of each end, the one that was taken first is next again. */
TEST(order_of_both_ends)
{
#define TAKEN(end, word) "~h1424450096.a0b1c2d3e4f5.1." end "." word " "
	struct list_request all = { .verb = LIST_RANGE, .stop = -1 };
	struct buf text = BUF_EMPTY;
	struct segmented_list list;

	ck_assert(segmented_list_read(&list,
		SLICE("@list +m " TAKEN("r", "z") TAKEN("l", "a") TAKEN("r", "y") TAKEN("l", "b")
				TAKEN("r", "x") TAKEN("l", "c") TAKEN("r", "w"))));
	hold_give_back(&list, 1424450096);
	(void)segmented_list_apply(&list, &all, &text);
	assert_bytes(buf_slice(&text), "a b c m w x y z");
	segmented_list_free(&list);
	buf_free(&text);
}

/* --- the model: arrays of numbers of elements --- */

enum { ELEMENTS = 400, START = 1500000000 };

static struct model {
	struct buf base;
	int items[ELEMENTS], count, named;
	struct model_held {
		int item;
		bool right;
		int64_t date;
		char ticket[HELD_TICKET + 1];
	} held[ELEMENTS];
	int held_count, deliveries[ELEMENTS];
	int64_t now;
	uint64_t random;
} m;

static void put(int item, bool front)
{
	memmove(m.items + (front ? 1 : 0), m.items, (size_t)m.count * sizeof(int));
	m.items[front ? 0 : m.count] = item;
	m.count++;
}

static int take(bool front)
{
	int item = m.items[front ? 0 : m.count - 1];

	m.count--;
	memmove(m.items, m.items + (front ? 1 : 0), (size_t)m.count * sizeof(int));
	return item;
}

static void let_go(int i)
{
	m.held_count--;
	memmove(m.held + i, m.held + i + 1, (size_t)(m.held_count - i) * sizeof(m.held[0]));
}

/* The last of those that were taken is added first, so that the first is next. */
static void give_back_due(void)
{
	for (int i = m.held_count - 1; i >= 0; i--) {
		if (m.held[i].date > m.now)
			continue;
		put(m.held[i].item, !m.held[i].right);
		let_go(i);
	}
}

static void check_base(void)
{
	struct list_request all = { .verb = LIST_RANGE, .stop = -1 };
	struct buf text = BUF_EMPTY, expected = BUF_EMPTY;
	struct segmented_list list;

	ck_assert(segmented_list_read(&list, buf_slice(&m.base)) && list.is_list);
	for (int i = 0; i < m.count; i++)
		buf_printf(&expected, i ? " e%d" : "e%d", m.items[i]);
	(void)segmented_list_apply(&list, &all, &text);
	ck_assert(slice_equal(buf_slice(&text), buf_slice(&expected)));
	ck_assert_uint_eq(list.held.count, (size_t)m.held_count);
	for (int i = 0; i < m.held_count; i++) {
		ck_assert_int_eq(list.held.list[i].date, m.held[i].date);
		ck_assert_uint_eq(
			list.held.list[i].deliveries, (unsigned)m.deliveries[m.held[i].item]);
		assert_bytes(list.held.list[i].ticket, m.held[i].ticket);
	}
	segmented_list_free(&list);
	buf_free(&text);
	buf_free(&expected);
}

/* Compares the answer and the outcome, and stores the list. */
static void apply(struct list_request request, const char *answer, enum outcome_status status)
{
	struct segmented_list list;
	struct buf text = BUF_EMPTY, base = BUF_EMPTY;

	ck_assert(segmented_list_read(&list, buf_slice(&m.base)));
	if (hold_is_due(&list, m.now))
		hold_give_back(&list, m.now);
	(void)hold_apply(&list, &request, m.now, &text);
	ck_assert_int_eq((int)request.status, (int)status);
	assert_bytes(buf_slice(&text), answer);
	segmented_list_encode(&list, SLICE(""), false, &base);
	segmented_list_free(&list);
	buf_free(&m.base);
	m.base = base;
	buf_free(&text);
}

static void model_hold(bool right)
{
	struct list_request request = { .verb = LIST_HOLD, .start = right ? -1 : 0 };
	char answer[64] = "";
	struct model_held *h;

	give_back_due();
	h = &m.held[m.held_count];
	h->ticket[HELD_TICKET] = '\0';
	held_new_ticket(&m.random, h->ticket);
	request.item = slice_of(h->ticket, HELD_TICKET);
	request.stop = 1 + (int64_t)(random_next(&m.random) % 5);
	if (m.count) {
		h->item = take(!right);
		h->right = right;
		h->date = m.now + request.stop + 1;
		m.held_count++;
		snprintf(answer, sizeof(answer), "%s %d e%d", h->ticket, ++m.deliveries[h->item],
			h->item);
	}
	apply(request, answer, OUTCOME_DONE);
}

static void model_end(bool fails)
{
	struct list_request request = { .verb = fails ? LIST_FAIL : LIST_ACK };
	char ticket[HELD_TICKET + 1] = "0123456789ab";
	bool found = false;

	if (m.held_count && random_next(&m.random) % 8)
		memcpy(ticket, m.held[random_next(&m.random) % (unsigned)m.held_count].ticket,
			sizeof(ticket));
	give_back_due();
	for (int i = 0; i < m.held_count && !found; i++) {
		if (strcmp(m.held[i].ticket, ticket) != 0)
			continue;
		found = true;
		if (fails)
			put(m.held[i].item, m.held[i].right);
		let_go(i);
	}
	request.item = slice_of(ticket, HELD_TICKET);
	apply(request, "", found ? OUTCOME_DONE : OUTCOME_MISSING);
}

static void model_pop(bool right)
{
	struct list_request request = { .verb = right ? LIST_POP_BACK : LIST_POP_FRONT,
		.count = 1 };
	char answer[16] = "";

	give_back_due();
	if (m.count)
		snprintf(answer, sizeof(answer), "e%d", take(!right));
	apply(request, answer, OUTCOME_DONE);
}

static void model_push(void)
{
	bool front = random_next(&m.random) % 3 == 0;
	struct buf base = BUF_EMPTY;

	if (m.named == ELEMENTS)
		return;
	if (!front)
		buf_add_slice(&base, buf_slice(&m.base));
	buf_printf(&base, "+e%d ", m.named);
	if (front)
		buf_add_slice(&base, buf_slice(&m.base));
	buf_free(&m.base);
	m.base = base;
	put(m.named++, front);
}

TEST(as_a_model)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		m = (struct model){ .now = START, .random = seed };
		BUF_ADD(&m.base, "@list ");
		for (int i = 0; i < 300; i++) {
			uint64_t dice = random_next(&m.random) % 100;
			m.now += random_next(&m.random) % 4 == 0;
			if (dice < 40)
				model_push();
			else if (dice < 70)
				model_hold(dice % 2);
			else if (dice < 90)
				model_end(dice % 3 == 0);
			else
				model_pop(dice % 2);
			check_base();
		}
		buf_free(&m.base);
	}
}

/* --- counts of deliveries --- */

static void becomes(const char *base, struct list_request request, const char *expected)
{
	m.now = START;
	BUF_ADD(&m.base, "");
	buf_add(&m.base, base, strlen(base));
	struct segmented_list list;
	struct buf text = BUF_EMPTY, out = BUF_EMPTY;

	ck_assert(segmented_list_read(&list, buf_slice(&m.base)));
	(void)hold_apply(&list, &request, m.now, &text);
	segmented_list_encode(&list, SLICE(""), false, &out);
	assert_bytes(buf_slice(&out), expected);
	segmented_list_free(&list);
	buf_free(&text);
	buf_free(&out);
	buf_free(&m.base);
}

#define OF_A "~d3.d24ec4f1a98c6e5b " /* the hash of "a" */

TEST(counts_leave_with_their_element)
{
	const struct list_request pop = { .verb = LIST_POP_FRONT, .count = 1 },
				  pop_last = { .verb = LIST_POP_BACK, .count = 1 },
				  remove = { .verb = LIST_REMOVE, .item = SLICE("a") },
				  take = { .verb = LIST_TAKE, .item = SLICE("a") },
				  trim = { .verb = LIST_TRIM, .start = 5, .stop = 6 };

	becomes("@list +a +b " OF_A, pop, "@list +b ");
	becomes("@list +a +b " OF_A, pop_last, "@list +a " OF_A);
	becomes("@list +a +b " OF_A, remove, "@list +b ");
	becomes("@list +a +b " OF_A, take, "@list +b ");
	becomes("@list +a +b " OF_A, trim, "@list ");
	/* Of two equal elements, one has been delivered. */
	becomes("@list +a +a " OF_A OF_A, pop, "@list +a " OF_A);
}

/* Above this number of deliveries an element is held longer, to be moved away. */
TEST(dead)
{
	struct list_request hold = {
		.verb = LIST_HOLD, .stop = 5, .count = 3, .item = SLICE("000000000000")
	};

	becomes("@list +a +b " OF_A, hold, "@list +b ~h1500000061.000000000000.4.l.a ");
	hold.count = 4;
	becomes("@list +a +b " OF_A, hold, "@list +b ~h1500000006.000000000000.4.l.a ");
	hold.count = 0;
	becomes("+a +b " OF_A, hold, "@list +b ~h1500000006.000000000000.4.l.a ");
}

/* A list of which so many elements are held gives no more, and is not changed. */
TEST(too_many)
{
	struct buf base = BUF_EMPTY, text = BUF_EMPTY;
	struct list_request hold = { .verb = LIST_HOLD, .stop = 5, .item = SLICE("000000000000") };
	struct segmented_list list;

	BUF_ADD(&base, "@list +a ");
	for (int i = 0; i < HELD_MAX; i++)
		buf_printf(&base, "~h1500000006.%012d.1.l.x ", i);
	ck_assert(segmented_list_read(&list, buf_slice(&base)));
	ck_assert(!hold_apply(&list, &hold, START, &text));
	ck_assert_int_eq((int)hold.status, OUTCOME_FULL);
	ck_assert_uint_eq(segmented_list_count(&list), 1);
	segmented_list_free(&list);
	buf_free(&base);
	buf_free(&text);
}
