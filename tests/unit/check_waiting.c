/*
 * Clients that wait for elements of lists, and disconnect while all queues or tasks are processed:
 * freed memory is not accessed.
 */
#include "collection/push_board.h"
#include "command/waiting.h"
#include "conversations.h"

static struct push_board board;
static struct waiting *other; /* the room of another worker, with the same board */
static bool gone, left;       /* the client, as the host knows, and as it does not know yet */
static unsigned told_others;

static bool has_gone(const void *owner, bool ask)
{
	(void)owner;
	return gone || (ask && left);
}

static void tell(struct host *host)
{
	(void)host;
	told_others++;
}

static void setup(void)
{
	fake_init(&fake);
	fake_has_time(&fake);
	waiting_destroy(fake.host.waiting);
	fake.host.waiting = waiting_create(&fake.host, &board, 10);
	other = waiting_create(&fake.host, &board, 10);
	fake.host.ended = has_gone;
	fake.host.tell = tell;
	gone = left = false;
	told_others = 0;
}

static void teardown(void)
{
	fake_pass(&fake, 1000);
	waiting_destroy(other);
	fake_fini(&fake);
}

FIXTURE(setup, teardown)

/* A client that finds all lists missing. */
static void waits(const char *request, size_t count)
{
	client_asks(request);
	while (fake_waiting(&fake))
		(void)fake_answer(&fake, "EN\r\n");
	client_hears_nothing();
	ck_assert_uint_eq(waiting_count(fake.host.waiting), count);
}

/*
 * The queue of b follows that of a, and is removed when its only client is found to be
 * disconnected.
 */
TEST(lines_go_while_all_are_looked_at)
{
	waits("blpop 0 a b\r\n", 1);
	gone = true;
	ck_assert(push_board_note(&board, SLICE("a")));
	waiting_look(fake.host.waiting);
	client_is_told("END\r\n");
	ck_assert_uint_eq(waiting_count(fake.host.waiting), 0);
	ck_assert(!push_board_note(&board, SLICE("a")));
	ck_assert(!push_board_note(&board, SLICE("b")));
}

/* The connection is checked before an element is popped for it. */
TEST(nothing_is_taken_for_one_that_has_left)
{
	waits("blpop 0 a b\r\n", 1);
	(void)fake_calls(&fake);
	left = true;
	waiting_pushed(fake.host.waiting, SLICE("b"));
	client_is_told("END\r\n");
	server_hears_nothing();
	ck_assert_uint_eq(waiting_count(fake.host.waiting), 0);
}

/* A disconnected client does not join the others in a queue. */
TEST(one_that_has_gone_does_not_wait)
{
	waits("blpop 0 a\r\n", 1);
	(void)fake_calls(&fake);
	gone = true;
	client_asks("blpop 0 a\r\n");
	server_hears_nothing();
	ck_assert_uint_eq(waiting_count(fake.host.waiting), 1);
	waiting_end(fake.host.waiting);
	client_is_told("END\r\nEND\r\n");
}

TEST(all_end_at_once)
{
	waits("blpop 0 a b\r\n", 1);
	waits("brpop 9 b c\r\n", 2);
	waits("blpop 0 c a\r\n", 3);
	waiting_end(fake.host.waiting);
	client_is_told("END\r\nEND\r\nEND\r\n");
	ck_assert_uint_eq(waiting_count(fake.host.waiting), 0);
}

/* Equal keys, and a key for which others wait. */
TEST(time_passes)
{
	waits("blpop 0.1 a a\r\n", 1);
	waits("blpop 0.2 a b\r\n", 2);
	while (waiting_count(fake.host.waiting)) {
		(void)fake_pass(&fake, 20);
		while (fake_waiting(&fake))
			(void)fake_answer(&fake, "EN\r\n");
	}
	client_is_told("END\r\nEND\r\n");
}

/* One client of each worker waits for k. */
static void wait_in_both(void)
{
	struct waiting *mine = fake.host.waiting;

	waits("blpop 0 k\r\n", 1);
	fake.host.waiting = other;
	waits("blpop 0 k\r\n", 1);
	fake.host.waiting = mine;
	(void)fake_calls(&fake);
}

/* The number of polls in that time; k is missing. */
static size_t asked_in(unsigned ms)
{
	size_t before = fake.count;

	for (unsigned passed = 0; passed < ms; passed += 10) {
		(void)fake_pass(&fake, 10);
		while (fake_waiting(&fake))
			(void)fake_answer(&fake, "EN\r\n");
	}
	return fake.count - before;
}

static void end_both(void)
{
	waiting_end(fake.host.waiting);
	waiting_end(other);
	client_is_told("END\r\nEND\r\n");
}

TEST(one_worker_asks_for_all)
{
	wait_in_both();
	(void)asked_in(1000);
	ck_assert_uint_le(asked_in(3000), 12);
	ck_assert_uint_gt(asked_in(3000), 8);
	end_both();
}

