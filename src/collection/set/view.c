#include "collection/set/view.h"

#include <stdlib.h>

#include "util/hash.h"

void set_view_init(struct set_view *v, uint64_t seed, struct set_store *store)
{
	*v = (struct set_view){ .store = store, .slice = SET_SLICE };
	v->head.seed = v->overlay.seed = seed;
	TAILQ_INIT(&v->spare);
}

static void forget_text(struct set_view *v)
{
	shared_drop(v->text);
	v->text = NULL;
	buf_free(&v->part);
	v->version++;
	buf_consume(&v->sorted_overlay, buf_size(&v->sorted_overlay));
}

static void forget_below(struct set_view *v)
{
	free(v->below);
	v->below = NULL;
	v->below_size = 0;
}

void set_view_free(struct set_view *v)
{
	forget_text(v);
	forget_below(v);
	set_view_drop_runs(v);
	fold_free(&v->head);
	fold_free(&v->overlay);
	buf_free(&v->base);
	buf_free(&v->sorted_head);
	buf_free(&v->sorted_overlay);
	free(v->wants);
}

/* Appends to the base. If it moves, adjusts the folds that borrow from it. */
static void grow_base(struct set_view *v, struct slice more)
{
	struct buf old = v->base;

	if (old.cap - old.end < more.n) {
		v->base = BUF_EMPTY;
		buf_reserve(&v->base, 2 * (buf_size(&old) + more.n));
		buf_add_slice(&v->base, buf_slice(&old));
		fold_rebase(&v->overlay, old.data + old.start, v->base.data);
		fold_rebase(&v->head, old.data + old.start, v->base.data);
		buf_free(&old);
	}
	buf_add_slice(&v->base, more);
}

/* Folds appended bytes in, if the base only grew at its end. */
static bool follow(struct set_view *v, struct slice base)
{
	struct slice old = buf_slice(&v->base), more;

	if (!v->known || old.n == 0 || !slice_starts(base, old))
		return false;
	if (base.n == old.n)
		return true;
	grow_base(v, slice_skip(base, old.n));
	more = slice_skip(buf_slice(&v->base), old.n);
	forget_text(v);
	v->known = !oplog_has_block(more) && fold_log(&v->overlay, more);
	v->tokens = v->overlay.tokens;
	return v->known;
}

static bool fold_head(struct set_view *v)
{
	if (!fold_log(&v->head, v->parts.head))
		return false;
	buf_consume(&v->sorted_head, buf_size(&v->sorted_head));
	return true;
}

/* The number of runs, from the oldest one, that are in the new base too. */
static size_t runs_that_stay(const struct set_view *v, const struct oplog_base *parts)
{
	struct slice refs = parts->refs;
	struct oplog_run run;
	size_t i = 0;

	while (i < v->run_count && oplog_next_run(&refs, &run) && oplog_same_run(&run, &v->runs[i].ref))
		i++;
	return i;
}

/* Takes the runs of a new base. The count of the oldest runs stays valid if they stay. */
static void take_runs(struct set_view *v, const struct oplog_base *parts, bool had_head)
{
	size_t stay = parts->is_list ? 0 : runs_that_stay(v, parts);

	if (parts->is_list)
		set_view_drop_runs(v);
	if (stay < v->counted_runs || had_head || parts->head.n)
		v->counted_runs = 0;
	if (!parts->is_list && (stay != v->run_count || stay != parts->ref_count))
		set_view_make_runs(v, parts);
}

static enum oplog_form start_over(struct set_view *v, struct slice base)
{
	struct buf old = v->base;
	struct oplog_base parts;
	bool had_head = v->head.member_count > 0;

	forget_text(v);
	forget_below(v);
	v->known = false;
	v->base = BUF_EMPTY;
	buf_reserve(&v->base, base.n + base.n / 2 + 1);
	buf_add_slice(&v->base, base);
	fold_reset(&v->head);
	fold_reset(&v->overlay);
	buf_free(&old);
	if (!oplog_split(buf_slice(&v->base), &parts))
		return parts.form;
	if (oplog_refs_repeat(&parts))
		return OPLOG_CORRUPT;
	v->parts = parts;
	take_runs(v, &parts, had_head);
	if (!fold_head(v) || !fold_log(&v->overlay, parts.log))
		return OPLOG_CORRUPT;
	v->tokens = v->overlay.tokens;
	v->known = true;
	return OPLOG_GOOD;
}

