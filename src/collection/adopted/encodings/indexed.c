/*
 * The index `X` = `+0+1` names the lists `X.0` and `X.1` of signed words, which are folded in
 * that order. Adding and removing are both an APPEND to the last list. When that is full, a new
 * list is written and then named in the index. Older lists are compressed in place, and words
 * are never copied between lists. So a word keeps its meaning if a writer with an old index
 * appends it to an older list.
 */
#include <assert.h>

#include "collection/adopted/encodings/encodings.h"
#include "collection/adopted/encodings/words.h"
#include "util/num.h"
#include "util/random.h"

enum { INDEX, LISTS /* the first list */, LISTS_MAX = 4096, NEW_LISTS_MAX = 8, PER_ROUND = 8 };

/* The largest number of 19 digits. */
#define NUMBER_MAX UINT64_C(9999999999999999999)

/* A removal of a member that cannot exist. */
static const struct slice seal = { "-^", 2 };

/* Reads the names in the index. Returns false if it is malformed. */
static bool read_index(const struct snapshot *s, struct fold *names)
{
	uint64_t number;

	if (!signed_fold(names, snapshot_item_value(s->items[INDEX])) || names->live > LISTS_MAX)
		return false;
	for (size_t i = 0; i < names->member_count; i++) {
		struct slice name = member_of(&names->members[i]);
		if (!num_parse_u64(name, &number) || name.n >= NUM_U64_MAX)
			return false;
	}
	return true;
}

static void name_lists(struct snapshot *s)
{
	struct fold names = { .seed = s->seed };
	size_t left = read_index(s, &names) ? names.live : 0;

	for (size_t i = 0; i < names.member_count && left; i++) {
		if (names.members[i].live && (--left == 0 || s->purpose != FOR_WRITE))
			snapshot_add(s, LISTS, s->key, SLICE("."), member_of(&names.members[i]),
				s->purpose == FOR_WRITE);
	}
	fold_free(&names);
}

static void indexed_name_items(struct snapshot *s)
{
	if (s->count == 0)
		snapshot_add(s, INDEX, s->key, SLICE(""), SLICE(""), false)->pivot = true;
	else if (s->count == 1 && s->items[INDEX]->there && s->purpose != FOR_CHECK)
		name_lists(s);
}

/* Returns the status of a snapshot with all lists. */
static enum adopted_status indexed_state(const struct snapshot *s)
{
	struct fold names = { .seed = s->seed };
	bool good = read_index(s, &names);

	fold_free(&names);
	if (!s->items[INDEX]->there)
		return ADOPTED_MISSING;
	if (!good)
		return ADOPTED_CORRUPT;
	for (size_t i = LISTS; i < s->count; i++) {
		if (!s->items[i]->there)
			return ADOPTED_LOST;
	}
	return ADOPTED_OK;
}

static struct words words_of(const struct snapshot_item *list)
{
	return (struct words){ .text = snapshot_item_value(list), .kind = WORDS_SIGNED };
}

static bool indexed_text(const struct snapshot *s, size_t i, struct words *out)
{
	if (LISTS + i >= s->count)
		return false;
	*out = words_of(s->items[LISTS + i]);
	return true;
}

/*
 * Returns the number after the largest one from `from` to `through` in the index, or
 * `from` if there is none.
 */
static uint64_t behind(const struct fold *names, uint64_t from, uint64_t through)
{
	uint64_t n, next = from;

	for (size_t i = 0; i < names->member_count; i++) {
		if (num_parse_u64(member_of(&names->members[i]), &n) && n >= next && n <= through)
			next = n + 1;
	}
	return next;
}

/*
 * Returns a distance that differs each time, so that no two writers choose the same number.
 * Otherwise a late writer could recreate a list that is named in the index but was evicted, and
 * a lost set would look complete. It grows with each lost race, since lists that no index names
 * may occupy many numbers.
 */
static uint64_t random_gap(const struct snapshot *s)
{
	enum { LEAST = 1000000, DOUBLED_MAX = 16 };

	return random_next(s->random) %
		((uint64_t)LEAST << (s->attempt < DOUBLED_MAX ? s->attempt : DOUBLED_MAX));
}

/*
 * Returns the first of `count` numbers that the index does not name: they follow all others,
 * with this gap, as long as there is room.
 */
