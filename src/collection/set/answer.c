#include "collection/set/answer.h"

#include <assert.h>
#include <stdlib.h>

#include "collection/text/table_merge.h"
#include "util/alloc.h"
#include "util/random.h"

/* --- members in byte order: a merge of the layers of a view --- */

struct walk {
	struct set_view *view;
	const struct set_range *range;
	struct table_merge merge; /* streams: head, runs, overlay */
	size_t *next;             /* for each run, the number of the next table */
	bool skips_from;          /* the range excludes `from`, which may still come */
	struct table head, overlay;
};

enum step { STEP_MEMBER, STEP_END, STEP_WANTED };

static inline bool is_above(const struct set_range *range, struct slice member)
{
	return range->has_to && member_compare(member, range->to) > 0;
}

/* Whether a member is below a range (-1), in it (0) or above it (1). */
static int side_of(const struct set_range *range, struct slice member)
{
	int order = member_compare(member, range->from);

	if (order < 0 || (order == 0 && range->after))
		return -1;
	return is_above(range, member);
}

/* Writes a fold as a table, removals only if there are layers below. */
static void sort_fold(const struct fold *fold, bool removals, struct buf *out)
{
	size_t count;
	struct fold_member *list = fold_sort(fold, removals, &count);
	struct table_writer writer = { 0 };

	for (size_t i = 0; i < count; i++)
		table_writer_add(&writer, slice_of(list[i].p, list[i].n), !list[i].live);
	table_writer_finish(&writer, out);
	table_writer_free(&writer);
	free(list);
}

static const struct table *sorted(const struct fold *fold, bool removals, struct buf *text, struct table *table)
{
	if (buf_size(text) == 0)
		sort_fold(fold, removals, text);
	return table_open(table, buf_slice(text)) ? table : NULL;
}

/* Wants all tables for about `expect` entries of a run. */
static bool look_ahead(struct walk *w, size_t run, uint64_t expect)
{
	const struct oplog_run *ref = &w->view->runs[run].ref;
	const struct fences *fences;
	bool there = true;

	w->next[run] = set_view_table_of(w->view, run, w->range->from);
	if (w->next[run] == SIZE_MAX)
		return false;
	if (!ref->indexed)
		return set_view_table(w->view, run, 0) != NULL;
	fences = set_view_index(w->view, run);
	for (size_t i = w->next[run]; i < fences->count; i++) {
		const struct fence *fence = &fences->list[i];
		if (fence->before > fences->list[w->next[run]].before + expect ||
			(i > w->next[run] && is_above(w->range, fence->first)))
			break;
		there &= set_view_table(w->view, run, i) != NULL;
	}
	return there;
}

/*
 * Begins a walk. About `expect` members will be read, 0 for all: the tables for that are wanted at once. False if some
 * must be loaded first. walk_end must follow in any case. Borrows `v` and `range` until then.
 */
static bool walk_begin(struct walk *w, struct set_view *v, const struct set_range *range, uint64_t expect)
{
	uint64_t entries = 1;
	bool there = true;

	*w = (struct walk){ .view = v, .range = range, .skips_from = range->after };
	table_merge_init(&w->merge, v->run_count + 2);
	w->next = xcalloc(v->run_count + 1, sizeof(*w->next));
	for (size_t i = 0; i < v->run_count; i++)
		entries += v->runs[i].ref.entries;
	for (size_t i = 0; i < v->run_count; i++) {
		uint64_t share = v->runs[i].ref.entries;
		there &= look_ahead(w, i, expect && expect < entries ? expect * share / entries : share);
	}
	if (v->head.member_count && sorted(&v->head, false, &v->sorted_head, &w->head))
		table_merge_feed(&w->merge, 0, &w->head, range->from);
	if (v->overlay.member_count &&
		sorted(&v->overlay, v->run_count || v->head.member_count, &v->sorted_overlay, &w->overlay))
		table_merge_feed(&w->merge, v->run_count + 1, &w->overlay, range->from);
	return there;
}

static void walk_end(struct walk *w)
{
	table_merge_free(&w->merge);
	free(w->next);
}

