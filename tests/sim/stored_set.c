/*
 *     base     log of the head   @set.1   @run ...   log
 *              log of the head   @set.2   @run ...   @fill.<token>.<deadline>.<seconds>   @run ...   log
 *                                          |
 *     item     t... a table     or    i... an index: fences, each of a table
 */
#include "stored_set.h"

#include <stdio.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "stored_table.h"
#include "util/alloc.h"
#include "wording.h"
#include "world.h"

enum { ID_SIZE = 12, CHECK_DIGITS = 16, DATE_SIZE = 11 /* with its mark */ };

/* A look at a set. */
struct view {
	struct world *w;
	int key;
	bool *members;
	signed char *words; /* if this is not NULL, words are written here instead */
	uint32_t *dates;    /* of members or words */
	bool lost;          /* a part is missing */
	bool wide;          /* the form of the base is 3, or its lease says so */
	char item[32];      /* the key of the item that is being parsed */
};

/* All items that ever were. */
struct stored_sets {
	struct written {
		struct buf key, value;
	} * list;
	size_t count, capacity;
};

struct run {
	struct slice id;
	struct stored_totals totals;
	uint64_t check;
};

struct fence {
	struct slice id, first;
	struct stored_totals totals;
	uint64_t check;
};

struct parts {
	struct slice head, refs, log;
	bool loading, wide;
	struct slice token, loaded; /* of a lease */
	uint64_t deadline;
};

static bool wrong(struct view *v, const char *what)
{
	world_fail(v->w, what, "%s", v->item);
	return false;
}

/* --- bytes --- */

/* A token that ends with a space; an empty one if there is none. */
static struct slice next_token(struct slice *rest)
{
	const char *space = rest->n ? memchr(rest->p, ' ', rest->n) : NULL;
	struct slice token = slice_of(rest->p, space ? (size_t)(space - rest->p) : 0);

	if (space)
		*rest = slice_skip(*rest, token.n + 1);
	return token;
}

static bool is_id(struct slice id, const char *letters)
{
	for (size_t i = 0; i < id.n; i++) {
		if (!((id.p[i] >= 'a' && id.p[i] <= 'z') || (id.p[i] >= '0' && id.p[i] <= '9')))
			return false;
	}
	return id.n == ID_SIZE && strchr(letters, id.p[0]);
}

/* --- the base --- */

/* Removes the references from the front, up to a lease. Returns false if one has no end. */
static bool take_refs(struct slice *rest, struct slice *refs)
{
	*refs = *rest;
	while (rest->n && rest->p[0] == '@' && !slice_starts(*rest, SLICE("@fill."))) {
		if (next_token(rest).n == 0)
			return false;
	}
	refs->n -= rest->n;
	return true;
}

static bool take_lease(struct slice *rest, struct parts *out)
{
	struct slice token = next_token(rest);
	uint64_t seconds;

	if (!slice_starts(token, SLICE("@fill.")) || token.n < 6 + STORED_TOKEN)
		return false;
	out->token = slice_of(token.p + 6, STORED_TOKEN);
	token = slice_skip(token, 6 + STORED_TOKEN);
	if (!stored_number(&token, '.', &out->deadline) || !stored_number(&token, '.', &seconds))
		return false;
	out->wide = slice_equal(token, SLICE(".3"));
	return out->wide || token.n == 0;
}

/* Splits the base at its block. Returns false if the block is not that of a set. */
static bool split(struct slice base, struct parts *out)
{
	struct slice rest = base, mark;

	*out = (struct parts){
		.head = slice_of(base.p, 0), .refs = slice_of(base.p, 0), .log = base
	};
	out->loaded = out->refs;
	while (rest.n && rest.p[0] != '@') {
		if (next_token(&rest).n == 0)
			return true;
	}
	if (!rest.n)
		return true;
	out->head = slice_of(base.p, base.n - rest.n);
	mark = next_token(&rest);
	out->loading = slice_equal(mark, SLICE("@set.2"));
	out->wide = slice_equal(mark, SLICE("@set.3"));
	if ((!out->loading && !out->wide && !slice_equal(mark, SLICE("@set.1"))) ||
		!take_refs(&rest, &out->refs))
		return false;
	if (out->loading && (!take_lease(&rest, out) || !take_refs(&rest, &out->loaded)))
		return false;
	out->log = rest;
	return true;
}

