#include "collection/set/answer.h"

#include <assert.h>

#include "collection/set/count.h"
#include "collection/set/match.h"
#include "collection/set/moment.h"
#include "collection/set/walk.h"
#include "util/glob.h"
#include "util/random.h"

/* --- all members, or those of a range --- */

static const struct set_range everything;

enum written { WRITTEN_ALL, WRITTEN_LIMIT, WRITTEN_SLICE, WRITTEN_WANTS };

static void void_answer(struct set_request *r)
{
	buf_consume(&r->text, buf_size(&r->text));
	r->written = 0;
	r->done = r->looked = 0;
	r->from_all = r->wanted = false;
	buf_consume(&r->offsets, buf_size(&r->offsets));
}

/* Restarts the answer if the set has changed. */
static void begin_answer(const struct set_view *v, struct set_request *r)
{
	set_request_begin(r);
	if (r->version == v->version)
		return;
	void_answer(r);
	r->version = v->version;
}

/* Returns the last member of a text in which each member is followed by a space. */
static struct slice last_member(struct slice text)
{
	const char *start;

	if (text.n == 0)
		return text;
	start = memrchr(text.p, ' ', text.n - 1);
	start = start ? start + 1 : text.p;
	return slice_of(start, (size_t)(text.p + text.n - 1 - start));
}

/* Returns about how many entries have so many bytes, if no more than `most` are needed. */
static uint64_t entries_of(const struct set_view *v, size_t bytes, uint64_t most)
{
	uint64_t entries = 0, size = 0, fit;

	for (size_t i = 0; i < v->run_count; i++) {
		entries += v->runs[i].ref.entries;
		size += v->runs[i].ref.bytes;
	}
	if (bytes == 0 || size == 0)
		return most;
	fit = (uint64_t)((double)bytes / (double)size * (double)entries) + 1;
	return most && most < fit ? most : fit;
}

/*
 * Writes the next slice of a range, after the slices in `text`. The text is complete with
 * `count` members, of which `written` are already counted, or with `bytes`; 0 for no limit.
 */
static enum written write_slice(struct set_view *v, struct set_range range, uint64_t count,
	uint64_t *written, size_t bytes, struct buf *text)
{
	enum walk_step step = WALK_WANTED;
	char after[MEMBER_WORD_MAX];
	struct walk walk;
	struct slice member = last_member(buf_slice(text));

	if (member.n) {
		memcpy(after, member.p, member.n);
		range.from = slice_of(after, member.n);
		range.after = true;
	}
	if (walk_begin(
		    &walk, v, &range, entries_of(v, bytes, count ? count - *written : 0), true)) {
		while ((step = walk_next(&walk, &member)) == WALK_MEMBER) {
			buf_add_word(text, member);
			if (++*written == count || (bytes && buf_size(text) >= bytes) ||
				set_view_is_over(v, WALK_STEPS))
				break;
		}
	}
	walk_end(&walk);
	if (step == WALK_WANTED)
		return WRITTEN_WANTS;
	if (step == WALK_END)
		return WRITTEN_ALL;
	return *written == count || (bytes && buf_size(text) >= bytes) ? WRITTEN_LIMIT
								       : WRITTEN_SLICE;
}

static bool answer_range(struct set_view *v, struct set_request *r)
{
	enum written written;

	if (r->count == 0)
		return true;
	if (r->pattern.p)
		return match_range(v, r);
	written = write_slice(v, r->range, r->count, &r->written, r->bytes, &r->text);
	r->more = written == WRITTEN_LIMIT;
	return written <= WRITTEN_LIMIT;
}

/* Makes the text of all members of a set that is only a log. */
static bool join_overlay(struct set_view *v)
{
	enum { STEPS = FOLD_JOINED / 4 };

	while (!fold_join_portion(&v->overlay, &v->joined, &v->unfinished)) {
		if (set_view_is_over(v, STEPS))
			return false;
	}
	v->joined = 0;
	v->text = shared_create(&v->unfinished);
	return true;
}