/* Feeds a dry stream; false if its next table must be loaded. */
static bool feed(struct walk *w, size_t stream)
{
	size_t run = stream - 1;
	const struct table *table;

	if (stream == 0 || stream > w->view->run_count || w->next[run] == w->view->runs[run].ref.tables) {
		table_merge_end(&w->merge, stream);
		return true;
	}
	table = set_view_table(w->view, run, w->next[run]);
	if (!table)
		return false;
	w->next[run]++;
	table_merge_feed(&w->merge, stream, table, w->range->from);
	return true;
}

/* The streams begin at `from`, so that at most the first member is outside the range. */
static inline bool is_first_to_skip(struct walk *w, struct slice member)
{
	bool skip = w->skips_from && member_compare(member, w->range->from) == 0;

	w->skips_from = false;
	return skip;
}

/* Gives the next member, valid until the next step. */
static enum step walk_next(struct walk *w, struct slice *member)
{
	for (;;) {
		enum merge_state state = table_merge_next(&w->merge);
		const struct table_cursor *entry;

		if (state == MERGE_END)
			return STEP_END;
		if (state == MERGE_DRY) {
			if (!feed(w, w->merge.winner))
				return STEP_WANTED;
			continue;
		}
		entry = table_merge_entry(&w->merge);
		*member = table_member(entry);
		if (is_above(w->range, *member))
			return STEP_END;
		if (!entry->removed && !is_first_to_skip(w, *member))
			return STEP_MEMBER;
	}
}

/* --- all members, or those of a range --- */

static const struct set_range everything;

enum written { WRITTEN_ALL, WRITTEN_LIMIT, WRITTEN_SLICE, WRITTEN_WANTS };

/* The last member of a text in which each is followed by a space. */
static struct slice last_member(struct slice text)
{
	const char *start;

	if (text.n == 0)
		return text;
	start = memrchr(text.p, ' ', text.n - 1);
	start = start ? start + 1 : text.p;
	return slice_of(start, (size_t)(text.p + text.n - 1 - start));
}

/*
 * Writes the next slice of a range, behind the slices in `text`. The text is complete at a limit of `count` members, of which
 * `written` are counted, or of `bytes`; 0 for none.
 */
static enum written write_slice(
	struct set_view *v, struct set_range range, uint64_t count, uint64_t *written, size_t bytes, struct buf *text)
{
	enum step step = STEP_WANTED;
	size_t begin = buf_size(text);
	char after[MEMBER_MAX];
	struct walk walk;
	struct slice member = last_member(buf_slice(text));

	if (member.n) {
		memcpy(after, member.p, member.n);
		range.from = slice_of(after, member.n);
		range.after = true;
	}
	if (walk_begin(&walk, v, &range, count ? count - *written : 0)) {
		while ((step = walk_next(&walk, &member)) == STEP_MEMBER) {
			buf_add_word(text, member);
			if (++*written == count || (bytes && buf_size(text) >= bytes) ||
				buf_size(text) - begin >= v->slice)
				break;
		}
	}
	walk_end(&walk);
	if (step == STEP_WANTED)
		return WRITTEN_WANTS;
	if (step == STEP_END)
		return WRITTEN_ALL;
	if (*written == count || (bytes && buf_size(text) >= bytes))
		return WRITTEN_LIMIT;
	v->slices++;
	return WRITTEN_SLICE;
}

static bool answer_range(struct set_view *v, struct set_request *r)
{
	enum written written;

	if (r->count == 0)
		return true;
	if (r->version != v->version) {
		buf_consume(&r->text, buf_size(&r->text));
		r->written = 0;
		r->version = v->version;
	}
	written = write_slice(v, r->range, r->count, &r->written, r->bytes, &r->text);
	r->more = written == WRITTEN_LIMIT;
	return written <= WRITTEN_LIMIT;
}

/* A set that is only a log needs no sorting. */
static bool make_text(struct set_view *v)
{
	uint64_t written = 0;

	if (v->text)
		return true;
	if (v->run_count == 0 && v->head.member_count == 0)
		fold_join(&v->overlay, &v->unfinished);
	else if (write_slice(v, everything, 0, &written, 0, &v->unfinished) != WRITTEN_ALL)
		return false;
	/* Cut the space behind the last member. */
	else if (buf_size(&v->unfinished))
		v->unfinished.end--;
	v->text = shared_create(&v->unfinished);
	return true;
}

