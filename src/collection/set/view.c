#include "collection/set/view.h"

#include <stdlib.h>

#include "collection/text/filter.h"
#include "collection/text/packed.h"
#include "util/alloc.h"
#include "util/check.h"
#include "util/hash.h"

/* --- parts --- */

/*
 * A spare part is dropped after this many changes of the references: a new base may be about
 * to refer to its run.
 */
enum { SPARE_AGE = 4 };

static size_t part_memory(const struct set_part *part)
{
	size_t ranks = part->ranks ? table_restarts(&part->table) : part->fences.count;
	return sizeof(*part) + part->data.cap + part->fences.count * sizeof(struct fence) +
		ranks * sizeof(uint64_t);
}

void set_part_drop(struct set_part *part)
{
	struct set_view *v = part->view;

	if (part->slot)
		part->slot->part = NULL;
	else
		TAILQ_REMOVE(&v->spare, part, spare);
	TAILQ_REMOVE(&v->store->used, part, link);
	v->store->memory -= part_memory(part);
	fences_free(&part->fences);
	free(part->ranks);
	buf_free(&part->data);
	free(part);
}

static void make_spare(struct set_slot *slot)
{
	struct set_part *part = slot->part;

	if (!part)
		return;
	slot->part = NULL;
	part->slot = NULL;
	part->age = 0;
	TAILQ_INSERT_TAIL(&part->view->spare, part, spare);
}

typedef bool open_table(struct table *t, struct slice data, struct buf *text);

static bool view_copy_table(struct table *t, struct slice data, struct buf *text)
{
	buf_add_slice(text, data);
	return table_trust(t, buf_slice(text));
}

/*
 * `open` is packed_open for a table as it is stored, view_copy_table for one that this process
 * has just written, NULL for an index.
 */
static struct set_part *open_part(
	struct set_view *v, struct slice id, open_table *open, struct slice data)
{
	struct set_part *part = xcalloc(1, sizeof(*part));

	memcpy(part->id, id.p, OPLOG_ID);
	part->view = v;
	if (!open)
		buf_add_slice(&part->data, data);
	if (open ? !open(&part->table, data, &part->data)
		 : !fences_read(&part->fences, buf_slice(&part->data))) {
		buf_free(&part->data);
		free(part);
		return NULL;
	}
	if (open && part->table.count) {
		part->ranks = xcalloc(table_restarts(&part->table), sizeof(*part->ranks));
		table_rank(&part->table, part->ranks);
	}
	part->next_date = part->table.dates ? 0 : UINT32_MAX;
	part->when = ++v->store->clock;
	v->store->memory += part_memory(part);
	TAILQ_INSERT_HEAD(&v->store->used, part, link);
	return part;
}

static void put_part(struct set_slot *slot, struct set_part *part)
{
	if (slot->part)
		set_part_drop(slot->part);
	slot->part = part;
	slot->wanted = false;
	part->slot = slot;
}

/* Removes the spare part with this id from the list, and returns it. */
static struct set_part *take_spare(struct set_view *v, const char id[OPLOG_ID])
{
	struct set_part *part;

	TAILQ_FOREACH(part, &v->spare, spare) {
		if (memcmp(part->id, id, OPLOG_ID) == 0) {
			TAILQ_REMOVE(&v->spare, part, spare);
			return part;
		}
	}
	return NULL;
}

void set_view_keep(struct set_view *v, struct slice id, bool table, struct slice data)
{
	struct set_part *part = open_part(v, id, table ? view_copy_table : NULL, data);

	if (part)
		TAILQ_INSERT_TAIL(&v->spare, part, spare);
}

static void use_part(struct set_part *part)
{
	struct set_store *store = part->view->store;

	if (++store->clock - part->when < SET_CLOSELY)
		return;
	part->when = store->clock;
	if (part != TAILQ_FIRST(&store->used)) {
		TAILQ_REMOVE(&store->used, part, link);
		TAILQ_INSERT_HEAD(&store->used, part, link);
	}
}

/* When the index is known: creates the slots of the tables, and fills them with spare parts. */
static bool make_slots(struct set_view *v, struct set_run *run, const struct fences *fences)
{
	if (fences->count != run->ref.tables || fences->entries != run->ref.entries ||
		fences->removals != run->ref.removals || fences->bytes != run->ref.bytes ||
		fences->dated != run->ref.dated)
		return false;
	if (run->tables)
		return true;
	run->tables = xcalloc(fences->count, sizeof(*run->tables));
	for (size_t i = 0; i < fences->count && !TAILQ_EMPTY(&v->spare); i++) {
		struct set_part *part = take_spare(v, fences->list[i].id);
		if (!part)
			continue;
		put_part(&run->tables[i], part);
		if (!fences_hold(fences, i, &part->table))
			set_part_drop(part);
	}
	return true;
}