/* Adjusts v->parts: the base may have moved, and its log grown. */
static void find_parts(struct set_view *v)
{
	struct slice base = buf_slice(&v->base);
	struct oplog_base *parts = &v->parts;
	size_t mark = parts->block.n - parts->refs.n;

	parts->head.p = base.p;
	parts->block.p = base.p + parts->head.n;
	parts->refs.p = parts->block.p + mark;
	parts->log = slice_skip(base, parts->head.n + parts->block.n);
}

enum oplog_form set_view_update(struct set_view *v, struct slice base)
{
	if (!follow(v, base))
		return start_over(v, base);
	find_parts(v);
	return OPLOG_GOOD;
}

bool set_view_take_log(struct set_view *v, struct slice log)
{
	return start_over(v, log) == OPLOG_GOOD;
}

/* What a run says of a member. */
static enum set_found look_in_run(struct set_view *v, size_t run, struct slice member, uint64_t hash, bool *removed)
{
	/* Filters do not pay for the oldest run, which has most of the members. */
	bool filters = run > 0;
	const struct table *table;
	size_t number;

	if (filters && set_view_excludes(v, run, hash))
		return SET_OUT;
	number = set_view_table_of(v, run, member);
	table = number == SIZE_MAX ? NULL : set_view_table(v, run, number);
	if (!table)
		return SET_WANTED;
	if (filters && !set_view_may_hold(v, run, number, hash))
		return SET_OUT;
	return table_find(table, member, removed) ? SET_IN : SET_OUT;
}

/* Reads on after a want, so that all wants are noted at once. */
enum set_found set_view_below(struct set_view *v, size_t runs, struct slice member)
{
	uint64_t hash = hash_slice(member, v->overlay.seed);
	bool removed = false, wanted = false;

	/* Each filter is a cache miss: fetch all of them in parallel. */
	for (size_t i = runs; i-- > 1;)
		set_view_prefetch(v, i, hash);
	for (size_t i = runs; i-- > 0;) {
		enum set_found found = look_in_run(v, i, member, hash, &removed);
		if (found == SET_WANTED)
			wanted = true;
		else if (found == SET_IN)
			return wanted ? SET_WANTED : removed ? SET_OUT : SET_IN;
	}
	if (wanted)
		return SET_WANTED;
	return fold_contains(&v->head, member) ? SET_IN : SET_OUT;
}

enum set_found set_view_find(struct set_view *v, struct slice member)
{
	bool live;

	if (fold_mentions(&v->overlay, member, &live))
		return live ? SET_IN : SET_OUT;
	return set_view_below(v, v->run_count, member);
}

enum set_found set_view_mentioned(struct set_view *v, size_t from, struct slice member)
{
	uint64_t hash = hash_slice(member, v->overlay.seed);
	bool wanted = false, ignored;

	if (fold_mentions(&v->overlay, member, &ignored))
		return SET_IN;
	for (size_t i = from; i < v->run_count; i++) {
		enum set_found found = look_in_run(v, i, member, hash, &ignored);
		if (found == SET_IN)
			return SET_IN;
		wanted |= found == SET_WANTED;
	}
	return wanted ? SET_WANTED : SET_OUT;
}

double set_view_waste(const struct set_view *v)
{
	size_t need = v->run_count ? fold_delta_size(&v->overlay) : fold_log_size(&v->overlay);

	return v->parts.log.n ? 1.0 - (double)need / (double)v->parts.log.n : 0.0;
}

size_t set_view_memory(const struct set_view *v)
{
	size_t memory = v->base.cap + fold_memory(&v->overlay) + fold_memory(&v->head) + v->sorted_overlay.cap +
		v->sorted_head.cap + v->below_size + v->part.cap + (v->text ? v->text->text.cap : 0) +
		v->run_count * sizeof(*v->runs);

	for (size_t i = 0; i < v->run_count; i++)
		memory += v->runs[i].tables ? v->runs[i].ref.tables * sizeof(struct set_slot) : 0;
	return memory;
}
