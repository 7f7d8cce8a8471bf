/* How much memory the requests of clients take at once, and whose turn is next. */
#include "collection/room.h"

#include "conversations.h"

enum { MANY = 8000, BLOCK = 32 * 1024, TASK = 2 * BLOCK, REQUESTS = 50 };

static const struct collection_options roomy = {
	.base_size = 1 << 20, .log_size = 1 << 20, .table_size = 65536
};
static struct rooms rooms;
static struct account other;

/* Each client may have `blocks` requests in the first room, and `merges` in the second. */
static void has_rooms(size_t blocks, size_t merges, size_t limit)
{
	fake_takes(&roomy);
	fake.slice = fake.host.env.grain = 100000;
	fake_has_time(&fake);
	rooms_init(&rooms);
	rooms_set_limit(&rooms, limit * TASK);
	rooms.of[ROOM_BLOCKS].share = blocks * TASK;
	rooms.of[ROOM_MERGES].share = merges * TASK;
	fake.host.env.rooms = &rooms;
}

static void are_empty(void)
{
	for (int i = 0; i < ROOMS; i++) {
		ck_assert_uint_eq(rooms.of[i].used, 0);
		ck_assert(TAILQ_EMPTY(&rooms.of[i].queue));
	}
	ck_assert_uint_eq(fake.account.waiting + other.waiting, 0);
	ck_assert_uint_eq(fake_used(&fake) + other.used + other.held, 0);
}

/* Answers a call. Each key has a set of several blocks. */
static void answer(void)
{
	struct buf log = BUF_EMPTY;

	if (fake.calls[fake_oldest(&fake)].call.verb != CALL_GET) {
		fake_result(&fake, fake_oldest(&fake), &(struct result){ .status = RESULT_DONE });
		return;
	}
	for (int i = 0; i < MANY; i++)
		buf_printf(&log, "+member-%04d ", i);
	fake_result(&fake, fake_oldest(&fake),
		&(struct result){
			.status = RESULT_HIT, .value = buf_slice(&log), .cas = 5, .ttl = -1 });
	buf_free(&log);
}

/* Does the next thing. Returns false if there is none. */
static bool goes_on(void)
{
	if (fake_pass(&fake, 0))
		return true;
	if (!fake_waiting(&fake))
		return false;
	answer();
	return true;
}

static void asks_often(const char *line)
{
	for (int i = 0; i < REQUESTS; i++)
		client_asks(line);
}

/* Returns the most bytes that were used meanwhile. */
static size_t peak(void)
{
	size_t most = 0;

	do {
		size_t used = fake_used(&fake) + other.used + other.held;
		most = used > most ? used : most;
	} while (goes_on());
	are_empty();
	return most;
}

static size_t replies(const char *reply)
{
	const char *told = fake_told(&fake);
	size_t count = 0;

	for (; (told = strstr(told, reply)); told++)
		count++;
	return count;
}

/* A client has its share of each room, however many requests it has sent. */
TEST(memory_of_one_client)
{
	static const char *const lines[] = { "sintercard 2 k l\r\n", "sunioncard 2 k l\r\n",
		"sdiffcard 2 k gone\r\n" };

	has_rooms(4, 2, 100);
	for (size_t i = 0; i < 3; i++) {
		asks_often(lines[i]);
		ck_assert_uint_eq(fake.account.waiting, REQUESTS - 4);
		ck_assert_uint_le(peak(), 6 * TASK);
		(void)fake_told(&fake);
	}
	asks_often("sintercard 2 k l\r\n");
	(void)peak();
	ck_assert_uint_eq(replies("8000\r\n"), REQUESTS);
}

/* Requests that begin when the slice is over enter the room, or wait for it, before they pause. */
TEST(slices_that_are_over)
{
	size_t before;

	has_rooms(4, 2, 100);
	fake.slice = fake.host.env.grain = 0;
	before = fake.count;
	asks_often("sintercard 2 k l\r\n");
	ck_assert_uint_eq(fake.account.waiting, REQUESTS - 4);
	ck_assert_uint_eq(fake.count, before);
	fake.slice = 100000;
	ck_assert_uint_le(peak(), 6 * TASK);
	ck_assert_uint_eq(replies("8000\r\n"), REQUESTS);
}