/* Makes the text of all members. A set that is only a log needs no sorting. */
static bool make_text(struct set_view *v)
{
	uint64_t written = 0;

	if (v->text)
		return true;
	if (v->run_count == 0 && v->head.member_count == 0)
		return join_overlay(v);
	if (write_slice(v, everything, 0, &written, 0, &v->unfinished) != WRITTEN_ALL)
		return false;
	/* Cut the space after the last member. */
	if (buf_size(&v->unfinished))
		v->unfinished.end--;
	v->text = shared_create(&v->unfinished);
	return true;
}

static bool answer_members(struct set_view *v, struct set_request *r)
{
	if (!make_text(v))
		return false;
	r->shared = shared_hold(v->text);
	return true;
}

/*
 * Answers members until one needs a part that is not in memory. The remaining members are
 * looked up only to note all wants at once, and answered in the next call.
 */
static bool answer_test(struct set_view *v, struct set_request *r)
{
	struct slice rest = slice_skip(r->members, r->looked), member;
	bool wanted;

	while ((member = slice_token(&rest)).n) {
		enum set_found found = set_view_find(v, member);
		r->looked = r->members.n - rest.n;
		r->wanted |= found == SET_WANTED;
		if (!r->wanted) {
			if (buf_size(&r->text))
				BUF_ADD(&r->text, " ");
			buf_add(&r->text, found == SET_IN ? "1" : "0", 1);
			r->done = r->looked;
		}
		if (set_view_is_over(v, LOOKUP_STEPS))
			return false;
	}
	wanted = r->wanted;
	r->wanted = false;
	r->looked = r->done;
	return !wanted;
}

/* Most requests test one member; they need no text. */
static bool answer_has(struct set_view *v, struct set_request *r)
{
	enum set_found found = set_view_find(v, r->members);

	set_view_spend(v, LOOKUP_STEPS);
	r->number = found == SET_IN;
	return found != SET_WANTED;
}

/* The view is at the moment of the read if any member expires, and at none if it is of a list. */
static bool answer_ttl(struct set_view *v, struct set_request *r)
{
	uint32_t date;
	enum set_found found = set_view_date(v, r->members, &date);

	if (found != SET_IN)
		r->number = SET_TTL_NONE;
	else if (date == EXPIRY_NONE || v->now == 0)
		r->number = SET_TTL_NEVER;
	else
		r->number = (uint64_t)(date - v->now);
	return found != SET_WANTED;
}

static bool is_of_all(const struct set_range *range)
{
	return range->from.n == 0 && !range->has_to;
}

static bool answer_count(struct set_view *v, struct set_request *r)
{
	return is_of_all(&r->range) ? count_all(v, r, &r->number) : count_range(v, r, &r->number);
}

