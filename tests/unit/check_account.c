/*
 * Changed accounts are in their owner's list, once, until the owner has checked them or the client
 * has disconnected.
 */
#include "collection/account.h"

#include "unit.h"

static struct account_list changed = TAILQ_HEAD_INITIALIZER(changed);

TEST(changes)
{
	struct account one = { .changed = &changed }, other = one;

	account_use(&one, 5, 0);
	account_hold(&other, 3, 0);
	account_hold(&one, 7, 0);
	ck_assert_uint_eq(one.used, 5);
	ck_assert_uint_eq(one.held, 7);
	ck_assert_ptr_eq(TAILQ_FIRST(&changed), &one);
	ck_assert_ptr_eq(TAILQ_NEXT(&one, link), &other);
	ck_assert_ptr_null(TAILQ_NEXT(&other, link));
	account_end_turn(&one);
	account_end_turn(&one);
	ck_assert_ptr_eq(TAILQ_FIRST(&changed), &other);
	account_use(&one, 0, 5);
	ck_assert_uint_eq(one.used, 0);
	ck_assert_ptr_eq(TAILQ_NEXT(&other, link), &one);
}

/* Work for the client is still charged, but its owner is no longer there to check it. */
TEST(gone)
{
	struct account account = { .changed = &changed };

	account_use(&account, 5, 0);
	account_close(&account, 7);
	ck_assert(account.gone && account.gone_at == 7 && TAILQ_EMPTY(&changed));
	account_use(&account, 1, 5);
	ck_assert_uint_eq(account.used, 1);
	ck_assert(TAILQ_EMPTY(&changed));
}

/* Of a host that looks at none. */
TEST(without_owner)
{
	struct account account = { 0 };

	account_hold(&account, 5, 0);
	account_end_turn(&account);
	ck_assert_uint_eq(account.held, 5);
}