/* All nine commands. Their results are another matter. */
TEST(every_command)
{
	static const char *const lines[] = { "sinter k l\r\n", "sunion k l\r\n", "sdiff k l\r\n",
		"sintercard 2 k l\r\n", "sunioncard 2 k l\r\n", "sdiffcard 2 k l\r\n",
		"sinterstore t k l\r\n", "sunionstore t k l\r\n", "sdiffstore t k l\r\n" };

	has_rooms(1, 1, 100);
	for (size_t i = 0; i < 9; i++) {
		size_t before = fake.count;
		client_asks(lines[i]);
		client_asks(lines[i]);
		ck_assert_uint_eq(fake.count, before + 2);
		ck_assert_uint_eq(fake.account.waiting, 1);
		(void)peak();
		ck_assert_uint_gt(strlen(fake_told(&fake)), 0);
	}
}

/* All clients together have no more than the limit. */
TEST(memory_of_all_clients)
{
	has_rooms(100, 100, 3);
	asks_often("sintercard 2 k l\r\n");
	fake.other = &other;
	asks_often("sintercard 2 k l\r\n");
	ck_assert_uint_eq(fake.account.waiting + other.waiting, 2 * REQUESTS - 3);
	ck_assert_uint_le(peak(), 6 * TASK);
	ck_assert_uint_eq(replies("8000\r\n"), 2 * REQUESTS);
}

/* A small set needs no more than it has, so others need not wait for it. */
TEST(small_sets)
{
	has_rooms(1, 1, 100);
	client_asks("sintercard 2 k l\r\n");
	client_asks("sintercard 2 m n\r\n");
	serves(FETCH("k") FETCH("l"), FOUND("k", 6, "+a +b "));
	ck_assert_uint_le(rooms.of[ROOM_BLOCKS].used, BLOCK + 1024);
	server_answers(FOUND("l", 6, "+b +c "));
	fake_pass(&fake, 0);
	serves(FETCH("m") FETCH("n"), FOUND("m", 6, "+a +b "));
	relays(FOUND("n", 3, "+a "), "1\r\n1\r\n");
	are_empty();
}

/* A client with one request waits for one of each other client, and not at all while there is room. */
TEST(turns)
{
	size_t before;

	has_rooms(2, 1, 8);
	asks_often("sintercard 2 k l\r\n");
	before = fake.count;
	fake.other = &other;
	client_asks("sintercard 2 m n\r\n");
	ck_assert_uint_eq(fake.count, before + 2);
	(void)peak();
	(void)fake_told(&fake);
	/* The room is full. */
	has_rooms(2, 2, 1);
	fake.other = NULL;
	asks_often("sintercard 2 k l\r\n");
	fake.other = &other;
	client_asks("sintercard 2 m n\r\n");
	while (other.waiting)
		ck_assert(goes_on());
	ck_assert_uint_ge(fake.account.waiting, REQUESTS - 3);
	(void)peak();
	ck_assert_uint_eq(replies("8000\r\n"), REQUESTS + 1);
}

/* The clients that wait take turns. */
TEST(alternation)
{
	has_rooms(2, 2, 1);
	asks_often("sintercard 2 k l\r\n");
	fake.other = &other;
	asks_often("sintercard 2 m n\r\n");
	while (fake.account.waiting && other.waiting) {
		ck_assert_uint_le(fake.account.waiting, other.waiting + 3);
		ck_assert_uint_le(other.waiting, fake.account.waiting + 3);
		ck_assert(goes_on());
	}
	(void)peak();
	ck_assert_uint_eq(replies("8000\r\n"), 2 * REQUESTS);
}

/* Larger than a room: it is alone there. */
TEST(too_large_for_the_room)
{
	has_rooms(1, 1, 0);
	client_asks("sunioncard 4 k l m n\r\n");
	client_asks("sunioncard 4 k l m n\r\n");
	ck_assert_uint_eq(fake.account.waiting, 1);
	(void)peak();
	client_is_told("8000\r\n8000\r\n");
}

/* Returns how many calls were made for a client after it had gone, when these slices had passed. */
static size_t calls_for_the_gone(const char *line, size_t slices)
{
	size_t before;
	struct task *task;

	asks_often(line);
	while (slices--)
		ck_assert(goes_on());
	before = fake.count;
	fake.account.gone = true;
	STAILQ_FOREACH(task, &fake.tasks, link) {
		if (task->resume)
			task->resume(task);
	}
	ck_assert_uint_eq(fake.account.waiting, 0);
	(void)peak();
	ck_assert(STAILQ_EMPTY(&fake.tasks));
	fake.account.gone = false;
	return fake.count - before;
}

TEST(gone)
{
	has_rooms(4, 2, 100);
	for (size_t slices = 0; slices < 20; slices++)
		ck_assert_uint_eq(calls_for_the_gone("sintercard 2 k l\r\n", slices), 0);
}
