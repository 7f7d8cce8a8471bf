/*
 * A worker's measurements, as far as no worker is needed: hot keys over time, the largest sets,
 * the last slow requests.
 */
#include "measure/notes.h"
#include "unit.h"

enum { HALF = NOTES_HALF_LIFE * 1000, START = 1000 * HALF };

static struct notes notes;
static struct topk_key entries[TOPK_ENTRIES];

static void setup(void)
{
	notes_init(&notes, 1, START);
}

static void teardown(void)
{
	notes_fini(&notes);
}

/* --- hot keys --- */

/* As the client does: `times` requests of these keys. */
static void ask(const char *keys, uint64_t count, uint64_t times, uint64_t bytes, uint64_t now)
{
	for (uint64_t i = 0; i < times; i++) {
		if (!topk_sample_passes(&notes.sample, count))
			notes_sample_keys(&notes, guard_text(keys), count, bytes, now);
	}
}

static uint64_t weight_of(enum hot_by by, const char *key, uint64_t now)
{
	struct hot_total total = { 0 };
	size_t n = notes_copy_hot(&notes, by, now, entries, &total);

	for (size_t i = 0; i < n; i++) {
		if (slice_equal(slice_of(entries[i].key, entries[i].n), slice_of(key, strlen(key))))
			return entries[i].weight;
	}
	return 0;
}

static void assert_about(uint64_t got, uint64_t wanted)
{
	ck_assert_msg(got * 100 >= wanted * 85 && got * 100 <= wanted * 115,
		"%llu is not about %llu", (unsigned long long)got, (unsigned long long)wanted);
}

TEST(each_key_counts)
{
	ask("a b a c", 4, 64000, 400, START);
	assert_about(weight_of(HOT_BY_REQUESTS, "a", START), 2000);
	assert_about(weight_of(HOT_BY_REQUESTS, "b", START), 1000);
	assert_about(weight_of(HOT_BY_REQUESTS, "c", START), 1000);
	assert_about(weight_of(HOT_BY_BYTES, "b", START), 1000 * 100);
}

/* A request of very many keys is sampled many times, and one key may have spaces. */
TEST(many_keys_and_odd_ones)
{
	static char keys[4 * 12800];

	for (size_t i = 0; i < sizeof(keys); i += 4)
		memcpy(keys + i, i % 8 ? "k1 " : "k22", 3);
	for (size_t i = 3; i < sizeof(keys); i += 4)
		keys[i] = ' ';
	notes_sample_keys(&notes, slice_of(keys, sizeof(keys)), 12800, 12800, START);
	assert_about(
		weight_of(HOT_BY_REQUESTS, "k1", START) + weight_of(HOT_BY_REQUESTS, "k22", START),
		200);
	ask("a b", 1, 64 * 200, 1, START);
	assert_about(weight_of(HOT_BY_REQUESTS, "a b", START), 200);
}

/* Yesterday's hot key leaves. The seconds are weighed alike, so the rate of a steady key stays. */
TEST(half_life)
{
	uint64_t now = START, weight;

	ask("old", 1, 64 * 1000, 1, now);
	weight = weight_of(HOT_BY_REQUESTS, "old", now);
	ck_assert_uint_eq(weight_of(HOT_BY_REQUESTS, "old", now + HALF - 1), weight);
	ck_assert_uint_eq(weight_of(HOT_BY_REQUESTS, "old", now + HALF), weight / 2);
	ck_assert_uint_eq(weight_of(HOT_BY_REQUESTS, "old", now + 100 * (uint64_t)HALF), 0);
	notes_reset(&notes, now + 200 * (uint64_t)HALF);
	now += 200 * (uint64_t)HALF;
	for (int second = 0; second < 1000; second++, now += 1000)
		ask("steady", 1, 64 * 10, 1, now);
	assert_about((uint64_t)(100 * (double)weight_of(HOT_BY_REQUESTS, "steady", now) /
			     notes_seconds(&notes, now)),
		100 * 10);
}

TEST(seconds)
{
	ck_assert_double_eq(notes_seconds(&notes, START), 0);
	ck_assert_double_eq(notes_seconds(&notes, START + 2500), 2.5);
	ck_assert_double_eq_tol(
		notes_seconds(&notes, START + HALF + 1000), NOTES_HALF_LIFE / 2.0 + 1, 0.01);
	ck_assert_double_eq_tol(
		notes_seconds(&notes, START + 50 * (uint64_t)HALF), NOTES_HALF_LIFE, 0.1);
}

static double keys_per_request(uint64_t now)
{
	struct hot_total total = { 0 };

	notes_copy_hot(&notes, HOT_BY_REQUESTS, now, entries, &total);
	return (double)total.weight * REQUEST_UNIT / (double)total.requests;
}

/* Exact if all requests have the same number of keys, whichever of them are sampled. */
TEST(requests_of_the_keys)
{
	struct hot_total total = { 0 };

	ask("k", 1, 64000, 1, START);
	ck_assert_double_eq(keys_per_request(START), 1);
	ck_assert_double_eq(keys_per_request(START + 3 * HALF), 1);
	notes_copy_hot(&notes, HOT_BY_BYTES, START + 100 * (uint64_t)HALF, entries, &total);
	ck_assert_uint_eq(total.requests, 0);
	notes_reset(&notes, START + 100 * (uint64_t)HALF);
	ask("a b a c", 4, 64000, 400, START + 100 * (uint64_t)HALF);
	ck_assert_double_eq(keys_per_request(START + 100 * (uint64_t)HALF), 4);
	/* As many requests of one key: on average two and a half. */
	ask("k", 1, 64000, 1, START + 100 * (uint64_t)HALF);
	ck_assert_double_eq_tol(keys_per_request(START + 100 * (uint64_t)HALF), 2.5, 0.4);
}

