/* Clients that wait for elements of lists, and leave while all lines or tasks are looked at: nothing that is freed is looked at next. */
#include "collection/push_board.h"
#include "command/waiting.h"
#include "conversations.h"

static struct push_board board;
static bool gone;

static bool has_gone(const void *owner)
{
	(void)owner;
	return gone;
}

static void setup(void)
{
	fake_init(&fake);
	fake_has_time(&fake);
	waiting_destroy(fake.host.waiting);
	fake.host.waiting = waiting_create(&fake.host, &board, 10);
	fake.host.ended = has_gone;
	gone = false;
}

static void teardown(void)
{
	fake_pass(&fake, 1000);
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

/* The line of b is the one behind that of a, and goes when its only client is found to have gone. */
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

TEST(all_end_at_once)
{
	waits("blpop 0 a b\r\n", 1);
	waits("brpop 9 b c\r\n", 2);
	waits("blpop 0 c a\r\n", 3);
	waiting_end(fake.host.waiting);
	client_is_told("END\r\nEND\r\nEND\r\n");
	ck_assert_uint_eq(waiting_count(fake.host.waiting), 0);
}

/* Of equal keys, and of one for which others wait. */
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
