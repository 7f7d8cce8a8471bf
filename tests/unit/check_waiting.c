/*
 * Clients that wait for elements of lists, and leave while all lines or tasks are looked at: nothing that is freed is looked at next.
 * What many of them cost is counted in polls, steps and slices.
 */
#include "conversations.h"
#include "util/alloc.h"
#include "waiting/lines.h"
#include "waiting/polls.h"
#include "waiting/waiting.h"

static struct push_board board;
static struct waiting *other; /* the room of another worker, with the same board */
static bool gone, left;       /* the client, as the host knows, and as it does not know yet */
static unsigned told_others;
static size_t calls_max;

static bool has_gone(const void *owner, bool ask)
{
	(void)owner;
	return gone || (ask && left);
}

static void tell(struct env *env)
{
	(void)env;
	told_others++;
}

static struct waiting *create(size_t max)
{
	return waiting_create(&fake.host.env, &board, max, calls_max, tell);
}

static void use_rooms(size_t max)
{
	waiting_destroy(fake.host.waiting);
	waiting_destroy(other);
	fake.host.waiting = create(max);
	other = create(max);
}

/* From now on a slice of work has so many steps. */
static void use_slices(size_t steps)
{
	fake.slice = fake.host.env.grain = steps;
}

static void setup(void)
{
	fake_init(&fake);
	fake_has_time(&fake);
	use_slices(SIZE_MAX);
	calls_max = 0;
	other = NULL;
	use_rooms(10);
	fake.host.ended = has_gone;
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

TEST(several_are_popped_at_once)
{
	waits("blmpop 0 2 right a b\r\n", 1);
	(void)fake_calls(&fake);
	waiting_pushed(fake.host.waiting, SLICE("b"));
	server_answers(FOUND("b", 15, "@list +x +y +z "));
	server_answers("STORED\r\n");
	client_is_told("VALUE b 0 3\r\nz y\r\nEND\r\n");
	ck_assert_uint_eq(waiting_count(fake.host.waiting), 0);
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
	size_t slot = push_board_slot(push_board_hash(&board, SLICE("k")));

	ck_assert_uint_eq(push_board_ask(&board, slot, 1, 1000, 50), 0);
	ck_assert_uint_eq(push_board_ask(&board, slot, 1, 1010, 50), 40);
	ck_assert_uint_eq(push_board_ask(&board, slot, 2, 1010, 50), 0);
	ck_assert_uint_eq(push_board_ask(&board, slot, 2, 1009, 50), 50);
	ck_assert_uint_eq(push_board_ask(&board, slot, 2, 1060, 50), 0);
	ck_assert_uint_eq(
		push_board_ask(&board, slot, 2, UINT64_C(1060) + (UINT64_C(1) << 32), 50), 50);
}

/* --- many keys --- */

enum { MANY = 1000 }; /* Keys of one command, at most. */

/* Returns the request to wait for k<first> and the next keys. */
static struct buf request_for(size_t first, size_t count)
{
	struct buf line = BUF_EMPTY;

	buf_printf(&line, "blpop 0");
	for (size_t i = 0; i < count; i++)
		buf_printf(&line, " k%zu", first + i);
	BUF_ADD(&line, "\r\n\0");
	return line;
}

/* A client blocks on so many keys, which are all missing. */
static void asks_for(size_t first, size_t count)
{
	struct buf line = request_for(first, count);

	client_asks(line.data);
	buf_free(&line);
	for (size_t i = 0; i < count && fake_waiting(&fake); i++)
		(void)fake_answer(&fake, "EN\r\n");
}

static void waits_for(struct waiting *room, size_t first, size_t count)
{
	fake.host.waiting = room;
	for (size_t done = 0; done < count; done += MANY)
		asks_for(first + done, count - done < MANY ? count - done : MANY);
}

static void hears_ends(size_t count)
{
	const char *told = fake_told(&fake);

	for (; count > 0; count--, told += 5)
		ck_assert_int_eq(strncmp(told, "END\r\n", 5), 0);
	ck_assert_str_eq(told, "");
}

/* Ends all commands of two rooms, and waits until their places are gone. */
static void ends_all(struct waiting *mine, size_t count)
{
	fake.host.waiting = mine;
	waiting_end(mine);
	waiting_end(other);
	hears_ends(count);
	(void)fake_pass(&fake, 1000);
	while (fake_waiting(&fake))
		(void)fake_answer(&fake, "EN\r\n");
	ck_assert_uint_eq(board.lines, 0);
	ck_assert_uint_eq(board.keys, 0);
}

/* All that two workers poll in some time, of keys that are missing; and the longest time between two polls of one of `keys` keys. */
static size_t polls_in(unsigned ms, size_t keys, uint64_t *longest)
{
	uint64_t *last = xcalloc(keys, sizeof(*last)), start = fake.host.env.now;
	size_t before = fake.count, seen = fake.count;

	*longest = 0;
	for (unsigned passed = 0; passed < ms; passed += 5) {
		(void)fake_pass(&fake, 5);
		for (; seen < fake.count; seen++) {
			size_t key = strtoul(fake.calls[seen].call.key.p + 1, NULL, 10);
			uint64_t since = fake.host.env.now - (last[key] ? last[key] : start);
			*longest = since > *longest ? since : *longest;
			last[key] = fake.host.env.now;
		}
		while (fake_waiting(&fake))
			(void)fake_answer(&fake, "EN\r\n");
	}
	for (size_t i = 0; i < keys; i++) {
		uint64_t since = fake.host.env.now - (last[i] ? last[i] : start);
		*longest = since > *longest ? since : *longest;
	}
	free(last);
	return fake.count - before;
}

/* However many keys there are. A worker with few of them does not poll later than one with many. */
TEST(polls_are_limited)
{
	enum { KEYS = 6000, FEW = 500, SECONDS = 3, BURST = 600 };
	struct waiting *mine = fake.host.waiting;
	uint64_t longest;
	size_t polls;

	use_rooms(KEYS);
	mine = fake.host.waiting;
	waits_for(mine, 0, KEYS - FEW);
	waits_for(other, KEYS - FEW, FEW);
	polls = polls_in(SECONDS * 1000, KEYS, &longest);
	ck_assert_uint_le(polls, SECONDS * POLLS_MOST + BURST);
	ck_assert_uint_gt(polls, SECONDS * POLLS_MOST * 9 / 10);
	/* A tick, and the first one, which was late. */
	ck_assert_uint_le(longest, 250 + KEYS * 1000 / POLLS_MOST + 2 * 50);
	ends_all(mine, 7);
}

/* Unanswered polls take only a share of a server's queue. */
TEST(polls_in_flight_are_limited)
{
	struct waiting *mine;

	calls_max = 20;
	use_rooms(MANY);
	mine = fake.host.waiting;
	waits_for(mine, 0, 200);
	for (int i = 0; i < 100; i++)
		(void)fake_pass(&fake, 10);
	ck_assert_uint_le(fake_waiting(&fake), calls_max);
	ck_assert_uint_gt(fake_waiting(&fake), calls_max / 2);
	ends_all(mine, 1);
}

/* All queues are found, in few steps, and the table shrinks to nothing in the end. */
TEST(the_table_grows)
{
	enum { KEYS = 5000, STEPS = 12 };
	struct waiting *mine;
	size_t all = 0;
	char key[16];

	use_rooms(KEYS);
	mine = fake.host.waiting;
	waits_for(mine, 0, KEYS);
	for (size_t i = 0; i < mine->table.size; i++) {
		size_t steps = 0;
		for (const struct wait_line *line = mine->table.buckets[i]; line; line = line->next)
			steps++;
		ck_assert_uint_le(steps, STEPS);
		all += steps;
	}
	ck_assert_uint_eq(all, KEYS);
	for (int i = 0; i < KEYS; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		ck_assert(waiting_has(mine, slice_of(key, strlen(key))));
	}
	ck_assert(!waiting_has(mine, SLICE("k")));
	ends_all(mine, KEYS / MANY);
	ck_assert_uint_eq(mine->table.size, 0);
}

/* Passes slices until the command has its places, which may be `most` more in each. */
static size_t slices_to_join(struct waiting *room, size_t lines, size_t most)
{
	size_t slices = 0;

	for (; room->lines < lines; slices++) {
		size_t before = room->lines;
		ck_assert_uint_gt(fake_pass(&fake, 0), 0);
		ck_assert_uint_le(room->lines, before + most);
	}
	return slices;
}

/* A push meanwhile is not missed. The client hears the end at once; its places go in slices. */
TEST(one_joins_and_leaves_in_slices)
{
	enum { STEPS = 80, PIECE = 40 };
	struct waiting *mine;
	size_t slices = 0;

	use_rooms(MANY);
	mine = fake.host.waiting;
	use_slices(STEPS);
	waits_for(mine, 0, MANY);
	ck_assert_uint_gt(slices_to_join(mine, MANY / 2, PIECE), MANY / 2 / PIECE);
	(void)fake_calls(&fake);
	waiting_pushed(mine, SLICE("k3"));
	server_hears_nothing();
	ck_assert_uint_gt(slices_to_join(mine, MANY, PIECE), MANY / 2 / PIECE);
	/* The next slice sees that it has joined all. */
	(void)fake_pass(&fake, 0);
	serves(FETCH("k3"), "EN\r\n");
	waiting_end(mine);
	client_is_told("END\r\n");
	ck_assert_uint_eq(board.keys, 0);
	for (; mine->lines > 0; slices++) {
		size_t before = mine->lines;
		ck_assert_uint_gt(fake_pass(&fake, 0), 0);
		ck_assert_uint_le(before, mine->lines + PIECE);
	}
	ck_assert_uint_gt(slices, MANY / PIECE);
	(void)fake_pass(&fake, 1000);
}

/* A client that leaves while its command joins. */
TEST(one_leaves_while_it_joins)
{
	struct waiting *mine;

	use_rooms(MANY);
	mine = fake.host.waiting;
	use_slices(80);
	waits_for(mine, 0, MANY);
	(void)slices_to_join(mine, MANY / 2, MANY);
	fake.account.gone = true;
	STAILQ_FIRST(&fake.tasks)->resume(STAILQ_FIRST(&fake.tasks));
	while (mine->count || mine->lines)
		ck_assert_uint_gt(fake_pass(&fake, 0), 0);
	client_is_told("END\r\n");
	ck_assert_uint_eq(board.keys, 0);
}

/* All commands end, in slices. */
TEST(many_end_in_slices)
{
	enum { CLIENTS = 300, PIECE = 60 };
	struct waiting *mine;
	size_t before;

	use_rooms(CLIENTS);
	mine = fake.host.waiting;
	for (size_t i = 0; i < CLIENTS; i++)
		waits_for(mine, i, 1);
	use_slices(50);
	waiting_end(mine);
	for (before = CLIENTS; before > 0; before = waiting_count(mine)) {
		(void)fake_pass(&fake, 50);
		ck_assert_uint_gt(waiting_count(mine) + PIECE, before > PIECE ? before - PIECE : 0);
		ck_assert_uint_lt(waiting_count(mine), before);
	}
	use_slices(SIZE_MAX);
	ends_all(mine, CLIENTS);
}

/* A push does not look at all who wait for the key, though all of them have left. */
TEST(one_push_looks_at_some)
{
	enum { CLIENTS = 350, MOST = 100 };
	struct waiting *mine;

	use_rooms(CLIENTS);
	mine = fake.host.waiting;
	for (size_t i = 0; i < CLIENTS; i++)
		waits_for(mine, 0, 1);
	left = true;
	waiting_pushed(mine, SLICE("k0"));
	ck_assert_uint_ge(waiting_count(mine), CLIENTS - MOST);
	ck_assert_uint_lt(waiting_count(mine), CLIENTS);
	/* The list is there, so the rest follow. */
	for (int i = 0; i < 100 && waiting_count(mine); i++) {
		(void)fake_pass(&fake, 10);
		while (fake_waiting(&fake))
			(void)fake_answer(&fake, "HD kk0 f0 c7\r\n");
	}
	ck_assert_uint_eq(waiting_count(mine), 0);
	left = false;
	ends_all(mine, CLIENTS);
}

/* Finds the first key after k0 that has its slot on the board. */
static size_t neighbour(void)
{
	char key[16];

	for (size_t i = 1;; i++) {
		snprintf(key, sizeof(key), "k%zu", i);
		if (push_board_slot(push_board_hash(&board, slice_of(key, strlen(key)))) ==
			push_board_slot(push_board_hash(&board, SLICE("k0"))))
			return i;
	}
}

/* Of the keys that share a slot, one push wakes one; after several pushes, all are woken, since any may have been pushed to. */
TEST(a_push_wakes_its_key)
{
	struct waiting *mine;
	size_t near = neighbour();
	char key[16];

	use_rooms(MANY);
	mine = fake.host.waiting;
	snprintf(key, sizeof(key), "k%zu", near);
	waits_for(mine, 0, 1);
	waits_for(mine, near, 1);
	waits_for(mine, near + 1, 100);
	(void)fake_calls(&fake);
	ck_assert(push_board_note(&board, SLICE("k0")));
	waiting_look(mine);
	serves(FETCH("k0"), "EN\r\n");
	ck_assert(push_board_note(&board, slice_of(key, strlen(key))));
	ck_assert(push_board_note(&board, SLICE("k0")));
	waiting_look(mine);
	ck_assert_uint_eq(fake_waiting(&fake), 2);
	server_answers("EN\r\nEN\r\n");
	waiting_look(mine);
	ck_assert_uint_eq(fake_waiting(&fake), 0);
	ends_all(mine, 3);
}

/* --- how many may wait --- */

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
	char all[80];

	for (size_t max = 0; max < 3; max++) {
		use_rooms(max);
		for (size_t count = 0; count < max; count++)
			waits("blpop 0 k\r\n", count + 1);
		client_asks("blpop 0 k\r\n");
		while (fake_waiting(&fake))
			(void)fake_answer(&fake, "EN\r\n");
		ck_assert_uint_eq(waiting_count(fake.host.waiting), max);
		snprintf(
			all, sizeof(all), "%sSERVER_ERROR too many waiting clients\r\n", told[max]);
		ends(fake.host.waiting, all);
	}
}