static bool answer_all(struct set_view *v, struct set_request *r)
{
	if (!make_text(v))
		return false;
	r->shared = shared_hold(v->text);
	return true;
}

static bool answer_test(struct set_view *v, struct set_request *r)
{
	struct slice rest = r->members, member;
	bool wanted = false;

	while ((member = slice_token(&rest)).n) {
		enum set_found found = set_view_find(v, member);
		wanted |= found == SET_WANTED;
		if (buf_size(&r->text))
			BUF_ADD(&r->text, " ");
		buf_add(&r->text, found == SET_IN ? "1" : "0", 1);
	}
	if (wanted)
		buf_consume(&r->text, buf_size(&r->text));
	return !wanted;
}

/* The number of entries of a run below a bound or, if `through`, at most equal to it. */
static bool rank(struct set_view *v, size_t run, struct slice bound, bool through, uint64_t *out)
{
	size_t number = set_view_table_of(v, run, bound);
	const struct table *table = number == SIZE_MAX ? NULL : set_view_table(v, run, number);
	struct table_cursor cursor;

	if (!table)
		return false;
	*out = v->runs[run].ref.indexed ? set_view_index(v, run)->list[number].before : 0;
	if (table_seek(&cursor, table, bound) && through && slice_equal(table_member(&cursor), bound))
		++*out;
	*out += cursor.at;
	return true;
}

static bool count_oldest(struct set_view *v, const struct set_range *range, int64_t *out)
{
	uint64_t from = 0, to = v->runs[0].ref.entries;
	bool there = true;

	if (range->from.n)
		there = rank(v, 0, range->from, range->after, &from);
	if (range->has_to)
		there &= rank(v, 0, range->to, true, &to);
	*out = to > from ? (int64_t)(to - from) : 0;
	return there;
}

/* Adds to `out` by how much an entry changes the number of members in the layers below. */
static bool count_entry(struct set_view *v, size_t run, const struct table_cursor *entry, int64_t *out)
{
	enum set_found below = set_view_below(v, run, table_member(entry));

	*out += (below != SET_IN && !entry->removed) - (below == SET_IN && entry->removed);
	return below != SET_WANTED;
}

static bool count_table(
	struct set_view *v, size_t run, const struct table *table, const struct set_range *range, int64_t *out)
{
	struct table_cursor cursor;
	bool there = true;

	for (bool more = table_seek(&cursor, table, range->from); more; more = table_next(&cursor)) {
		int side = side_of(range, table_member(&cursor));
		if (side > 0)
			break;
		if (side == 0)
			there &= count_entry(v, run, &cursor, out);
	}
	return there;
}

/* By how much a run changes the number of members of a range in the layers below. */
static bool count_run(struct set_view *v, size_t run, const struct set_range *range, int64_t *out)
{
	size_t at = set_view_table_of(v, run, range->from);
	const struct fences *fences = at != SIZE_MAX && v->runs[run].ref.indexed ? set_view_index(v, run) : NULL;
	bool there = at != SIZE_MAX;

	*out = 0;
	for (; at != SIZE_MAX && at < v->runs[run].ref.tables; at++) {
		const struct table *table;
		if (fences && range->has_to && member_compare(fences->list[at].first, range->to) > 0)
			break;
		table = set_view_table(v, run, at);
		there &= table && count_table(v, run, table, range, out);
	}
	return there;
}

static int64_t count_head(const struct set_view *v, const struct set_range *range)
{
	int64_t count = 0;

	for (size_t i = 0; i < v->head.member_count; i++) {
		const struct fold_member *m = &v->head.members[i];
		count += m->live && side_of(range, slice_of(m->p, m->n)) == 0;
	}
	return count;
}

/* Counts the layers below the overlay. */
static bool count_runs(struct set_view *v, const struct set_range *range, int64_t *out)
{
	bool there = true;
	int64_t count;

	*out = count_head(v, range);
	for (size_t i = 0; i < v->run_count; i++) {
		if (i == 0 && v->head.member_count == 0 && v->runs[0].ref.removals == 0)
			there &= count_oldest(v, range, &count);
		else
			there &= count_run(v, i, range, &count);
		*out += count;
	}
	return there;
}