struct slice stored_set_refs(struct slice base)
{
	struct parts parts;

	return split(base, &parts) && !parts.loading ? parts.refs : slice_of(base.p, 0);
}

bool stored_number(struct slice *rest, char mark, uint64_t *out)
{
	size_t digits = 0;

	*out = 0;
	if (!rest->n || rest->p[0] != mark)
		return false;
	*rest = slice_skip(*rest, 1);
	for (; digits < rest->n && digits < 19 && rest->p[digits] >= '0' && rest->p[digits] <= '9';
		digits++)
		*out = *out * 10 + (uint64_t)(rest->p[digits] - '0');
	if (digits == 0 || (digits > 1 && rest->p[0] == '0'))
		return false;
	*rest = slice_skip(*rest, digits);
	return true;
}

bool stored_check(struct slice *rest, uint64_t *out)
{
	static const char all[] = "0123456789abcdef";
	struct slice digits;

	*out = 0;
	if (!stored_take(rest, 1 + CHECK_DIGITS, &digits) || digits.p[0] != '.')
		return false;
	for (size_t i = 1; i < digits.n; i++) {
		const char *digit = memchr(all, digits.p[i], sizeof(all) - 1);
		if (!digit)
			return false;
		*out = *out << 4 | (uint64_t)(digit - all);
	}
	return true;
}

/* Reads the number and the mean of the dates of a run, if it has any. */
static bool take_dates(struct slice *rest, struct stored_totals *t)
{
	if (rest->n == 1 + CHECK_DIGITS)
		return true;
	return stored_number(rest, '.', &t->dated) && stored_number(rest, '.', &t->mean) &&
		t->dated && t->mean;
}

/* @<id>.<tables>.<entries>.<removals>.<bytes>[.<dated>.<mean>].<check> */
static bool next_run(struct slice *refs, struct run *out)
{
	struct slice rest = next_token(refs);
	struct stored_totals *t = &out->totals;

	*t = (struct stored_totals){ 0 };
	if (!rest.n)
		return false;
	rest = slice_skip(rest, 1);
	return stored_take(&rest, ID_SIZE, &out->id) && is_id(out->id, "ti") &&
		stored_number(&rest, '.', &t->tables) && stored_number(&rest, '.', &t->entries) &&
		stored_number(&rest, '.', &t->removals) && stored_number(&rest, '.', &t->bytes) &&
		take_dates(&rest, t) && stored_check(&rest, &out->check) && rest.n == 0;
}

/* --- items --- */

static struct memcached_item *find_base(struct view *v)
{
	snprintf(v->item, sizeof(v->item), "s%d", v->key);
	return world_find(v->w, slice_of(v->item, SIM_KEY_SIZE));
}

/* The value of an item, or the value before it was lost. Returns false if it was never written. */
static bool find_item(struct view *v, struct slice id, struct slice *data)
{
	struct slice key = slice_of(v->item,
		(size_t)snprintf(v->item, sizeof(v->item), "s%d.%.*s", v->key, (int)id.n, id.p));
	struct memcached_item *item = world_find(v->w, key);
	const struct stored_sets *all = v->w->stored;

	if (item)
		*data = buf_slice(&item->value);
	for (size_t i = all ? all->count : 0; !item && i-- > 0;) {
		if (!slice_equal(buf_slice(&all->list[i].key), key))
			continue;
		*data = buf_slice(&all->list[i].value);
		return v->lost = true;
	}
	return item;
}

static bool open_item(struct view *v, struct slice id, uint64_t check, struct slice *data)
{
	if (!find_item(v, id, data))
		return wrong(v, "an item is referred to that was never written");
	return XXH64(data->p, data->n, 0) == check ||
		wrong(v, "an item is another than its check says");
}

