/* The sketch of the most frequent keys, and the sample that feeds it. */
#include "unit.h"
#include "util/hash.h"
#include "util/topk.h"

static struct topk sketch;
static struct topk_key entries[2 * TOPK_ENTRIES];

static void setup(void)
{
	topk_init(&sketch);
}

static void add(const char *key, uint64_t weight)
{
	struct slice s = slice_of(key, strlen(key));

	topk_add(&sketch, s, hash_key(s, 1), weight);
}

static size_t sorted(void)
{
	return topk_merge(entries, topk_entries(&sketch, entries), sizeof(entries[0]), topk_join);
}

static void assert_entry(size_t i, const char *key, uint64_t weight)
{
	assert_bytes(slice_of(entries[i].key, entries[i].n), key);
	ck_assert_uint_eq(entries[i].weight, weight);
}

static unsigned number_of(const struct topk_key *e)
{
	char digits[8] = "";

	memcpy(digits, e->key, e->n);
	return (unsigned)strtoul(digits, NULL, 10);
}

TEST(counts_few_keys_exactly)
{
	ck_assert_uint_eq(sorted(), 0);
	add("a", 1);
	add("b", 5);
	add("c", 2);
	add("a", 2);
	ck_assert_uint_eq(sorted(), 3);
	assert_entry(0, "b", 5);
	assert_entry(1, "a", 3);
	assert_entry(2, "c", 2);
	ck_assert_uint_eq(sketch.total, 10);
}

/* A key without a slot replaces the lowest one, and inherits its weight. */
TEST(replaces_the_least)
{
	char key[8];

	for (int i = 0; i < TOPK_ENTRIES; i++) {
		sprintf(key, "k%d", i);
		add(key, i == 77 ? 2 : 10 + (uint64_t)i);
	}
	add("new", 3);
	ck_assert_uint_eq(sorted(), TOPK_ENTRIES);
	assert_entry(TOPK_ENTRIES - 1, "new", 5);
	add("new", 1000);
	add("k77", 1);
	ck_assert_uint_eq(sorted(), TOPK_ENTRIES);
	assert_entry(0, "new", 1005);
	assert_entry(TOPK_ENTRIES - 1, "k77", 11);
}

/*
 * In whatever order keys arrive, no weight is too small, the weights add up to the total, and each
 * is found again.
 */
TEST(keeps_its_promises)
{
	static uint64_t truth[1000];
	uint64_t random = 7, sum = 0;
	char key[8];
	size_t n;

	memset(truth, 0, sizeof(truth));
	for (int i = 0; i < 100000; i++) {
		uint64_t number = random_next(&random) % 1000, weight = random_next(&random) % 5;
		number = number < 500 ? number % 20 : number;
		truth[number] += weight;
		sprintf(key, "%u", (unsigned)number);
		add(key, weight);
	}
	n = sorted();
	for (size_t i = 0; i < n; i++) {
		uint64_t wanted = truth[number_of(&entries[i])];
		ck_assert_uint_ge(entries[i].weight, wanted);
		ck_assert_uint_le(entries[i].weight, wanted + sketch.total / TOPK_ENTRIES);
		sum += entries[i].weight;
	}
	ck_assert_uint_eq(sum, sketch.total);
	for (size_t i = 0; i < 20; i++)
		ck_assert_uint_lt(number_of(&entries[i]), 20);
}

TEST(long_keys_and_any_bytes)
{
	char key[300];
	struct slice s = slice_of(key, sizeof(key));

	memset(key, 0, sizeof(key));
	topk_add(&sketch, s, 1, 1);
	key[TOPK_KEY] = 'x';
	topk_add(&sketch, s, 1, 1);
	topk_add(&sketch, slice_of("", 0), 1, 1);
	ck_assert_uint_eq(sorted(), 2);
	ck_assert_uint_eq(entries[0].weight, 2);
	ck_assert_uint_eq(entries[0].n, TOPK_KEY);
}

TEST(halves)
{
	add("a", 100);
	add("b", 9);
	add("c", 1);
	topk_halve(&sketch, 1);
	ck_assert_uint_eq(sorted(), 2);
	assert_entry(0, "a", 50);
	assert_entry(1, "b", 4);
	ck_assert_uint_eq(sketch.total, 55);
	topk_halve(&sketch, UINT64_MAX);
	ck_assert_uint_eq(sorted(), 0);
}