static bool answer_info(struct set_view *v, struct set_request *r)
{
	struct set_info *info = &r->info;

	if (!count_all(v, r, &info->members))
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
 * Random members, by rejection sampling. An entry is drawn uniformly from all layers. It counts
 * if it adds its member and no newer layer mentions the member. So each member has exactly one
 * entry that counts, all members are equally likely, and only the tables drawn from are read.
 * If too many draws would be needed, all members are read instead.
 */
enum { DRAWS_EACH = 32, DRAWS_MORE = 64, LARGE_PART = 4, LARGE = 4096 };

struct drawing {
	struct set_view *view;
	struct set_request *request;
	/* The members drawn, unless repeats are allowed; borrows from `names`. */
	struct fold chosen;
	struct buf names; /* is never reallocated */
	uint64_t total, taken;
};

static void write_member(const struct set_request *r, struct buf *text, struct slice member)
{
	if (r->sign)
		buf_add(text, r->sign, strlen(r->sign));
	buf_add_word(text, member);
}

/* Stores the offset of each member in the text of all members. */
static bool note_offsets(struct set_view *v, struct set_request *r)
{
	struct slice text = buf_slice(&v->text->text), rest = slice_skip(text, r->done), member;

	while ((member = slice_token(&rest)).n) {
		uint32_t offset = (uint32_t)(member.p - text.p);
		buf_add(&r->offsets, (const char *)&offset, sizeof(offset));
		r->done = text.n - rest.n;
		if (set_view_is_over(v, 1))
			return false;
	}
	return true;
}

/* Draws from all members, with repeats. */
static bool repeat_from_all(struct set_view *v, struct set_request *r)
{
	struct slice text = buf_slice(&v->text->text), rest;
	size_t members;

	if (!note_offsets(v, r))
		return false;
	members = buf_size(&r->offsets) / sizeof(uint32_t);
	for (; members && r->written < r->count; r->written++) {
		uint32_t offset;
		if (set_view_is_over(v, WALK_STEPS))
			return false;
		memcpy(&offset,
			buf_slice(&r->offsets).p + random_next(&r->next) % members * sizeof(offset),
			sizeof(offset));
		rest = slice_skip(text, offset);
		write_member(r, &r->text, slice_token(&rest));
	}
	return true;
}

/*
 * Chooses from all members by selection sampling: Knuth, The Art of Computer Programming 2,
 * 3.4.2, algorithm S.
 */
static bool select_from_all(struct set_view *v, struct set_request *r)
{
	struct slice rest, member;
	uint64_t count;

	if (!r->from_all) {
		void_answer(r);
		r->next = r->random;
	}
	r->from_all = true;
	if (!make_text(v))
		return false;
	if (r->repeats)
		return repeat_from_all(v, r);
	if (!count_all(v, r, &count))
		return false;
	rest = slice_skip(buf_slice(&v->text->text), r->done);
	if (r->done == 0) {
		r->written = count;
		r->looked = r->count < count ? (size_t)r->count : (size_t)count;
	}
	while (r->looked && (member = slice_token(&rest)).n) {
		r->done = buf_size(&v->text->text) - rest.n;
		if (random_next(&r->next) % r->written-- < r->looked) {
			write_member(r, &r->text, member);
			r->looked--;
		}
		if (set_view_is_over(v, 1))
			return false;
	}
	return true;
}

/* Returns the n-th entry of a run, or NULL if it must be loaded. */
static const struct table_cursor *nth_of_run(
	struct set_view *v, size_t run, uint64_t n, struct table_cursor *cursor)
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

/* Makes one draw. Returns SET_IN with a member, SET_OUT for a rejected entry, or SET_WANTED. */
static enum set_found draw(struct drawing *d, struct table_cursor *cursor, struct slice *member)
{
	struct set_view *v = d->view;
	uint64_t n = random_next(&d->request->next) % d->total;
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
		if (table_gone(cursor, v->now))
			return SET_OUT;
		newer = set_view_mentioned(v, run + 1, *member);
	}
	return newer == SET_WANTED ? SET_WANTED : newer == SET_IN ? SET_OUT : SET_IN;
}

/* The chosen members point into `names`. */
static void note_chosen(struct drawing *d, struct slice member)
{
	const char *names = buf_slice(&d->names).p;
	char *at;

	d->taken++;
	if (d->request->repeats)
		return;
	at = buf_reserve(&d->names, member.n);
	if (buf_size(&d->names) && buf_slice(&d->names).p != names)
		fold_rebase(&d->chosen, names, buf_slice(&d->names).p);
	memcpy(at, member.p, member.n);
	buf_commit(&d->names, member.n);
	fold_add(&d->chosen, slice_of(at, member.n));
}

/* A slice begins with the members that earlier slices have chosen. */
static void begin_drawing(struct drawing *d)
{
	struct set_request *r = d->request;
	struct slice rest = buf_slice(&r->text), member;

	while ((member = slice_token(&rest)).n)
		note_chosen(d, slice_skip(member, r->sign ? strlen(r->sign) : 0));
	if (r->written == 0)
		r->next = r->random;
}

/*
 * A member is chosen only once, unless repeats are allowed. Continues after a miss, so that the
 * tables of later draws are loaded together.
 */