/* Counts all members without the overlay by iterating, if the newer runs have too many entries for lookups. */
static bool walk_runs(struct set_view *v, uint64_t *out)
{
	struct fold overlay = v->overlay;
	struct walk walk;
	struct slice member;
	enum step step = STEP_WANTED;

	*out = 0;
	v->overlay = (struct fold){ 0 };
	if (walk_begin(&walk, v, &everything, 0)) {
		while ((step = walk_next(&walk, &member)) == STEP_MEMBER)
			++*out;
	}
	walk_end(&walk);
	v->overlay = overlay;
	return step == STEP_END;
}

static bool too_much_to_look_up(const struct set_view *v)
{
	enum { PART = 8 };
	uint64_t entries = 0, more = 0;

	for (size_t i = 0; i < v->run_count; i++) {
		entries += v->runs[i].ref.entries;
		more += i >= v->counted_runs && i > 0 ? v->runs[i].ref.entries : 0;
	}
	return more > entries / PART;
}

/* Counts all members without the overlay. The view remembers the count of the oldest runs. */
static bool count_all_runs(struct set_view *v, uint64_t *out)
{
	int64_t change;

	if (v->head.member_count) {
		bool there = count_runs(v, &everything, &change);
		*out = (uint64_t)change;
		return there;
	}
	if (v->counted_runs == 0 && v->run_count) {
		v->counted_runs = 1;
		v->counted = v->runs[0].ref.entries - v->runs[0].ref.removals;
	}
	if (too_much_to_look_up(v)) {
		if (!walk_runs(v, &v->counted)) {
			v->counted_runs = 0;
			return false;
		}
		v->counted_runs = v->run_count;
	}
	for (; v->counted_runs < v->run_count; v->counted_runs++) {
		if (!count_run(v, v->counted_runs, &everything, &change))
			return false;
		v->counted += (uint64_t)change;
	}
	*out = v->run_count ? v->counted : 0;
	return true;
}

enum { BELOW_UNKNOWN, BELOW_OUT, BELOW_IN };

/* Looks a member of the overlay up in the layers below, once. */
static bool look_below(struct set_view *v, size_t i)
{
	const struct fold_member *m = &v->overlay.members[i];
	enum set_found found;

	if (v->below[i] != BELOW_UNKNOWN)
		return true;
	found = set_view_below(v, v->run_count, slice_of(m->p, m->n));
	if (found != SET_WANTED)
		v->below[i] = found == SET_IN ? BELOW_IN : BELOW_OUT;
	return found != SET_WANTED;
}

static void make_below(struct set_view *v)
{
	if (v->below_size >= v->overlay.member_count && v->below)
		return;
	v->below = xrealloc(v->below, v->overlay.member_capacity + 1);
	memset(v->below + v->below_size, BELOW_UNKNOWN, v->overlay.member_capacity - v->below_size);
	v->below_size = v->overlay.member_capacity;
}

static bool count_overlay(struct set_view *v, const struct set_range *range, int64_t *out)
{
	bool there = true;

	*out = 0;
	make_below(v);
	for (size_t i = 0; i < v->overlay.member_count; i++) {
		const struct fold_member *m = &v->overlay.members[i];
		if (range != &everything && side_of(range, slice_of(m->p, m->n)) != 0)
			continue;
		there &= look_below(v, i);
		*out += (m->live && v->below[i] != BELOW_IN) - (!m->live && v->below[i] == BELOW_IN);
	}
	return there;
}

static bool count_everything(struct set_view *v, uint64_t *out)
{
	int64_t overlay;

	if (v->run_count == 0 && v->head.member_count == 0) {
		*out = v->overlay.live;
		return true;
	}
	if (!count_all_runs(v, out) || !count_overlay(v, &everything, &overlay))
		return false;
	*out += (uint64_t)overlay;
	return true;
}

static bool answer_count(struct set_view *v, struct set_request *r)
{
	int64_t runs = 0, overlay = 0;
	bool there;

	if (r->range.from.n == 0 && !r->range.has_to)
		return count_everything(v, &r->number);
	there = count_runs(v, &r->range, &runs);
	there &= count_overlay(v, &r->range, &overlay);
	r->number = (uint64_t)(runs + overlay);
	return there;
}

