/*
 * Merging streams of tables: the result of several sorted arrays, of which the newest overrides
 * the others.
 */
#include "collection/text/table_merge.h"

#include "table_model.h"
#include "unit.h"
#include "util/random.h"

enum { STREAMS_MAX = 7, MERGES = 1500 };

/* A stream: its entries, and how far it was fed. */
static struct stream {
	struct table_model entries;
	size_t fed;  /* entries that were handed in */
	size_t read; /* the earlier ones were returned, or are not needed */
	char *data;  /* of the table at hand */
	struct table table;
	bool ended;
} streams[STREAMS_MAX];

static size_t count;
static struct table_merge merge;
static struct slice from;

/* Entries of one world, so that streams often have the same members. */
static void random_streams(uint64_t *random)
{
	static struct table_model world;
	size_t one_in;

	do
		table_model_random(&world, random);
	while (world.count == 0);
	count = random_next(random) % (STREAMS_MAX + 1);
	for (size_t s = 0; s < count; s++) {
		streams[s] = (struct stream){ .fed = 0 };
		one_in = 1 + random_next(random) % 6;
		for (size_t i = 0; i < world.count; i++) {
			if (random_next(random) % one_in == 0)
				table_model_add(&streams[s].entries, table_model_name(&world, i),
					random_next(random) % 3 == 0);
		}
	}
	from = slice_of("", 0);
	if (random_next(random) % 2)
		from = table_model_name(&world, random_next(random) % world.count);
}

/* The next table is freed and written again: the previous one must not be read any more. */
static void feed(size_t number, uint64_t *random)
{
	struct stream *s = &streams[number];
	struct table_writer w = { .count = 0 };
	struct buf out = BUF_EMPTY;
	size_t end = s->fed + 1 + random_next(random) % 40;

	free(s->data);
	s->data = NULL;
	if (s->fed == s->entries.count) {
		s->ended = true;
		table_merge_end(&merge, number);
		return;
	}
	for (; s->fed < s->entries.count && s->fed < end; s->fed++)
		table_writer_add(
			&w, table_model_name(&s->entries, s->fed), s->entries.list[s->fed].removed);
	table_writer_finish(&w, &out);
	s->data = malloc(buf_size(&out));
	memcpy(s->data, buf_slice(&out).p, buf_size(&out));
	ck_assert(table_open(&s->table, slice_of(s->data, buf_size(&out))));
	table_merge_feed(&merge, number, &s->table, from);
	table_writer_free(&w);
	buf_free(&out);
}

/* The next entry of a stream, or NULL. */
static const struct table_model_entry *next_of(const struct stream *s)
{
	return s->read < s->entries.count ? &s->entries.list[s->read] : NULL;
}

static struct slice name_of(const struct table_model_entry *e)
{
	return slice_of(e->name, e->size);
}

/* Returns the newest stream whose next entry is the first of all, or `count`. */
static size_t first_stream(void)
{
	size_t first = count;

	for (size_t s = 0; s < count; s++) {
		const struct table_model_entry *e = next_of(&streams[s]);
		if (e &&
			(first == count ||
				table_model_order(name_of(e), name_of(next_of(&streams[first]))) <=
					0))
			first = s;
	}
	return first;
}

/* Advances all streams past the entry of the first one. */
static void pass(size_t first)
{
	struct slice name = name_of(next_of(&streams[first]));

	for (size_t s = 0; s < count; s++) {
		const struct table_model_entry *e = next_of(&streams[s]);
		if (e && slice_equal(name_of(e), name))
			streams[s].read++;
	}
}

static bool gives(const struct table_cursor *c)
{
	size_t first = first_stream();

	if (first == count || merge.winner != first)
		return false;
	bool same = slice_equal(table_member(c), name_of(next_of(&streams[first]))) &&
		c->removed == next_of(&streams[first])->removed;
	pass(first);
	return same;
}

/* Whether it has no entry at hand, and may still get one. */
static bool is_dry(const struct stream *s)
{
	return !s->ended && s->read >= s->fed;
}

static bool is_alone(size_t stream, struct slice to)
{
	bool alone = true;

	for (size_t s = 0; s < count; s++) {
		const struct table_model_entry *e = next_of(&streams[s]);
		if (s != stream)
			alone = alone && !is_dry(&streams[s]) &&
				(!e || table_model_order(name_of(e), to) >= 0);
	}
	return alone == table_merge_alone(&merge, stream, to);
}

/* Called when a stream needs its next table: with its own next fence, and with any name. */
static bool tells_who_is_alone(size_t dry, uint64_t *random)
{
	char name[MEMBER_WORD_MAX];
	size_t size = table_model_random_name(
		random, (unsigned)(random_next(random) % TABLE_MODEL_WORLDS), name);
	const struct table_model *any = &streams[random_next(random) % count].entries;
	bool good = is_alone(dry, slice_of(name, size)) &&
		is_alone(random_next(random) % count, slice_of(name, size));

	if (any->count)
		good = good &&
			is_alone(dry, table_model_name(any, random_next(random) % any->count));
	return good;
}

static bool merges(uint64_t *random)
{
	bool good = true;

	for (size_t s = 0; s < count; s++)
		streams[s].read = table_model_seek(&streams[s].entries, from);
	for (;;) {
		switch (table_merge_next(&merge)) {
		case MERGE_ENTRY:
			good = good && gives(table_merge_entry(&merge));
			break;
		case MERGE_DRY:
			good = good && merge.winner < count && is_dry(&streams[merge.winner]) &&
				tells_who_is_alone(merge.winner, random);
			if (!good)
				return false;
			feed(merge.winner, random);
			break;
		case MERGE_END:
			/* For ever. */
			return good && first_stream() == count &&
				table_merge_next(&merge) == MERGE_END;
		}
	}
}

static void merges_streams(uint64_t seeds, bool fed)
{
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		uint64_t random = seed;
		random_streams(&random);
		table_merge_init(&merge, count);
		for (size_t s = 0; s < count && fed; s++)
			feed(s, &random);
		ck_assert_msg(merges(&random), "seed %d", (int)seed);
		for (size_t s = 0; s < count; s++)
			free(streams[s].data);
		table_merge_free(&merge);
	}
}

TEST(as_sorted_arrays)
{
	merges_streams(MERGES, false);
}

/* Tables that are supplied early are never requested. */
TEST(fed_at_first)
{
	merges_streams(MERGES / 5, true);
}

TEST(nothing)
{
	table_merge_init(&merge, 0);
	ck_assert_int_eq(table_merge_next(&merge), MERGE_END);
	ck_assert(table_merge_alone(&merge, 0, SLICE("a")));
	table_merge_free(&merge);
	table_merge_init(&merge, 2);
	ck_assert(!table_merge_alone(&merge, 0, SLICE("a")));
	ck_assert_int_eq(table_merge_next(&merge), MERGE_DRY);
	table_merge_end(&merge, merge.winner);
	ck_assert_int_eq(table_merge_next(&merge), MERGE_DRY);
	table_merge_end(&merge, merge.winner);
	ck_assert_int_eq(table_merge_next(&merge), MERGE_END);
	table_merge_free(&merge);
}