static bool draw_members(struct drawing *d)
{
	struct set_request *r = d->request;
	uint64_t draws = r->count * DRAWS_EACH + DRAWS_MORE;
	struct table_cursor cursor;
	struct slice member;

	while (r->written < draws && d->taken + r->looked < r->count) {
		enum set_found found = draw(d, &cursor, &member);
		r->written++;
		r->looked += found == SET_WANTED;
		if (found == SET_IN && (r->repeats || !fold_contains(&d->chosen, member))) {
			note_chosen(d, member);
			write_member(r, &r->text, member);
		}
		if (set_view_is_over(d->view, LOOKUP_STEPS))
			return false;
	}
	return true;
}

/* The seed is in the request, so the draws after a miss are the same as before. */
static bool answer_sample(struct set_view *v, struct set_request *r)
{
	struct drawing d = { .view = v, .request = r, .chosen.seed = v->overlay.seed };
	bool drawn, enough;

	d.total = v->overlay.member_count + v->head.member_count;
	for (size_t i = 0; i < v->run_count; i++)
		d.total += v->runs[i].ref.entries;
	if (d.total == 0 || r->count == 0)
		return true;
	if (r->from_all || r->count > LARGE || r->count > d.total / LARGE_PART)
		return select_from_all(v, r);
	begin_drawing(&d);
	drawn = draw_members(&d);
	enough = d.taken == r->count;
	fold_free(&d.chosen);
	buf_free(&d.names);
	if (!drawn || enough)
		return drawn;
	if (r->looked == 0)
		return select_from_all(v, r);
	void_answer(r);
	return false;
}

/* --- members to take --- */

/*
 * Members are taken by whole layers and tables, oldest first, since these are what a base can drop.
 * A member that a newer layer mentions is skipped, since that layer removed it or has it too. So
 * each member is taken once, with its newest entry.
 */
static void take_entry(struct set_view *v, struct set_request *r, struct slice member, bool removed)
{
	struct set_counting *c = &r->counting;
	enum set_found newer = SET_OUT;

	if (removed)
		newer = SET_IN;
	else if (c->at.run <= v->run_count)
		newer = set_view_mentioned(v, c->at.run, member);
	/* As in count.c, the following entries are looked up only to note all wants at once. */
	if (newer == SET_WANTED && !c->wanted) {
		c->redo = c->at;
		c->wanted = true;
	}
	if (newer == SET_OUT && !c->wanted)
		buf_add_word(&r->text, member);
	c->at.sum += (int64_t)member.n + 1;
	c->at.entry++;
}

static void next_layer(struct set_place *at)
{
	*at = (struct set_place){ .run = at->run + 1, .sum = at->sum };
}

/* Each of these takes one layer, or one table. False if a part is wanted, or the slice is over. */
static bool take_fold(struct set_view *v, struct set_request *r, const struct fold *fold)
{
	while (r->counting.at.entry < fold->member_count) {
		const struct fold_member *m = &fold->members[r->counting.at.entry];
		take_entry(v, r, slice_of(m->p, m->n), !m->live);
		if (set_view_is_over(v, LOOKUP_STEPS))
			return false;
	}
	next_layer(&r->counting.at);
	return true;
}

/* Notes all tables as wanted that have about as many bytes as are left to take. */
static void want_tables(struct set_view *v, size_t run, const struct set_request *r)
{
	const struct fences *fences = set_view_index(v, run);
	size_t bytes = (size_t)r->counting.at.sum;

	for (size_t i = r->counting.at.table; i < fences->count && bytes < r->bytes; i++) {
		(void)set_view_table(v, run, i);
		bytes += fences->list[i].bytes;
	}
}

static bool take_members_of_table(struct set_view *v, struct set_request *r)
{
	struct set_place *at = &r->counting.at;
	const struct oplog_run *ref = &v->runs[at->run - 1].ref;
	struct table_cursor cursor;
	const struct table *table;
	bool more;

	if (ref->indexed && !set_view_index(v, at->run - 1))
		return false;
	table = set_view_table(v, at->run - 1, at->table);
	if (!table && ref->indexed)
		want_tables(v, at->run - 1, r);
	if (!table)
		return false;
	for (more = table_nth(&cursor, table, at->entry); more; more = table_next(&cursor)) {
		take_entry(v, r, table_member(&cursor), table_gone(&cursor, v->now));
		if (set_view_is_over(v, LOOKUP_STEPS))
			return false;
	}
	at->table++;
	at->entry = 0;
	if (at->table == ref->tables)
		next_layer(at);
	return true;
}