/*
 * Returns whether a part, the index of a run or its only table, matches the counts in the
 * reference. An index creates the slots.
 */
static bool matches(struct set_view *v, struct set_run *run, const struct set_part *part)
{
	return run->ref.indexed ? make_slots(v, run, &part->fences)
				: part->table.count == run->ref.entries &&
			(part->table.dates != NULL) == (run->ref.dated > 0);
}

/* Frees the runs. Their parts become spare. */
static void free_runs(struct set_view *v)
{
	for (size_t i = 0; i < v->run_count; i++) {
		struct set_run *run = &v->runs[i];
		if (run->filter)
			v->store->memory -= filter_words(run->ref.entries) * sizeof(*run->filter);
		free(run->filter);
		make_spare(&run->index);
		for (uint64_t t = 0; run->tables && t < run->ref.tables; t++)
			make_spare(&run->tables[t]);
		free(run->tables);
	}
	free(v->runs);
	v->runs = NULL;
	v->run_count = 0;
	v->dated_runs = false;
}

static void age_spares(struct set_view *v, unsigned most)
{
	struct set_part *part, *next;

	for (part = TAILQ_FIRST(&v->spare); part; part = next) {
		next = TAILQ_NEXT(part, spare);
		if (part->age++ >= most)
			set_part_drop(part);
	}
}

/*
 * Moves the parts of the equal old run to `run`. Parts point to their slots, and the slot of
 * the index moves. Slots and filter are sized by the reference, so a different reference
 * must not get them.
 */
static void take_old(struct set_view *v, struct set_run *run)
{
	for (size_t i = 0; i < v->run_count; i++) {
		struct set_run *old = &v->runs[i];
		if (!oplog_same_run(&old->ref, &run->ref))
			continue;
		if (old->index.part)
			put_part(&run->index, old->index.part);
		old->index.part = NULL;
		run->tables = old->tables;
		run->filter = old->filter;
		run->filtered = old->filtered;
		old->tables = NULL;
		old->filter = NULL;
		return;
	}
}

static void find_spare(struct set_view *v, struct set_run *run)
{
	struct set_part *part;

	if (!run->ref.indexed && !run->tables)
		run->tables = xcalloc(1, sizeof(*run->tables));
	if (run->ref.indexed ? run->index.part != NULL : run->tables[0].part != NULL)
		return;
	part = take_spare(v, run->id);
	if (!part)
		return;
	put_part(run->ref.indexed ? &run->index : &run->tables[0], part);
	if (!matches(v, run, part))
		set_part_drop(part);
}

static void make_runs(struct set_view *v, const struct oplog_base *split)
{
	struct set_run *runs = xcalloc(split->ref_count + 1, sizeof(*runs));
	struct slice refs = split->refs;
	size_t count = split->ref_count;

	for (size_t i = 0; i < count && oplog_next_run(&refs, &runs[i].ref); i++) {
		memcpy(runs[i].id, runs[i].ref.id.p, OPLOG_ID);
		runs[i].ref.id = slice_of(runs[i].id, OPLOG_ID);
		take_old(v, &runs[i]);
	}
	free_runs(v);
	v->runs = runs;
	v->run_count = count;
	v->dated_runs = false;
	for (size_t i = 0; i < count; i++) {
		find_spare(v, &runs[i]);
		v->dated_runs |= runs[i].ref.dated > 0;
	}
	age_spares(v, SPARE_AGE);
	v->fresh_until = 0;
}

static void drop_runs(struct set_view *v)
{
	free_runs(v);
	age_spares(v, 0);
}

static void want(struct set_view *v, size_t run, int64_t table)
{
	struct set_slot *slot =
		table == SET_INDEX ? &v->runs[run].index : &v->runs[run].tables[table];

	if (slot->wanted)
		return;
	slot->wanted = true;
	if (v->want_count == v->want_capacity) {
		v->want_capacity = v->want_capacity ? 2 * v->want_capacity : 8;
		v->wants = xrealloc(v->wants, v->want_capacity * sizeof(*v->wants));
	}
	v->wants[v->want_count++] = (struct set_want){ (uint32_t)run, table };
}

struct slice set_view_want_id(const struct set_view *v, const struct set_want *want)
{
	const struct set_run *run = &v->runs[want->run];