/* The sketches of two workers. */
TEST(merges)
{
	size_t n;

	add("a", 10);
	add("b", 5);
	n = topk_entries(&sketch, entries);
	topk_init(&sketch);
	add("b", 7);
	add("ba", 1);
	n += topk_entries(&sketch, entries + n);
	ck_assert_uint_eq(topk_merge(entries, n, sizeof(entries[0]), topk_join), 3);
	assert_entry(0, "b", 12);
	assert_entry(1, "a", 10);
	assert_entry(2, "ba", 1);
}

/*
 * Every position of a period is sampled equally often, whatever the period is, and however many
 * keys arrive at once.
 */
TEST(sample_is_not_fooled)
{
	for (unsigned period = 1; period <= 256; period *= 2) {
		struct topk_sample sample = { .random = period };
		uint64_t hits[256] = { 0 }, chosen = 0;
		for (uint64_t i = 0, n; i < 4000000; i += n) {
			uint64_t passed = 0;
			n = i % 7 + 1;
			while (!topk_sample_passes(&sample, n - passed)) {
				passed += topk_sample_next(&sample);
				hits[(i + passed++) % period]++;
				chosen++;
			}
		}
		ck_assert_uint_ge(chosen, 4000000 / TOPK_SAMPLE * 97 / 100);
		ck_assert_uint_le(chosen, 4000000 / TOPK_SAMPLE * 103 / 100);
		for (unsigned i = 0; i < period; i++)
			ck_assert_uint_ge(hits[i] * period, chosen * 3 / 5);
	}
}

/* --- Zipf's distribution: the key of rank r has the weight 1 / r^1.1 --- */

enum { KEYS = 100000, REQUESTS = 8000000, TOP = 10 };

static double below[KEYS];
static uint32_t truth[KEYS];

/* r^-1.1 as r^-1 * (r^-1)^(1/10): the library of mathematics is not linked. The tenth root is Newton's. */
static double weight_of(unsigned rank)
{
	double x = 1.0 / rank, root = 1;

	for (int i = 0; i < 100; i++) {
		double power = 1;
		for (int j = 0; j < 9; j++)
			power *= root;
		root -= (root * power - x) / (10 * power);
	}
	return x * root;
}

static unsigned draw(uint64_t *random)
{
	double at = (double)(random_next(random) >> 11) / 9007199254740992.0 * below[KEYS - 1];
	unsigned low = 0, high = KEYS - 1;

	while (low < high) {
		unsigned middle = low + (high - low) / 2;
		if (below[middle] < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void feed(void)
{
	struct topk_sample sample = { .random = 1 };
	uint64_t random = 20261122;
	char key[16];

	memset(truth, 0, sizeof(truth));
	for (unsigned i = 0; i < KEYS; i++)
		below[i] = (i ? below[i - 1] : 0) + weight_of(i + 1);
	for (unsigned i = 0; i < REQUESTS; i++) {
		unsigned rank = draw(&random);
		truth[rank]++;
		if (topk_sample_passes(&sample, 1))
			continue;
		(void)topk_sample_next(&sample);
		sprintf(key, "%u", rank);
		add(key, 1);
	}
}

/* The true ten hottest are the ten reported, in whatever order, each within a tenth of its true count. */
TEST(zipf)
{
	feed();
	ck_assert_uint_ge(sorted(), TOP);
	for (size_t i = 0; i < TOP; i++) {
		unsigned rank = number_of(&entries[i]);
		uint64_t scaled = entries[i].weight * TOPK_SAMPLE, hotter = 0;
		for (unsigned j = 0; j < KEYS; j++)
			hotter += truth[j] > truth[rank];
		ck_assert_msg(
			hotter < TOP, "key %u is only the hottest but %u", rank, (unsigned)hotter);
		ck_assert_msg(scaled * 10 >= (uint64_t)truth[rank] * 9 &&
				scaled * 10 <= (uint64_t)truth[rank] * 11,
			"key %u: %llu for %u", rank, (unsigned long long)scaled, truth[rank]);
	}
}

FIXTURE(setup, NULL)
