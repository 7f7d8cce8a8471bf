/* Turns: equal bytes for all waiting clients, and new clients first. */
#include "unit.h"
#include "util/turns.h"

enum { KIB = 1024, TURN_BYTES = 1 << 20 };

static struct turns turns;
static struct turn a, b, c;

static void setup(void)
{
	turns_init(&turns, TURN_BYTES);
	a = b = c = (struct turn){ 0 };
}

/* Queues a client that has sent requests before. */
static void wait_again(struct turn *turn)
{
	turn_charge(turn, 0);
	turns_wait(&turns, turn);
}

/*
 * Takes its turn, requests values of this size as long as permitted, and queues again. Returns the
 * bytes.
 */
static uint64_t ask_and_wait(struct turn *turn, uint64_t size)
{
	uint64_t sum = 0;

	ck_assert_int_gt(turn->credit, 0);
	for (; turn->credit > 0; sum += size)
		turn_charge(turn, size);
	turns_wait(&turns, turn);
	return sum;
}

TEST(one_after_another)
{
	struct turn *const all[] = { &a, &b, &c };

	ck_assert(turns_are_empty(&turns));
	ck_assert_ptr_null(turns_next(&turns));
	for (int i = 0; i < 3; i++)
		wait_again(all[i]);
	for (int i = 0; i < 30; i++) {
		struct turn *next = turns_next(&turns);
		ck_assert_ptr_eq(next, all[i % 3]);
		ck_assert(!next->waits);
		ask_and_wait(next, TURN_BYTES);
	}
	ck_assert(!turns_are_empty(&turns));
}

/* Whatever the sizes, each gets as many bytes as the others, but for one value. */
TEST(equal_bytes)
{
	static const uint64_t sizes[] = { 20 * KIB, 1000 * KIB, 32 * 1000 * KIB };
	struct turn *const all[] = { &a, &b, &c };
	uint64_t got[3] = { 0 };

	for (int i = 0; i < 3; i++)
		wait_again(all[i]);
	for (int n = 0; n < 3000; n++) {
		struct turn *next = turns_next(&turns);
		int i = next == &a ? 0 : next == &b ? 1 : 2;
		got[i] += ask_and_wait(next, sizes[i]);
	}
	for (int i = 1; i < 3; i++) {
		uint64_t more = got[i] > got[0] ? got[i] - got[0] : got[0] - got[i];
		ck_assert_uint_le(more, sizes[i] + 2 * TURN_BYTES);
	}
}

/* A new one precedes the waiting ones, but they get every second turn. */
TEST(new_ones_first)
{
	struct turn fresh[4];

	wait_again(&a);
	wait_again(&b);
	for (int i = 0; i < 4; i++) {
		fresh[i] = (struct turn){ 0 };
		turns_wait(&turns, &fresh[i]);
	}
	ck_assert_ptr_eq(turns_next(&turns), &fresh[0]);
	ck_assert_ptr_eq(turns_next(&turns), &a);
	ck_assert_ptr_eq(turns_next(&turns), &fresh[1]);
	ck_assert_ptr_eq(turns_next(&turns), &b);
	ck_assert_ptr_eq(turns_next(&turns), &fresh[2]);
	ck_assert_ptr_eq(turns_next(&turns), &fresh[3]);
	ask_and_wait(&fresh[3], KIB);
	turns_wait(&turns, &c);
	wait_again(&a);
	ck_assert_ptr_eq(turns_next(&turns), &fresh[3]);
	ck_assert_ptr_eq(turns_next(&turns), &c);
	ck_assert_ptr_eq(turns_next(&turns), &a);
	ck_assert(turns_are_empty(&turns));
}

TEST(some_leave)
{
	wait_again(&a);
	wait_again(&b);
	turns_wait(&turns, &c);
	turns_leave(&turns, &a);
	turns_leave(&turns, &c);
	ck_assert(!a.waits && !c.waits && b.waits);
	ck_assert_ptr_eq(turns_next(&turns), &b);
	ck_assert_ptr_null(turns_next(&turns));
}

/* A client that is charged while it waits for its first turn stays in its queue. */
TEST(paid_while_it_waits)
{
	turns_wait(&turns, &a);
	turn_charge(&a, 1);
	turns_leave(&turns, &a);
	ck_assert(turns_are_empty(&turns));
	turns_wait(&turns, &b);
	ck_assert_ptr_eq(turns_next(&turns), &b);
}

/* Requests without competition cost nothing later. */
TEST(no_debt_of_quiet_times)
{
	wait_again(&a);
	ask_and_wait(turns_next(&turns), 100 * TURN_BYTES);
	turns_leave(&turns, &a);
	turn_free_of_charge(&a);
	wait_again(&a);
	wait_again(&b);
	ck_assert_ptr_eq(turns_next(&turns), &a);
}

/* Nor does a turn that was not used up add to the next one. */
TEST(no_savings)
{
	for (int i = 0; i < 10; i++) {
		wait_again(&a);
		turns_next(&turns);
		turn_charge(&a, KIB);
	}
	wait_again(&a);
	ck_assert_uint_le(ask_and_wait(turns_next(&turns), KIB), TURN_BYTES);
}

FIXTURE(setup, NULL)