	if (want->table == SET_INDEX || !run->ref.indexed)
		return slice_of(run->id, OPLOG_ID);
	return slice_of(run->index.part->fences.list[want->table].id, OPLOG_ID);
}

bool set_view_load(struct set_view *v, const struct set_want *want, struct slice data)
{
	struct set_run *run = &v->runs[want->run];
	bool is_index = want->table == SET_INDEX;
	const struct fence *fence = NULL;
	struct set_part *part;

	v->resized = true;
	if (!is_index && run->ref.indexed) {
		/* The index may have been dropped meanwhile: then it is wanted again. */
		if (!run->index.part)
			return true;
		fence = &run->index.part->fences.list[want->table];
	}
	if (check_of(data) != (fence ? fence->check : run->ref.check))
		return false;
	part = open_part(v, fence ? slice_of(fence->id, OPLOG_ID) : run->ref.id,
		is_index ? NULL : packed_open, data);
	if (!part)
		return false;
	put_part(is_index ? &run->index : &run->tables[want->table], part);
	if (fence ? fences_hold(&run->index.part->fences, (size_t)want->table, &part->table)
		  : matches(v, run, part))
		return true;
	set_part_drop(part);
	return false;
}

void set_view_end_wants(struct set_view *v)
{
	for (size_t i = 0; i < v->want_count; i++) {
		struct set_run *run = &v->runs[v->wants[i].run];
		if (v->wants[i].table == SET_INDEX)
			run->index.wanted = false;
		else if (run->tables)
			run->tables[v->wants[i].table].wanted = false;
	}
	v->want_count = 0;
}

const struct fences *set_view_index(struct set_view *v, size_t run)
{
	struct set_slot *slot = &v->runs[run].index;

	if (!slot->part) {
		want(v, run, SET_INDEX);
		return NULL;
	}
	use_part(slot->part);
	return &slot->part->fences;
}

const struct table *set_view_table(struct set_view *v, size_t run, size_t table)
{
	struct set_slot *slot = &v->runs[run].tables[table];

	if (!slot->part) {
		want(v, run, (int64_t)table);
		return NULL;
	}
	use_part(slot->part);
	if (slot->part->next_date <= v->now)
		slot->part->expired =
			table_expired(&slot->part->table, v->now, &slot->part->next_date);
	return &slot->part->table;
}

struct slice set_view_table_data(
	const struct set_view *v, const struct oplog_run *ref, size_t table)
{
	for (size_t i = 0; i < v->run_count; i++) {
		const struct set_run *run = &v->runs[i];
		if (oplog_same_run(&run->ref, ref) && run->tables && table < run->ref.tables &&
			run->tables[table].part)
			return buf_slice(&run->tables[table].part->data);
	}
	return slice_of("", 0);
}

static void add_to_filter(struct set_view *v, struct set_run *run, struct set_slot *slot)
{
	size_t words = filter_words(run->ref.entries);
	struct table_cursor c;

	if (!run->filter) {
		run->filter = xcalloc(words, sizeof(*run->filter));
		v->store->memory += words * sizeof(*run->filter);
	}
	for (bool more = table_first(&c, &slot->part->table); more; more = table_next(&c))
		filter_add(run->filter, words, hash_member(table_member(&c), &v->secret));
	slot->filtered = true;
	run->filtered++;
}

/*
 * Returns whether the filter of a run excludes all members with this hash. Needs no
 * table in memory.
 */
static bool excludes(const struct set_view *v, size_t run, uint64_t hash)
{
	const struct set_run *r = &v->runs[run];

	return r->filtered == r->ref.tables &&
		!filter_may_hold(r->filter, filter_words(r->ref.entries), hash);
}

/* Prefetches the cache line that `excludes` reads. */
static void prefetch(const struct set_view *v, size_t run, uint64_t hash)
{
	const struct set_run *r = &v->runs[run];

	if (r->filter)
		__builtin_prefetch(&r->filter[filter_word(hash, filter_words(r->ref.entries))]);
}

/* Returns false if a table in memory has no member with this hash. */
static bool may_hold(struct set_view *v, size_t run, size_t table, uint64_t hash)
{
	struct set_run *r = &v->runs[run];

	if (!r->tables[table].filtered)
		add_to_filter(v, r, &r->tables[table]);
	return filter_may_hold(r->filter, filter_words(r->ref.entries), hash);
}

