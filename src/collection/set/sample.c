/*
 * Rejection sampling: an entry is drawn uniformly from all layers. It counts if it adds its member and no newer layer
 * mentions that. So each member has exactly one entry that counts. If too many draws would be needed, all members are
 * read instead.
 */
#include "collection/set/sample.h"

#include "collection/set/walk.h"
#include "util/random.h"

enum { DRAWS_EACH = 32, DRAWS_MORE = 64, LARGE_PART = 4, LARGE = 4096 };

struct drawing {
	struct set_view *view;
	struct set_request *request;
	struct fold chosen; /* the members drawn; borrows from `names` */
	struct buf names;   /* never moves */
	uint64_t random, total;
};

static void write_member(const struct set_request *r, struct buf *text, struct slice member)
{
	if (r->sign)
		buf_add(text, r->sign, strlen(r->sign));
	buf_add_slice(text, member);
	BUF_ADD(text, " ");
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
	need = r->count < left ? r->count : left;
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

/* A member is chosen only once. `names` has room for all, so it never moves. */
static void choose(struct drawing *d, struct slice member)
{
	char *at;

	if (fold_contains(&d->chosen, member))
		return;
	at = buf_reserve(&d->names, member.n);
	memcpy(at, member.p, member.n);
	buf_commit(&d->names, member.n);
	fold_add(&d->chosen, slice_of(at, member.n));
	write_member(d->request, &d->request->text, member);
}

static bool draw_all(struct drawing *d, bool *enough)
{
	struct set_request *r = d->request;
	uint64_t draws = r->count * DRAWS_EACH + DRAWS_MORE, wanted = 0;
	struct table_cursor cursor;
	struct slice member;

	buf_reserve(&d->names, r->count * MEMBER_MAX);
	while (draws-- > 0 && d->chosen.live < r->count) {
		enum set_found found = draw(d, &cursor, &member);
		/* Go on drawing after a miss, so that tables of later draws are loaded together. */
		wanted += found == SET_WANTED;
		if (wanted + d->chosen.live >= r->count && wanted)
			return false;
		if (found == SET_IN)
			choose(d, member);
	}
	*enough = d->chosen.live == r->count;
	return wanted == 0;
}

/* A repeated call draws the same numbers, because the request has the seed. */
bool set_sample(struct set_view *v, struct set_request *r)
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