void stored_set_written(struct world *w, struct slice item, struct slice value)
{
	struct stored_sets *all = w->stored ? w->stored : xcalloc(1, sizeof(*all));
	struct written *new;

	w->stored = all;
	if (all->count == all->capacity) {
		all->capacity = all->capacity ? all->capacity * 2 : 64;
		all->list = xrealloc(all->list, all->capacity * sizeof(*all->list));
	}
	new = &all->list[all->count++];
	*new = (struct written){ BUF_EMPTY, BUF_EMPTY };
	buf_add_slice(&new->key, item);
	buf_add_slice(&new->value, value);
}

void stored_set_fini(struct world *w)
{
	for (size_t i = 0; w->stored && i < w->stored->count; i++) {
		buf_free(&w->stored->list[i].key);
		buf_free(&w->stored->list[i].value);
	}
	if (w->stored)
		free(w->stored->list);
	free(w->stored);
	w->stored = NULL;
}

static bool say(struct view *v, struct slice name, bool removed, uint32_t date)
{
	int member = truth_member(wording_name(name, false));

	if (member < 0)
		return wrong(v, "a member that nobody named");
	if (v->words)
		v->words[member] = removed ? -1 : 1;
	else
		v->members[member] = !removed;
	v->dates[member] = date;
	return true;
}

uint32_t stored_take_date(struct slice *word)
{
	struct slice digits;
	uint64_t date = 0;

	if (word->n <= DATE_SIZE || word->p[word->n - DATE_SIZE] != 2)
		return 0;
	digits = slice_skip(*word, word->n - DATE_SIZE + 1);
	for (size_t i = 0; i < digits.n; i++) {
		if (digits.p[i] < '0' || digits.p[i] > '9')
			return 0;
		date = date * 10 + (uint64_t)(digits.p[i] - '0');
	}
	if (date > UINT32_MAX)
		return 0;
	word->n -= date ? DATE_SIZE : 0;
	return (uint32_t)date;
}

static bool read_log(struct view *v, struct slice log)
{
	while (log.n) {
		struct slice token = next_token(&log), word;
		uint32_t date;
		if (slice_starts(token, SLICE("~t")))
			continue;
		if (token.n < 2 || (token.p[0] != '+' && token.p[0] != '-'))
			return wrong(v, "a log that is none");
		word = slice_skip(token, 1);
		date = stored_take_date(&word);
		if (date && token.p[0] == '-')
			return wrong(v, "a removal with a date");
		if (!say(v, word, token.p[0] == '-', date))
			return false;
	}
	return true;
}

/* --- tables --- */

struct place {
	struct view *v;
	const struct fence *fence, *next;
};

static bool take_entry(void *arg, struct slice member, bool removed, uint32_t date)
{
	const struct place *place = arg;
	struct view *v = place->v;

	if (!say(v, member, removed, date))
		return false;
	if (!v->wide && (date || !wording_is_narrow(member)))
		return wrong(v, "a table of form 3, and a base of form 1");
	if (place->fence && stored_compare(member, place->fence->first) < 0)
		return wrong(v, "a member is below the fence of its table");
	if (place->next && stored_compare(member, place->next->first) >= 0)
		return wrong(v, "a member is not below the next fence");
	return true;
}

/* The members must be from the fence on and below the next one, if there is one. */
static bool read_table(struct view *v, struct slice data, const struct fence *fence,
	const struct fence *next, struct stored_totals *found)
{
	struct place place = { v, fence, next };
	const char *what;

	if (!v->wide && slice_starts(data, SLICE("T2")))
		return wrong(v, "a packed table, and a base of form 1");
	what = stored_table_read(data, found, take_entry, &place);
	return !what || (*what && wrong(v, what));
}

/* --- indexes --- */