size_t set_view_table_of(struct set_view *v, size_t run, struct slice member)
{
	const struct fences *fences;

	if (!v->runs[run].ref.indexed)
		return 0;
	fences = set_view_index(v, run);
	return fences ? fences_find(fences, member) : SIZE_MAX;
}

/* --- the view --- */

void set_view_init(struct set_view *v, uint64_t seed, struct set_store *store)
{
	*v = (struct set_view){ .store = store, .resized = true };
	v->head.seed = v->overlay.seed = seed;
	v->secret = hash_secret_of(seed);
	TAILQ_INIT(&v->spare);
}

void set_view_lend(struct set_view *v, const struct fold *all, struct env *env)
{
	set_view_init(v, all->seed, NULL);
	v->overlay = *all;
	v->env = env;
}

void set_view_give_back(struct set_view *v)
{
	v->overlay = (struct fold){ 0 };
	set_view_free(v);
}

void set_view_end_walk(struct set_view *v)
{
	buf_free(&v->walked);
	v->walked_members = 0;
}

static void forget_text(struct set_view *v)
{
	v->resized = true;
	set_view_end_walk(v);
	table_sorting_free(v->sorting);
	v->sorting = NULL;
	shared_drop(v->text);
	v->text = NULL;
	buf_free(&v->unfinished);
	v->joined = 0;
	memos_forget(&v->memos);
	v->version++;
	buf_consume(&v->sorted_overlay, buf_size(&v->sorted_overlay));
}

static void forget_below(struct set_view *v)
{
	free(v->below);
	v->below = NULL;
	v->below_size = 0;
}

void set_view_forget(struct set_view *v, bool lower)
{
	forget_text(v);
	if (!lower)
		return;
	buf_consume(&v->sorted_head, buf_size(&v->sorted_head));
	forget_below(v);
	v->counted_runs = 0;
}

void set_view_free(struct set_view *v)
{
	forget_text(v);
	forget_below(v);
	drop_runs(v);
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

bool set_view_is_unfolded(const struct set_view *v)
{
	return v->unfolded_head.n || v->unfolded.n;
}

bool set_view_fold(struct set_view *v)
{
	bool head = v->unfolded_head.n;

	v->resized = true;
	if (!fold_portion(head ? &v->head : &v->overlay, head ? &v->unfolded_head : &v->unfolded)) {
		v->unfolded_head = v->unfolded = slice_of("", 0);
		return false;
	}
	v->known = !set_view_is_unfolded(v);
	return true;
}

/* Folds a portion of the head or the log, which usually is all of it. The rest is folded later. */
static bool begin_fold(struct set_view *v, struct slice head, struct slice log)
{
	v->unfolded_head = head;
	v->unfolded = log;
	if (head.n && !set_view_fold(v))
		return false;
	v->known = !set_view_is_unfolded(v);
	return v->known || v->unfolded_head.n || set_view_fold(v);
}

/* Folds in the appended bytes, if the base only grew at its end. */
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
	v->known = false;
	return !oplog_has_block(more) && begin_fold(v, slice_of("", 0), more);
}

/* Returns the number of runs, from the oldest one, that the new base still has. */
static size_t runs_that_stay(const struct set_view *v, const struct oplog_base *split)
{
	struct slice refs = split->refs;
	struct oplog_run run;
	size_t i = 0;

	while (i < v->run_count && oplog_next_run(&refs, &run) &&
		oplog_same_run(&run, &v->runs[i].ref))
		i++;
	return i;
}

/* Takes the runs of a new base. The count of the oldest runs stays valid if they remain. */
static void adopt_runs(struct set_view *v, const struct oplog_base *split, bool had_head)
{
	size_t stay = runs_that_stay(v, split);

	if (stay < v->counted_runs || had_head || split->head.n)
		v->counted_runs = 0;
	if (split->is_list)
		drop_runs(v);
	else if (stay != v->run_count || stay != split->ref_count)
		make_runs(v, split);
}

static enum oplog_form read_anew(struct set_view *v, struct slice base)
{
	struct buf old = v->base;
	struct oplog_base split;
	bool had_head = v->head.member_count > 0;

	forget_text(v);
	forget_below(v);
	v->known = false;
	v->unfolded_head = v->unfolded = slice_of("", 0);
	v->base = BUF_EMPTY;
	buf_reserve(&v->base, base.n + base.n / 2 + 1);
	buf_add_slice(&v->base, base);
	fold_reset(&v->head);
	fold_reset(&v->overlay);
	buf_free(&old);
	if (!oplog_split(buf_slice(&v->base), &split))
		return split.form;
	if (oplog_refs_repeat(&split))
		return OPLOG_CORRUPT;
	v->split = split;
	adopt_runs(v, &split, had_head);
	buf_consume(&v->sorted_head, buf_size(&v->sorted_head));
	return begin_fold(v, split.head, split.log) ? OPLOG_GOOD : OPLOG_CORRUPT;
}

