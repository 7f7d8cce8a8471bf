/* Calls that are queued for a server: in the order of each account, and in turns of all. */
#include "unit.h"
#include "upstream/call_turns.h"

enum { MANY = 1000, FEW = 3, TURN = CALL_TURNS_WORTH / CALL_TURNS_COST };

static struct call_turns turns;
static struct account greedy, modest;
static struct waiter waiters[3 * MANY];
static size_t added;

static void setup(void)
{
	call_turns_init(&turns);
	greedy = modest = (struct account){ 0 };
	added = 0;
}

static void add(struct account *account, size_t count, uint32_t expected)
{
	for (; count > 0; count--, added++) {
		waiters[added].key = SLICE("key");
		call_turns_add(&turns,
			&(struct call){
				.verb = CALL_GET, .account = account, .expected = expected },
			&waiters[added]);
	}
}

/* Returns the number of the next call, in the order in which they were added. */
static size_t take(struct account *of)
{
	struct call call;
	size_t number = (size_t)(call_turns_take(&turns, &call) - waiters);

	ck_assert_ptr_eq(call.account, of);
	assert_bytes(call.key, "key");
	return number;
}

static void take_all(void)
{
	struct call call;

	while (turns.count)
		(void)call_turns_take(&turns, &call);
	ck_assert_ptr_null(greedy.calls);
	ck_assert_ptr_null(modest.calls);
	ck_assert_uint_eq(greedy.used + modest.used, 0);
}

TEST(each_account_in_order)
{
	add(&greedy, MANY, 0);
	add(&modest, MANY, 0);
	for (size_t next[2] = { 0, MANY }; turns.count;) {
		struct call call;
		size_t number = (size_t)(call_turns_take(&turns, &call) - waiters);
		ck_assert_uint_eq(number, next[call.account == &modest]++);
	}
	take_all();
}

/* Returns how many calls of others are taken before all calls of the modest account. */
static size_t taken_before(void)
{
	struct call call;
	size_t others = 0;

	while (modest.calls) {
		(void)call_turns_take(&turns, &call);
		others += call.account != &modest;
	}
	return others;
}

/* However many calls another one has queued before. A new account gets every second turn. */
TEST(few_are_not_delayed)
{
	add(&greedy, MANY, 0);
	ck_assert_uint_eq(take(&greedy), 0);
	add(&modest, FEW, 0);
	ck_assert_uint_lt(taken_before(), 2 * TURN);
	take_all();
}

/* Background work, which has no account, takes turns like a client. */
TEST(background)
{
	add(NULL, MANY, 0);
	ck_assert_uint_eq(turns.background, MANY);
	ck_assert_uint_eq(take(NULL), 0);
	add(&modest, FEW, 0);
	ck_assert_uint_lt(taken_before(), 2 * TURN);
	take_all();
	ck_assert_uint_eq(turns.background, 0);
}

/* An account that expects large values has fewer calls in a turn. */
TEST(equal_bytes)
{
	add(&greedy, MANY, CALL_TURNS_WORTH);
	add(&modest, MANY / TURN * TURN, 0);
	ck_assert_uint_le(taken_before(), MANY / TURN + 2);
	take_all();
}

/* A queued call counts for its account until it is taken. */
TEST(bytes)
{
	size_t each;

	add(&greedy, 1, 0);
	each = greedy.used;
	ck_assert_uint_ge(each, sizeof(struct call));
	add(&greedy, MANY - 1, 0);
	ck_assert_uint_eq(greedy.used, MANY * each);
	ck_assert_uint_eq(take(&greedy), 0);
	ck_assert_uint_eq(greedy.used, (MANY - 1) * each);
	take_all();
}

/* An account with calls at several servers has a queue at each. */
TEST(several_servers)
{
	struct call_turns other;
	struct call call;

	call_turns_init(&other);
	add(&greedy, FEW, 0);
	waiters[added].key = SLICE("key");
	call_turns_add(&other, &(struct call){ .account = &greedy }, &waiters[added]);
	ck_assert_uint_eq(turns.count, FEW);
	ck_assert_uint_eq(other.count, 1);
	ck_assert_ptr_eq(call_turns_take(&other, &call), &waiters[FEW]);
	ck_assert_uint_eq(take(&greedy), 0);
	take_all();
}

FIXTURE(setup, NULL)