static uint64_t free_numbers(const struct snapshot *s, uint64_t count, uint64_t gap)
{
	struct fold names = { .seed = s->seed };
	uint64_t first = gap;

	if (read_index(s, &names)) {
		first += behind(&names, 0, NUMBER_MAX);
		/* The order of the lists is that of the index, so any free numbers can be used. */
		while (first > NUMBER_MAX - count ||
			behind(&names, first, first + count - 1) != first)
			first = random_next(s->random) % (NUMBER_MAX - count);
	}
	fold_free(&names);
	return first;
}

/* Plans an ADD of the list with this number. Returns its value. */
static struct buf *plan_list(
	struct snapshot *s, uint64_t number, const struct snapshot_item *like, struct plan *plan)
{
	char digits[NUM_U64_MAX];
	size_t n = num_format_u64(digits, number);

	return plan_add(plan, CALL_ADD,
		snapshot_add(s, LISTS, s->key, SLICE("."), slice_of(digits, n), true), like);
}

static void add_names(uint64_t first, uint64_t count, struct buf *index)
{
	for (uint64_t i = 0; i < count; i++) {
		BUF_ADD(index, "+");
		buf_add_u64(index, first + i);
	}
}

static enum adopted_status indexed_change(struct snapshot *s, bool create, struct plan *plan)
{
	enum adopted_status status =
		s->purpose == FOR_WRITE && s->count > LISTS ? ADOPTED_OK : indexed_state(s);
	uint64_t number;

	if (status == ADOPTED_OK && s->count > LISTS) {
		plan_add(plan, CALL_APPEND, s->items[s->count - 1], NULL);
		plan_write(plan, (struct members_text){ .write = signed_write, .fold = s->change });
		plan->check = true;
	} else if (status == ADOPTED_OK || (status == ADOPTED_MISSING && create)) {
		/*
		 * An index without lists gets its first list like a new collection. It
		 * avoids the numbers of lists that an earlier collection left, and to which
		 * writers may still append.
		 */
		number = free_numbers(s, 1, random_gap(s));
		plan_list(s, number, NULL, plan);
		plan_write(plan, (struct members_text){ .write = signed_write, .fold = s->change });
		add_names(number, 1,
			plan_add(plan, status == ADOPTED_OK ? CALL_APPEND : CALL_ADD,
				s->items[INDEX], NULL));
		status = ADOPTED_OK;
	}
	return status;
}

/* The index must still name the list: it may be the index of another collection by now. */
static enum adopted_status indexed_check(struct snapshot *s, struct snapshot *now)
{
	const struct snapshot_item *before = s->items[INDEX], *index = now->items[INDEX];
	bool same = index->there &&
		slice_starts(snapshot_item_value(index), snapshot_item_value(before));

	return same ? ADOPTED_OK : ADOPTED_LOST;
}

/* Returns the length of the longest prefix of at most `max` bytes that ends with a whole word. */
static size_t cut(struct slice text, size_t max)
{
	size_t n = text.n;

	if (n > max) {
		for (n = max; n > 1 && text.p[n] != '+' && text.p[n] != '-'; n--)
			;
	}
	return n;
}

/*
 * Writes new lists, then an index that names only these, and then removes the old lists. By
 * then the set may have been deleted, and a new one may have a list of the same number. So they
 * are removed by CAS.
 */
static enum adopted_status indexed_replace(
	struct snapshot *s, const struct fold *members, struct plan *plan)
{
	struct snapshot_item *index = s->items[INDEX];
	size_t old = s->count, most = s->options->segment_size;
	uint64_t first, count = 0;
	struct slice unwritten;

	if (!work_write(s, (struct members_text){ .write = signed_write_live, .fold = members }))
		return ADOPTED_PAUSED;
	first = free_numbers(s, NEW_LISTS_MAX, random_gap(s));
	unwritten = buf_slice(&s->work.text);
	if (most < unwritten.n / (NEW_LISTS_MAX - 1))
		most = unwritten.n / (NEW_LISTS_MAX - 1) + KEY_MAX;
	do {
		size_t n = cut(unwritten, most);
		buf_add_slice(plan_list(s, first + count++, NULL, plan), slice_of(unwritten.p, n));
		unwritten = slice_skip(unwritten, n);
	} while (unwritten.n);
	work_free(s);
	add_names(first, count, plan_store(plan, index));
	for (size_t i = LISTS; i < old && plan->count < PLAN_STEPS_MAX; i++)
		plan_drop(plan, s->items[i]);
	return ADOPTED_OK;
}

/*
 * A CAS on a list that was the last one when it was planned could take the same members as a
 * CAS on a newer list. So all lists except the last are sealed first, which makes such a CAS
 * fail.
 */