/* Adjusts v->split: the base may have moved, and its log grown. */
static void find_split(struct set_view *v)
{
	struct slice base = buf_slice(&v->base);
	struct oplog_base *split = &v->split;
	size_t mark = split->block.n - split->refs.n;

	split->head.p = base.p;
	split->block.p = base.p + split->head.n;
	split->refs.p = split->block.p + mark;
	split->log = slice_skip(base, split->head.n + split->block.n);
}

enum oplog_form set_view_update(struct set_view *v, struct slice base)
{
	if (!follow(v, base))
		return read_anew(v, base);
	find_split(v);
	return OPLOG_GOOD;
}

bool set_view_is_of(const struct set_view *v, struct slice base)
{
	return v->known && slice_equal(buf_slice(&v->base), base);
}

/* The members and their order are unchanged, so everything computed from them stays valid. */
void set_view_compacted(struct set_view *v, struct slice base)
{
	struct buf copy = BUF_EMPTY;

	if (v->sorting)
		return;
	buf_reserve(&copy, base.n + base.n / 2 + 1);
	buf_add_slice(&copy, base);
	if (!fold_take_encoded(&v->overlay,
		    slice_skip(buf_slice(&copy), v->split.head.n + v->split.block.n))) {
		buf_free(&copy);
		return;
	}
	fold_rebase(&v->head, v->base.data + v->base.start, copy.data);
	buf_free(&v->base);
	v->base = copy;
	v->cas = 0;
	v->resized = true;
	find_split(v);
}

/*
 * Returns SET_IN if a run has an entry of the member; stores in `removed` whether
 * that is a removal, or has expired.
 */
static enum set_found look_in_run(
	struct set_view *v, size_t run, struct slice member, uint64_t hash, bool *removed)
{
	/* Filters do not pay off for the oldest run, which has most of the members. */
	bool filters = run > 0;
	const struct table *table;
	size_t number;

	if (filters && excludes(v, run, hash))
		return SET_OUT;
	number = set_view_table_of(v, run, member);
	table = number == SIZE_MAX ? NULL : set_view_table(v, run, number);
	if (!table)
		return SET_WANTED;
	if (filters && !may_hold(v, run, number, hash))
		return SET_OUT;
	return table_find(table, member, v->now, removed) ? SET_IN : SET_OUT;
}

/* Continues after a want, so that all wants are noted at once. */
static enum set_found look_in_runs(
	struct set_view *v, size_t runs, struct slice member, uint64_t hash)
{
	bool removed = false, wanted = false;

	/* Each filter is a cache miss: fetch all of them in parallel. */
	for (size_t i = runs; i-- > 1;)
		prefetch(v, i, hash);
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

enum set_found set_view_below(struct set_view *v, size_t runs, struct slice member)
{
	return look_in_runs(v, runs, member, hash_member(member, &v->secret));
}

enum set_found set_view_find(struct set_view *v, struct slice member)
{
	uint64_t hash = hash_member(member, &v->secret);
	bool live;

	if (fold_mentions_hashed(&v->overlay, member, hash, &live))
		return live ? SET_IN : SET_OUT;
	return look_in_runs(v, v->run_count, member, hash);
}

enum set_found set_view_mentioned(struct set_view *v, size_t from, struct slice member)
{
	uint64_t hash = hash_member(member, &v->secret);
	bool wanted = false, ignored;

	if (fold_mentions_hashed(&v->overlay, member, hash, &ignored))
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
	size_t need = fold_log_size(&v->overlay, v->run_count > 0);

	return v->split.log.n ? 1.0 - (double)need / (double)v->split.log.n : 0.0;
}

size_t set_view_memory(const struct set_view *v)
{
	size_t memory = v->base.cap + fold_memory(&v->overlay) + fold_memory(&v->head) +
		v->sorted_overlay.cap + v->sorted_head.cap + v->below_size + v->unfinished.cap +
		(v->text ? v->text->text.cap : 0) + v->memos.memory +
		v->run_count * sizeof(*v->runs);

	for (size_t i = 0; i < v->run_count; i++)
		memory += v->runs[i].tables ? v->runs[i].ref.tables * sizeof(struct set_slot) : 0;
	return memory;
}