/* Tasks of all workers count together. A task that ends makes room for another. */
TEST(workers_share_the_number)
{
	struct waiting *mine;

	use_rooms(4);
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
	ck_assert_uint_eq(atomic_load(&board.keys), 0);
	fake.host.waiting = mine;
}

#define REFUSED "SERVER_ERROR too many waiting clients\r\n"

/* Each key of a client counts. As many may wait next as have left. */
TEST(keys_are_counted)
{
	use_rooms(5);
	waits_for(fake.host.waiting, 0, 2);
	waits_for(fake.host.waiting, 0, 2);
	waits_for(fake.host.waiting, 5, 2);
	ck_assert_uint_eq(waiting_count(fake.host.waiting), 2);
	waits_for(fake.host.waiting, 5, 1);
	ck_assert_uint_eq(waiting_count(fake.host.waiting), 3);
	waiting_pushed(fake.host.waiting, SLICE("k5"));
	server_answers(FOUND("k5", 9, "@list +x "));
	server_answers("STORED\r\n");
	waits_for(fake.host.waiting, 5, 1);
	waits_for(fake.host.waiting, 5, 1);
	waiting_end(fake.host.waiting);
	client_is_told("END\r\nEND\r\n" REFUSED "VALUE k5 0 1\r\nx\r\nEND\r\nEND\r\n" REFUSED);
	(void)fake_pass(&fake, 1000);
}

/* Before any server is asked. */
TEST(a_command_has_few_keys)
{
	struct buf line = request_for(0, MANY + 1);

	ck_assert_str_eq(fake_ask(&fake, line.data), "CLIENT_ERROR too many keys");
	server_hears_nothing();
	buf_free(&line);
}
