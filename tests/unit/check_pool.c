#include "unit.h"
#include "util/pool.h"

static struct pool pool;

TEST(gives_again_what_came_back)
{
	void *p = pool_get(&pool, 100);

	memset(p, 1, 100);
	pool_put(&pool, p, 100);
	/* With AddressSanitizer nothing is kept. */
	if (POOL_KEEP)
		ck_assert_ptr_eq(pool_get(&pool, 128), p);
	else
		p = pool_get(&pool, 128);
	void *other = pool_get(&pool, 128);
	ck_assert_ptr_ne(other, p);
	pool_put(&pool, p, 128);
	pool_put(&pool, other, 128);
	pool_free(&pool);
	for (size_t class = 0; class < POOL_CLASSES; class ++)
		ck_assert_uint_eq(pool.kept[class], 0);
}

/* Sizes next to the borders of the classes, each written over its whole length. */
TEST(every_size)
{
	void *held[3];

	for (size_t size = 1; size < 20000; size += size < 300 ? 1 : 61) {
		for (int i = 0; i < 3; i++) {
			held[i] = pool_get(&pool, size);
			memset(held[i], i, size);
		}
		for (int i = 0; i < 3; i++) {
			ck_assert_int_eq(((char *)held[i])[size - 1], i);
			pool_put(&pool, held[i], size);
		}
	}
	pool_free(&pool);
	pool_free(&pool);
}

TEST(keeps_a_bounded_number)
{
	enum { MANY = POOL_KEEP / POOL_STEP + 10 };
	static void *held[MANY];

	for (int i = 0; i < MANY; i++)
		held[i] = pool_get(&pool, POOL_STEP);
	for (int i = 0; i < MANY; i++)
		pool_put(&pool, held[i], POOL_STEP);
	ck_assert_uint_eq(pool.kept[0], POOL_KEEP);
	pool_free(&pool);
}

/* Memory that is kept in one size class is not used for a size of the next one. */
TEST(each_class_on_its_own)
{
	static const size_t most[] = { POOL_STEP, 2 * POOL_STEP, POOL_FINE - POOL_STEP, POOL_FINE,
		2 * POOL_FINE };

	for (size_t i = 0; i < sizeof(most) / sizeof(*most); i++) {
		void *p = pool_get(&pool, most[i]), *larger;
		pool_put(&pool, p, most[i]);
		larger = pool_get(&pool, most[i] + 1);
		if (POOL_KEEP)
			ck_assert_ptr_eq(pool_get(&pool, most[i]), p);
		else
			p = pool_get(&pool, most[i]);
		ck_assert_ptr_ne(larger, p);
		pool_put(&pool, larger, most[i] + 1);
		pool_put(&pool, p, most[i]);
		pool_free(&pool);
	}
}