static bool answer_take(struct set_view *v, struct set_request *r)
{
	struct set_counting *c = &r->counting;
	uint64_t slices = v->slices;
	bool there = true;

	if (c->version != v->version)
		*c = (struct set_counting){ .version = v->version };
	r->too_large = v->run_count && r->bytes == 0;
	/* A log cannot be taken in part. */
	if (v->run_count == 0)
		r->bytes = 0;
	while (!r->too_large && there && c->at.run < v->run_count + 2 &&
		!(r->bytes && c->at.entry == 0 && (size_t)c->at.sum >= r->bytes)) {
		if (c->at.run == 0)
			there = take_fold(v, r, &v->head);
		else if (c->at.run > v->run_count)
			there = take_fold(v, r, &v->overlay);
		else
			there = take_members_of_table(v, r);
	}
	if (v->slices != slices)
		return false;
	if (c->wanted) {
		c->at = c->redo;
		c->wanted = there = false;
	}
	return there;
}

/* --- all verbs --- */

size_t set_answer_memory(const struct set_view *v, const struct set_request *r)
{
	if (!r->begun)
		return 0;
	return buf_size(&r->text) + buf_size(&r->offsets) + (r->glob ? glob_memory(r->glob) : 0) +
		(r->verb == SET_ALL || r->from_all ? buf_size(&v->unfinished) : 0);
}

/* Stops an answer that is larger than clients may hold. Blocks of a range are small. */
static bool is_answer_too_large(const struct set_view *v, const struct set_request *r)
{
	size_t most = v->env && v->env->options ? v->env->options->result_max : 0;

	if (!most || r->verb == SET_TEST || r->bytes)
		return false;
	return buf_size(&r->text) > most || buf_size(&v->unfinished) > most ||
		(r->shared && buf_size(&r->shared->text) > most);
}

static void refuse_too_large(struct set_view *v, struct set_request *r)
{
	set_request_free(r);
	buf_free(&v->unfinished);
	v->joined = 0;
	r->too_large = true;
}

/* A long range becomes a shared text, which also answers equal requests. */
static void share_range(struct set_request *r)
{
	enum { MANY = 4096 };

	if (r->verb != SET_RANGE || r->bytes || buf_size(&r->text) < MANY)
		return;
	r->text.end--;
	r->shared = shared_create(&r->text);
}

bool set_answer(struct set_view *v, struct set_request *request)
{
	static bool (*const verbs[])(struct set_view *, struct set_request *) = {
		[SET_ALL] = answer_members,
		[SET_TEST] = answer_test,
		[SET_SAMPLE] = answer_sample,
		[SET_RANGE] = answer_range,
		[SET_COUNT] = answer_count,
		[SET_TTL] = answer_ttl,
		[SET_INFO] = answer_info,
		[SET_TAKE] = answer_take,
	};

	if (request->answered)
		return true;
	if (request->verb == SET_HAS)
		return request->answered = answer_has(v, request);
	/* The number of members of a set that is one log is known. */
	if (request->verb == SET_COUNT && v->run_count == 0 && v->head.member_count == 0 &&
		is_of_all(&request->range))
		return request->answered = count_all(v, request, &request->number);
	v->resized = true;
	request->answered = memos_find(&v->memos, request);
	if (request->answered)
		return true;
	begin_answer(v, request);
	request->answered = verbs[request->verb](v, request);
	if (is_answer_too_large(v, request)) {
		refuse_too_large(v, request);
		request->answered = true;
	} else if (request->answered) {
		share_range(request);
		memos_keep(&v->memos, request);
	}
	return request->answered;
}

void set_answer_fold(const struct fold *all, struct set_request *request)
{
	struct set_view view;

	set_view_lend(&view, all, NULL);
	while (!set_answer(&view, request))
		assert(view.want_count == 0);
	set_view_give_back(&view);
}