/* A task that waits for a list in another encoding pops. */
TEST(one_worker_pops_for_all)
{
	static const struct collection_rule rule = {
		.type = COLLECTION_LIST, .encoding = ENCODING_CSV, .delimiter = ','
	};

	fake.rules = (struct rules){ .collections = &rule, .collection_count = 1 };
	wait_in_both();
	(void)asked_in(1000);
	ck_assert_uint_le(asked_in(3000), 12);
	ck_assert_uint_gt(asked_in(3000), 8);
	end_both();
}

/* The polling worker pops it; all others are notified, and poll. */
TEST(what_one_worker_sees_all_are_told)
{
	wait_in_both();
	while (fake_waiting(&fake) == 0)
		(void)fake_pass(&fake, 10);
	serves("mg k k f c\r\n", "HD kk f0 c7\r\n");
	server_is_asked(FETCH("k"));
	ck_assert_uint_eq(told_others, 1);
	waiting_look(fake.host.waiting);
	waiting_look(other);
	server_is_asked("");
	ck_assert_uint_eq(fake_waiting(&fake), 1);
	server_answers("EN\r\n");
	(void)asked_in(10);
	end_both();
}

/*
 * Time passes, and polls are answered: k exists, and has no elements. Returns the number of
 * attempts to pop.
 */
static size_t tries_in(unsigned ms)
{
	size_t tries = 0;

	for (unsigned passed = 0; passed < ms; passed += 10) {
		(void)fake_pass(&fake, 10);
		while (fake_waiting(&fake)) {
			bool pops = fake.calls[fake_oldest(&fake)].call.want & WANT_VALUE;
			tries += pops;
			server_answers(pops ? FOUND("k", 6, "@list ") : "HD kk f0 c5\r\n");
		}
	}
	return tries;
}

/*
 * A worker that was not notified detects it when it would have polled. Then nothing is new for
 * either.
 */
TEST(each_worker_tries_once)
{
	wait_in_both();
	(void)asked_in(1000);
	ck_assert_uint_eq(tries_in(1000), 2);
	ck_assert_uint_eq(told_others, 1);
	ck_assert_uint_eq(tries_in(1000), 0);
	end_both();
}

/* Another key in the same slot does not concern them. */
TEST(a_mark_is_of_one_key)
{
	size_t slot = push_board_slot(&board, SLICE("k"));

	ck_assert_uint_eq(push_board_ask(&board, slot, 1, 1000, 50), 0);
	ck_assert_uint_eq(push_board_ask(&board, slot, 1, 1010, 50), 40);
	ck_assert_uint_eq(push_board_ask(&board, slot, 2, 1010, 50), 0);
	ck_assert_uint_eq(push_board_ask(&board, slot, 2, 1009, 50), 50);
	ck_assert_uint_eq(push_board_ask(&board, slot, 2, 1060, 50), 0);
	ck_assert_uint_eq(push_board_ask(&board, slot, 2, UINT64_C(1060) + (UINT64_C(1) << 32), 50), 50);
}

/* --- the limit of waiting clients --- */

static void use_rooms(struct push_board *shared, size_t max)
{
	waiting_destroy(fake.host.waiting);
	waiting_destroy(other);
	fake.host.waiting = waiting_create(&fake.host, shared, max);
	other = waiting_create(&fake.host, shared, max);
}

/* Ends the room: its clients get these replies, and its timer runs out. */
static void ends(struct waiting *room, const char *told)
{
	waiting_end(room);
	client_is_told(told);
	(void)fake_pass(&fake, 1000);
}

/* Exactly `max`, also if that is 0. */
TEST(one_more_is_refused)
{
	static const char *const told[] = { "", "END\r\n", "END\r\nEND\r\n" };
	struct push_board *const boards[] = { &board, NULL };
	char all[80];

	for (size_t i = 0; i < 6; i++) {
		size_t max = i / 2;
		use_rooms(boards[i % 2], max);
		for (size_t count = 0; count < max; count++)
			waits("blpop 0 k\r\n", count + 1);
		client_asks("blpop 0 k\r\n");
		while (fake_waiting(&fake))
			(void)fake_answer(&fake, "EN\r\n");
		ck_assert_uint_eq(waiting_count(fake.host.waiting), max);
		snprintf(all, sizeof(all), "%sSERVER_ERROR too many waiting clients\r\n", told[max]);
		ends(fake.host.waiting, all);
	}
}

/* Tasks of all workers count together. A task that ends makes room for another. */
TEST(workers_share_the_number)
{
	struct waiting *mine;

	use_rooms(&board, 3);
	mine = fake.host.waiting;
	waits("blpop 0 a\r\n", 1);
	waits("brpop 0 b c\r\n", 2);
	fake.host.waiting = other;
	waits("blpop 0 k\r\n", 1);
	client_asks("blpop 0 a\r\n");
	while (fake_waiting(&fake))
		(void)fake_answer(&fake, "EN\r\n");
	ends(mine, "END\r\nEND\r\n");
	waits("blmove 0 k a left right\r\n", 2);
	ends(other, "END\r\nSERVER_ERROR too many waiting clients\r\nEND\r\n");
	ck_assert_uint_eq(atomic_load(&board.tasks), 0);
	fake.host.waiting = mine;
}