static bool next_fence(struct slice *rest, struct fence *out)
{
	struct slice check;
	uint64_t size;

	out->totals.tables = 1;
	if (!stored_take(rest, ID_SIZE, &out->id) || !is_id(out->id, "t") ||
		!stored_take(rest, 8, &check))
		return false;
	out->check = stored_little(check.p, 8);
	return stored_take_varint(rest, &out->totals.bytes) &&
		stored_take_varint(rest, &out->totals.entries) &&
		stored_take_varint(rest, &out->totals.removals) &&
		stored_take_varint(rest, &size) && stored_take(rest, size, &out->first);
}

/* Moves the dates of an index, if it has any, from its end to `dates`. */
static bool begin_index(struct slice *rest, struct slice *dates)
{
	enum { NUMBER = 4, DATES = 3 * NUMBER };
	struct slice mark;
	size_t n;

	*dates = slice_of(rest->p, 0);
	if (!stored_take(rest, 2, &mark))
		return false;
	if (!slice_equal(mark, SLICE("I2")))
		return slice_equal(mark, SLICE("I1"));
	if (rest->n < NUMBER)
		return false;
	n = stored_little(rest->p + rest->n - NUMBER, NUMBER);
	if (n > (rest->n - NUMBER) / DATES)
		return false;
	rest->n -= n * DATES + NUMBER;
	*dates = slice_of(rest->p + rest->n, n * DATES);
	return true;
}

/* Reads the dates of the next table. The first one may be too early. */
static bool take_fence_dates(struct slice *dates, struct stored_totals *out)
{
	struct slice numbers;

	if (!stored_take(dates, 12, &numbers))
		return false;
	out->dated = stored_little(numbers.p, 4);
	out->first = stored_little(numbers.p + 4, 4);
	out->mean = stored_little(numbers.p + 8, 4);
	return true;
}

static bool read_fenced(struct view *v, const struct fence *fence, const struct fence *next,
	struct stored_totals *run, uint64_t *date_sum)
{
	struct stored_totals found;
	struct slice data;

	if (!open_item(v, fence->id, fence->check, &data) ||
		!read_table(v, data, fence, next, &found))
		return false;
	if (fence->totals.first > found.first)
		return wrong(v, "a date before the first one of its index");
	found.first = fence->totals.first;
	if (memcmp(&found, &fence->totals, sizeof(found)) != 0)
		return wrong(v, "a table is another than its index says");
	run->dated += found.dated;
	*date_sum += found.dated * found.mean;
	run->tables++;
	run->entries += found.entries;
	run->removals += found.removals;
	run->bytes += found.bytes;
	return true;
}

static bool next_dated_fence(struct slice *rest, struct slice *dates, bool dated, struct fence *out)
{
	out->totals = (struct stored_totals){ 0 };
	return next_fence(rest, out) && (!dated || take_fence_dates(dates, &out->totals));
}

static bool read_index(struct view *v, struct slice data, struct stored_totals *found)
{
	struct fence fence, next = { .first = { "", 0 } };
	struct slice dates;
	bool more = begin_index(&data, &dates), dated = dates.n;
	uint64_t date_sum = 0;

	*found = (struct stored_totals){ 0 };
	if (!more || !next_dated_fence(&data, &dates, dated, &next))
		return wrong(v, "an index that is none");
	if (next.first.n)
		return wrong(v, "the first fence of an index is not empty");
	while (more) {
		fence = next;
		more = data.n > 0;
		if (more && !next_dated_fence(&data, &dates, dated, &next))
			return wrong(v, "an index that ends with no fence");
		if (more && stored_compare(fence.first, next.first) >= 0)
			return wrong(v, "fences are out of order");
		if (!read_fenced(v, &fence, more ? &next : NULL, found, &date_sum))
			return false;
	}
	if (dates.n || dated != (found->dated > 0))
		return wrong(v, "an index with dates of other tables");
	found->mean = found->dated ? date_sum / found->dated : 0;
	return found->tables > 1 || wrong(v, "an index of one table");
}

/* --- the set --- */