static enum adopted_status plan_seals(struct snapshot *s, struct plan *plan)
{
	size_t *at = &s->work.at;
	bool live;

	for (; LISTS + *at + 1 < s->count && plan->count < PER_ROUND; ++*at) {
		struct snapshot_item *list = s->items[LISTS + *at];
		if (!work_fold(s, words_of(list)))
			return ADOPTED_PAUSED;
		if (!fold_mentions(&s->work.folded.fold, slice_skip(seal, 1), &live)) {
			struct buf *value = plan_rewrite(plan, list);
			buf_add_slice(value, snapshot_item_value(list));
			buf_add_slice(value, seal);
			plan->again = true;
		}
		work_next(s);
	}
	return ADOPTED_OK;
}

static enum adopted_status indexed_take(
	struct snapshot *s, const struct fold *taken, struct plan *plan)
{
	struct snapshot_item *last = s->items[s->count - 1];

	assert(s->count > LISTS);
	if (!fold_contains(&s->all.fold, slice_skip(seal, 1)) &&
		plan_seals(s, plan) == ADOPTED_PAUSED)
		return ADOPTED_PAUSED;
	if (plan->again)
		return ADOPTED_OK;
	buf_add_slice(plan_rewrite(plan, last), snapshot_item_value(last));
	plan_write(plan, (struct members_text){ .write = signed_write, .fold = taken });
	return ADOPTED_OK;
}

/*
 * Writes a word of a list unless a later list mentions its member; in the first list only
 * additions. A seal is written, except in the last list. work.at is the number of lists after
 * this one.
 */
static void indexed_write_word(
	struct snapshot *s, const struct fold_member *m, const struct fold *later, struct buf *out)
{
	bool first = LISTS + s->work.at + 1 == s->count, last = s->work.at == 0, live;
	bool seals = !m->live && slice_equal(member_of(m), slice_skip(seal, 1));

	if (seals ? !last : !fold_mentions(later, member_of(m), &live) && (m->live || !first))
		signed_write(s, m, NULL, out);
	fold_add(&s->work.later, member_of(m));
}

/* Plans to compress lists, the last one first. */
static enum adopted_status compress(struct snapshot *s, struct plan *plan)
{
	struct snapshot_work *w = &s->work;
	const struct members_text text = {
		.write = indexed_write_word, .fold = &w->folded.fold, .other = &w->later
	};

	w->later.seed = s->seed;
	for (; LISTS + w->at < s->count && plan->count < PER_ROUND; w->at++) {
		struct snapshot_item *list = s->items[s->count - 1 - w->at];
		if (!work_fold(s, words_of(list)) || !work_write(s, text))
			return ADOPTED_PAUSED;
		if (worth_rewriting(s, snapshot_item_value(list).n, buf_size(&w->text)))
			*plan_rewrite(plan, list) = work_text(s);
		work_next(s);
	}
	work_free(s);
	return ADOPTED_OK;
}

static void plan_new_list(struct snapshot *s, const struct snapshot_item *last, struct plan *plan)
{
	uint64_t number = free_numbers(s, 1, random_gap(s));
	struct buf *index;

	plan_list(s, number, last, plan);
	index = plan_rewrite(plan, s->items[INDEX]);
	buf_add_slice(index, snapshot_item_value(s->items[INDEX]));
	add_names(number, 1, index);
}

static enum adopted_status indexed_compact(struct snapshot *s, struct plan *plan)
{
	if (compress(s, plan) == ADOPTED_PAUSED)
		return ADOPTED_PAUSED;
	plan->again = plan->count > 0;
	if (plan->count == 0 && s->count > LISTS && s->count < LISTS + LISTS_MAX &&
		snapshot_item_value(s->items[s->count - 1]).n > s->options->base_size)
		plan_new_list(s, s->items[s->count - 1], plan);
	return ADOPTED_OK;
}

static void indexed_clear(const struct snapshot *s, struct plan *plan)
{
	plan_expire(plan, s->items[INDEX]);
}

const struct encoding encoding_indexed = {
	.name = "indexed",
	.reserved = "+-",
	.guard = '^',
	.name_items = indexed_name_items,
	.state = indexed_state,
	.text = indexed_text,
	.change = indexed_change,
	.replace = indexed_replace,
	.take = indexed_take,
	.compact = indexed_compact,
	.clear = indexed_clear,
	.check = indexed_check,
};