/* --- the largest sets --- */

static void note(const char *key, uint64_t bytes, int64_t now)
{
	notes_add_large(&notes, slice_of(key, strlen(key)), bytes / 10, bytes, now);
}

TEST(keeps_the_largest)
{
	static struct large_collection list[2 * LARGE_ENTRIES];
	char key[8];
	size_t n;

	for (int i = 0; i < 100; i++) {
		sprintf(key, "k%d", i);
		note(key, 1000 + (uint64_t)(i * 37 % 100), 50);
	}
	note("k99", 5000, 51);
	note("tiny", 1, 52);
	n = notes_copy_large(&notes, 60, list);
	ck_assert_uint_eq(n, LARGE_ENTRIES);
	memcpy(list + n, list, n * sizeof(*list));
	for (size_t i = n; i < 2 * n; i++)
		list[i].seen--, list[i].top.weight += 10000;
	ck_assert_uint_eq(topk_merge(list, 2 * n, sizeof(list[0]), notes_join_large), n);
	assert_bytes(slice_of(list[0].top.key, list[0].top.n), "k99");
	ck_assert_uint_eq(list[0].top.weight, 5000);
	ck_assert_uint_eq(list[0].members, 500);
	for (size_t i = 1; i < n; i++)
		ck_assert_uint_eq(list[i].top.weight, 1100 - i);
	notes_reset(&notes, START);
	ck_assert_uint_eq(notes_copy_large(&notes, 60, list), 0);
}

static bool is_listed(const char *key)
{
	static struct large_collection list[LARGE_ENTRIES];
	size_t n = notes_copy_large(&notes, 60, list);

	for (size_t i = 0; i < n; i++) {
		if (slice_equal(
			    slice_of(list[i].top.key, list[i].top.n), slice_of(key, strlen(key))))
			return true;
	}
	return false;
}

/* Keys that end alike are different keys. */
TEST(takes_the_place_of_the_smallest)
{
	char key[24];

	for (int i = 0; i < LARGE_ENTRIES; i++) {
		sprintf(key, "%d:of-this-set", i);
		note(key, 1000 + (uint64_t)i, 50);
	}
	note("small", 999, 50);
	note("equal", 1000, 50);
	ck_assert(!is_listed("small") && !is_listed("equal") && is_listed("0:of-this-set"));
	note("large", 1001, 50);
	ck_assert(is_listed("large") && !is_listed("0:of-this-set") && is_listed("1:of-this-set"));
	note("9:of-this-set", 10, 51);
	note("small", 999, 51);
	ck_assert(is_listed("small") && !is_listed("9:of-this-set") && is_listed("1:of-this-set"));
	notes_reset(&notes, START);
	note("1", 1, 52);
	ck_assert(is_listed("1") && !is_listed("small"));
}

/* A set may shrink, and one that is no longer read is replaced. */
TEST(forgets)
{
	static struct large_collection list[LARGE_ENTRIES];
	char key[8];

	for (int i = 0; i < LARGE_ENTRIES; i++) {
		sprintf(key, "k%d", i);
		note(key, 1000, i);
	}
	note("k0", 10, 100);
	ck_assert_uint_eq(notes_copy_large(&notes, 100, list), LARGE_ENTRIES);
	ck_assert_uint_eq(list[0].top.weight, 10);
	ck_assert_uint_eq(notes_copy_large(&notes, LARGE_FORGET + 100, list), 1);
	note("new", 5, LARGE_FORGET + 100);
	ck_assert_uint_eq(notes_copy_large(&notes, LARGE_FORGET + 100, list), 2);
}

/* --- slow requests --- */

TEST(keeps_the_last)
{
	static struct slow_request list[SLOW_REQUESTS];
	uint64_t count = 0, sum = 0;

	for (uint64_t i = 1; i <= 1000; i++)
		notes_add_slow(&notes, &(struct slow_request){ .time = i });
	ck_assert_uint_eq(notes_copy_slow(&notes, list, &count), SLOW_REQUESTS);
	ck_assert_uint_eq(count, 1000);
	for (size_t i = 0; i < SLOW_REQUESTS; i++) {
		ck_assert_uint_gt(list[i].time, 1000 - SLOW_REQUESTS);
		sum += list[i].time;
	}
	ck_assert_uint_eq(sum, SLOW_REQUESTS * (1000 + 1000 - SLOW_REQUESTS + 1) / 2);
	notes_reset_slow(&notes);
	ck_assert_uint_eq(notes_copy_slow(&notes, list, &count), 0);
}

TEST(a_turn_has_room_for_as_many)
{
	for (int i = 0; i < SLOW_REQUESTS; i++)
		ck_assert(notes_have_room(&notes, 7));
	ck_assert(!notes_have_room(&notes, 7));
	ck_assert(notes_have_room(&notes, 8));
}

FIXTURE(setup, teardown)