static bool answer_info(struct set_view *v, struct set_request *r)
{
	struct set_info *info = &r->info;

	if (!count_everything(v, &info->members))
		return false;
	info->base_bytes = buf_size(&v->base);
	info->log_bytes = v->split.head.n + v->split.log.n;
	info->tokens = v->head.tokens + v->overlay.tokens;
	info->waste = set_view_waste(v);
	info->runs = v->run_count;
	for (size_t i = 0; i < v->run_count; i++) {
		const struct oplog_run *ref = &v->runs[i].ref;
		info->tables += ref->tables;
		info->entries += ref->entries;
		info->removals += ref->removals;
		info->table_bytes += ref->bytes;
	}
	return true;
}

/* --- random members --- */

/*
 * Random members, by rejection sampling. An entry is drawn uniformly from all layers. It counts if it adds its member and no newer
 * layer mentions that. So each member has exactly one entry that counts, all members are equally likely, and only the tables drawn
 * from are read. If too many draws would be needed, all members are read instead.
 */
enum { DRAWS_EACH = 32, DRAWS_MORE = 64, LARGE_PART = 4, LARGE = 4096 };

struct drawing {
	struct set_view *view;
	struct set_request *request;
	struct fold chosen; /* the members drawn; borrows from `names` */
	struct buf names;   /* never moves */
	uint64_t random, total, taken;
};

static void write_member(const struct set_request *r, struct buf *text, struct slice member)
{
	if (r->sign)
		buf_add(text, r->sign, strlen(r->sign));
	buf_add_word(text, member);
}

/* Draws from a list of the members, which a `text` has with one space between them. */
static void repeat_from_text(struct set_request *r, struct slice text, uint64_t members)
{
	struct slice *list = xmalloc(members * sizeof(*list));
	uint64_t random = r->random;

	for (uint64_t i = 0; i < members; i++)
		list[i] = slice_token(&text);
	for (uint64_t i = 0; members && i < r->count; i++)
		write_member(r, &r->text, list[random_next(&random) % members]);
	free(list);
}

/* Selection sampling: Knuth, The Art of Computer Programming 2, 3.4.2, algorithm S. */
static bool select_from_all(struct set_view *v, struct set_request *r)
{
	struct set_request all = { .verb = SET_ALL }, count = { .verb = SET_COUNT };
	struct slice rest, member;
	uint64_t left, need, random = r->random;
	bool there = set_answer(v, &all);

	if (!there || !set_answer(v, &count)) {
		set_request_free(&all);
		return false;
	}
	rest = buf_slice(&all.shared->text);
	left = count.number;
	need = r->repeats ? 0 : r->count < left ? r->count : left;
	if (r->repeats)
		repeat_from_text(r, rest, left);
	for (; need && (member = slice_token(&rest)).n; left--) {
		if (random_next(&random) % left >= need)
			continue;
		write_member(r, &r->text, member);
		need--;
	}
	set_request_free(&all);
	return true;
}

/* The n-th entry of a run, or NULL if it must be loaded. */
static const struct table_cursor *nth_of_run(struct set_view *v, size_t run, uint64_t n, struct table_cursor *cursor)
{
	const struct fences *fences = NULL;
	const struct table *table;
	size_t at = 0;

	if (v->runs[run].ref.indexed) {
		size_t high;
		fences = set_view_index(v, run);
		if (!fences)
			return NULL;
		for (high = fences->count; high - at > 1;) {
			size_t middle = at + (high - at) / 2;
			if (fences->list[middle].before <= n)
				at = middle;
			else
				high = middle;
		}
		n -= fences->list[at].before;
	}
	table = set_view_table(v, run, at);
	return table && table_nth(cursor, table, (uint32_t)n) ? cursor : NULL;
}

static enum set_found draw_from_fold(const struct fold *fold, uint64_t n, struct slice *member)
{
	const struct fold_member *m = &fold->members[n];

	*member = slice_of(m->p, m->n);
	return m->live ? SET_IN : SET_OUT;
}