static bool read_run(struct view *v, const struct run *run)
{
	struct stored_totals found;
	struct slice data;

	if (!open_item(v, run->id, run->check, &data))
		return false;
	if (run->id.p[0] == 'i' ? !read_index(v, data, &found)
				: !read_table(v, data, NULL, NULL, &found))
		return false;
	found.first = 0;
	find_item(v, run->id, &data);
	return memcmp(&found, &run->totals, sizeof(found)) == 0 ||
		wrong(v, "a run is another than its reference says");
}

static bool read_runs(struct view *v, struct slice refs)
{
	struct run run;

	while (refs.n) {
		find_base(v);
		if (!next_run(&refs, &run))
			return wrong(v, "a reference that is none");
		if (!read_run(v, &run))
			return false;
	}
	find_base(v);
	return true;
}

static bool read_base(struct view *v, struct slice base)
{
	struct parts parts;

	if (!split(base, &parts))
		return wrong(v, "a block that is none of a set");
	v->wide = parts.wide;
	return read_log(v, parts.head) && read_runs(v, parts.refs) && read_log(v, parts.log);
}

bool stored_lease_is(struct slice base)
{
	struct parts parts;

	return split(base, &parts) && parts.loading;
}

bool stored_set_lease(struct world *w, int key, struct stored_lease *out)
{
	struct view words = { .w = w, .key = key, .words = out->words, .dates = out->word_dates },
		    loaded = { .w = w, .key = key, .dates = out->loaded_dates };
	struct memcached_item *base = find_base(&words);
	struct parts parts;

	if (!base || !split(buf_slice(&base->value), &parts) || !parts.loading)
		return false;
	*out = (struct stored_lease){ .deadline = parts.deadline };
	memcpy(out->token, parts.token.p, STORED_TOKEN);
	loaded.members = out->loaded;
	loaded.wide = words.wide = parts.wide;
	return read_log(&words, parts.head) && read_runs(&words, parts.refs) &&
		read_log(&words, parts.log) && read_runs(&loaded, parts.loaded);
}

enum stored_state stored_set_read(
	struct world *w, int key, bool members[SIM_MEMBERS], uint32_t dates[SIM_MEMBERS])
{
	struct view v = { .w = w, .key = key, .members = members, .dates = dates };
	struct memcached_item *base = find_base(&v);

	memset(members, 0, SIM_MEMBERS * sizeof(*members));
	memset(dates, 0, SIM_MEMBERS * sizeof(*dates));
	if (base && stored_lease_is(buf_slice(&base->value)))
		return STORED_LOADING;
	if (!base || !read_base(&v, buf_slice(&base->value)))
		return STORED_MISSING;
	return v.lost ? STORED_LOST : STORED_WHOLE;
}

static void add_key(struct view *v, struct slice id, struct buf *out)
{
	buf_printf(out, "s%d.%.*s ", v->key, (int)id.n, id.p);
}

static void add_items(struct view *v, struct slice refs, struct buf *out)
{
	struct slice index, dates;
	struct run run;
	struct fence fence;

	while (next_run(&refs, &run)) {
		add_key(v, run.id, out);
		if (run.id.p[0] != 'i' || !find_item(v, run.id, &index) ||
			!begin_index(&index, &dates))
			continue;
		while (next_fence(&index, &fence))
			add_key(v, fence.id, out);
	}
}

void stored_set_items(struct world *w, int key, struct buf *out)
{
	struct view v = { .w = w, .key = key };
	struct memcached_item *base = find_base(&v);
	struct parts parts;

	if (!base || !split(buf_slice(&base->value), &parts))
		return;
	add_items(&v, parts.refs, out);
	add_items(&v, parts.loaded, out);
}

bool stored_set_refers(struct world *w, struct slice item)
{
	struct buf items = BUF_EMPTY;
	struct slice rest, token;
	bool found = false;

	stored_set_items(w, item.p[1] - '0', &items);
	rest = buf_slice(&items);
	while (!found && (token = next_token(&rest)).n)
		found = slice_equal(token, item);
	buf_free(&items);
	return found;
}