/* One draw: SET_IN with a member, SET_OUT for a rejected entry, or SET_WANTED. */
static enum set_found draw(struct drawing *d, struct table_cursor *cursor, struct slice *member)
{
	struct set_view *v = d->view;
	uint64_t n = random_next(&d->random) % d->total;
	enum set_found newer;
	size_t run = 0;

	if (n < v->overlay.member_count)
		return draw_from_fold(&v->overlay, n, member);
	n -= v->overlay.member_count;
	if (n < v->head.member_count) {
		if (draw_from_fold(&v->head, n, member) == SET_OUT)
			return SET_OUT;
		newer = set_view_mentioned(v, 0, *member);
	} else {
		for (n -= v->head.member_count; n >= v->runs[run].ref.entries; run++)
			n -= v->runs[run].ref.entries;
		if (!nth_of_run(v, run, n, cursor))
			return SET_WANTED;
		*member = table_member(cursor);
		if (cursor->removed)
			return SET_OUT;
		newer = set_view_mentioned(v, run + 1, *member);
	}
	return newer == SET_WANTED ? SET_WANTED : newer == SET_IN ? SET_OUT : SET_IN;
}

/* A member is chosen only once, unless it may come again. `names` has room for all, so it never moves. */
static void choose(struct drawing *d, struct slice member)
{
	char *at;

	if (d->request->repeats) {
		write_member(d->request, &d->request->text, member);
		d->taken++;
		return;
	}
	if (fold_contains(&d->chosen, member))
		return;
	at = buf_reserve(&d->names, member.n);
	memcpy(at, member.p, member.n);
	buf_commit(&d->names, member.n);
	fold_add(&d->chosen, slice_of(at, member.n));
	write_member(d->request, &d->request->text, member);
	d->taken++;
}

static bool draw_all(struct drawing *d, bool *enough)
{
	struct set_request *r = d->request;
	uint64_t draws = r->count * DRAWS_EACH + DRAWS_MORE, wanted = 0;
	struct table_cursor cursor;
	struct slice member;

	if (!r->repeats)
		buf_reserve(&d->names, r->count * MEMBER_MAX);
	while (draws-- > 0 && d->taken < r->count) {
		enum set_found found = draw(d, &cursor, &member);
		/* Go on drawing after a miss, so that tables of later draws are loaded together. */
		wanted += found == SET_WANTED;
		if (wanted + d->taken >= r->count && wanted)
			return false;
		if (found == SET_IN)
			choose(d, member);
	}
	*enough = d->taken == r->count;
	return wanted == 0;
}

/* A repeated call draws the same numbers, because the request has the seed. */
static bool answer_sample(struct set_view *v, struct set_request *r)
{
	struct drawing d = { .view = v, .request = r, .random = r->random };
	bool there, enough = false;

	d.total = v->overlay.member_count + v->head.member_count;
	for (size_t i = 0; i < v->run_count; i++)
		d.total += v->runs[i].ref.entries;
	if (d.total == 0 || r->count == 0)
		return true;
	if (r->count > LARGE || r->count > d.total / LARGE_PART)
		return select_from_all(v, r);
	d.chosen.seed = v->overlay.seed;
	there = draw_all(&d, &enough);
	fold_free(&d.chosen);
	buf_free(&d.names);
	if (!there || !enough)
		buf_consume(&r->text, buf_size(&r->text));
	return there && (enough || select_from_all(v, r));
}

/* --- all verbs --- */

bool set_answer(struct set_view *v, struct set_request *request)
{
	static bool (*const verbs[])(struct set_view *, struct set_request *) = {
		[SET_ALL] = answer_all,
		[SET_TEST] = answer_test,
		[SET_SAMPLE] = answer_sample,
		[SET_RANGE] = answer_range,
		[SET_COUNT] = answer_count,
		[SET_INFO] = answer_info,
	};

	request->answered = request->answered || verbs[request->verb](v, request);
	return request->answered;
}

void set_answer_fold(const struct fold *all, struct set_request *request)
{
	struct set_view view = { .overlay = *all, .slice = SIZE_MAX };

	/* Without runs there are no wants. */
	while (!set_answer(&view, request))
		assert(view.want_count == 0);
	view.overlay = (struct fold){ 0 };
	TAILQ_INIT(&view.spare);
	set_view_free(&view);
}
