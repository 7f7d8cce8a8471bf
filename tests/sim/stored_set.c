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

#include "util/alloc.h"
#include "wording.h"
#include "world.h"

/* A packed table has digits for up to PACKED_SIZE bytes of a member. */
enum { PACKED_SIZE = 128 };
enum { ID_SIZE = 12, NAME_SIZE = 2000, INTERVAL = 16, CHECK_DIGITS = 16 };

/* A look at a set. */
struct view {
	struct world *w;
	int key;
	bool *members;
	signed char *words; /* if this is not NULL, violations are written here */
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

/* The expected properties of a run or of a table, or those found. */
struct totals {
	uint64_t tables, entries, removals, bytes;
};

struct run {
	struct slice id;
	struct totals totals;
	uint64_t check;
};

struct fence {
	struct slice id, first;
	struct totals totals;
	uint64_t check;
};

struct entry {
	char name[NAME_SIZE];
	size_t size;
	bool removed;
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

static bool take(struct slice *rest, size_t n, struct slice *out)
{
	if (n > rest->n)
		return false;
	*out = slice_of(rest->p, n);
	*rest = slice_skip(*rest, n);
	return true;
}

static uint64_t little(const char *p, int bytes)
{
	uint64_t value = 0;

	for (int i = 0; i < bytes; i++)
		value |= (uint64_t)(unsigned char)p[i] << (8 * i);
	return value;
}

/* Of 32 bits at most, and in as few bytes as possible. */
static bool take_varint(struct slice *rest, uint64_t *out)
{
	struct slice byte;

	*out = 0;
	for (int shift = 0; shift < 35 && take(rest, 1, &byte); shift += 7) {
		*out |= (uint64_t)(byte.p[0] & 0x7f) << shift;
		if (!(byte.p[0] & 0x80))
			return *out <= UINT32_MAX && (byte.p[0] || shift == 0);
	}
	return false;
}

static int compare(struct slice a, struct slice b)
{
	for (size_t i = 0; i < a.n && i < b.n; i++) {
		if (a.p[i] != b.p[i])
			return (unsigned char)a.p[i] - (unsigned char)b.p[i];
	}
	return a.n < b.n ? -1 : a.n > b.n;
}

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
	if (!take(rest, 1 + CHECK_DIGITS, &digits) || digits.p[0] != '.')
		return false;
	for (size_t i = 1; i < digits.n; i++) {
		const char *digit = memchr(all, digits.p[i], sizeof(all) - 1);
		if (!digit)
			return false;
		*out = *out << 4 | (uint64_t)(digit - all);
	}
	return true;
}

/* @<id>.<tables>.<entries>.<removals>.<bytes>.<check> */
static bool next_run(struct slice *refs, struct run *out)
{
	struct slice rest = next_token(refs);
	struct totals *t = &out->totals;

	if (!rest.n)
		return false;
	rest = slice_skip(rest, 1);
	return take(&rest, ID_SIZE, &out->id) && is_id(out->id, "ti") &&
		stored_number(&rest, '.', &t->tables) && stored_number(&rest, '.', &t->entries) &&
		stored_number(&rest, '.', &t->removals) && stored_number(&rest, '.', &t->bytes) &&
		stored_check(&rest, &out->check) && rest.n == 0;
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

static bool say(struct view *v, struct slice name, bool removed)
{
	int member = truth_member(wording_name(name, false));

	if (member < 0)
		return wrong(v, "a member that nobody named");
	if (v->words)
		v->words[member] = removed ? -1 : 1;
	else
		v->members[member] = !removed;
	return true;
}

static bool read_log(struct view *v, struct slice log)
{
	while (log.n) {
		struct slice token = next_token(&log);
		if (slice_starts(token, SLICE("~t")))
			continue;
		if (token.n < 2 || (token.p[0] != '+' && token.p[0] != '-'))
			return wrong(v, "a log that is none");
		if (!say(v, slice_skip(token, 1), token.p[0] == '-'))
			return false;
	}
	return true;
}

/* --- tables --- */

static struct slice name_of(const struct entry *e)
{
	return slice_of(e->name, e->size);
}

/* Reads the entry that follows `e`; a restart shares nothing with it. */
static bool next_entry(struct view *v, struct slice *rest, bool restart, struct entry *e)
{
	struct entry before = *e;
	uint64_t shared, size;
	struct slice bytes;

	if (!take_varint(rest, &shared) || !take_varint(rest, &size) ||
		!take(rest, size >> 1, &bytes))
		return wrong(v, "an entry that is none");
	if (shared > (restart ? 0 : before.size))
		return wrong(v, "an entry shares more than there is");
	if (shared + bytes.n > NAME_SIZE)
		return wrong(v, "a member is too long");
	memcpy(e->name + shared, bytes.p, bytes.n);
	e->size = shared + bytes.n;
	e->removed = size & 1;
	if (compare(name_of(e), name_of(&before)) <= 0)
		return wrong(v, "members of a table are out of order");
	if (!restart && shared < before.size && e->name[shared] == before.name[shared])
		return wrong(v, "an entry repeats what it could share");
	return true;
}

/* Checks an entry, and adds it to what is known of the set. */
static bool take_entry(struct view *v, const struct entry *e, const struct fence *fence,
	const struct fence *next, struct totals *found)
{
	if (!say(v, name_of(e), e->removed))
		return false;
	if (!v->wide && !wording_is_narrow(name_of(e)))
		return wrong(v, "a table of form 3, and a base of form 1");
	found->removals += e->removed;
	if (fence && compare(name_of(e), fence->first) < 0)
		return wrong(v, "a member is below the fence of its table");
	if (next && compare(name_of(e), next->first) >= 0)
		return wrong(v, "a member is not below the next fence");
	return true;
}

/* --- packed tables; one bit after the other, and digits by division --- */

struct packed {
	const unsigned char *bytes;
	size_t bit, bits;
	uint64_t removals, rate, count, size, shortest, longest;
	struct slice letters;
	/* Of each position: its letters, of which the first may be 0, the end. */
	unsigned char digits[PACKED_SIZE][256];
	unsigned radix[PACKED_SIZE];
	size_t number; /* the positions of the number */
};

static uint64_t take_bits(struct packed *p, unsigned n)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < n && p->bit < p->bits; i++, p->bit++)
		value |= (uint64_t)(p->bytes[p->bit / 8] >> p->bit % 8 & 1) << i;
	return value;
}

static bool take_packed_head(struct packed *p, struct slice rest)
{
	struct slice two, three;

	if (!take(&rest, 2, &two) || !take(&rest, 2, &two) || !take_varint(&rest, &p->count) ||
		!take_varint(&rest, &p->size) || !take(&rest, 3, &three) ||
		!take(&rest, (unsigned char)three.p[2], &p->letters))
		return false;
	p->removals = (unsigned char)two.p[0];
	p->rate = (unsigned char)two.p[1];
	p->shortest = (unsigned char)three.p[0];
	p->longest = (unsigned char)three.p[1];
	p->bytes = (const unsigned char *)rest.p;
	p->bits = rest.n * 8;
	return p->removals <= 1 && p->rate < 62 && p->count && p->shortest &&
		p->shortest <= p->longest && p->longest <= PACKED_SIZE;
}

static void take_digits(struct packed *p)
{
	uint64_t numbers = 1;
	bool more = true;

	for (size_t at = 0; at < p->longest; at++) {
		if (at >= p->shortest)
			p->digits[at][p->radix[at]++] = 0;
		for (size_t i = 0; i < p->letters.n; i++) {
			if (take_bits(p, 1))
				p->digits[at][p->radix[at]++] = (unsigned char)p->letters.p[i];
		}
		more = more && p->radix[at] && numbers <= (1ull << 62) / p->radix[at];
		numbers *= more ? p->radix[at] : 1;
		p->number += more;
	}
}

static uint64_t take_gap(struct packed *p)
{
	unsigned n = (unsigned)p->rate;

	while (n < 62 && take_bits(p, 1))
		n++;
	return (1ull << n) + take_bits(p, n) - (1ull << p->rate);
}

/* The letters of a number, from its last digit on. */
static void spell(const struct packed *p, uint64_t number, char name[NAME_SIZE])
{
	for (size_t at = p->number; at-- > 0; number /= p->radix[at])
		name[at] = (char)p->digits[at][number % p->radix[at]];
}

/* The letters after the number. Of a position with one letter nothing is stored. */
static void take_tail(struct packed *p, char name[NAME_SIZE])
{
	for (size_t at = p->number; at < p->longest; at++) {
		unsigned n = 0;
		uint64_t digit;

		if (at > p->shortest && name[at - 1] == 0) {
			name[at] = 0;
			continue;
		}
		while (1u << n < p->radix[at])
			n++;
		digit = take_bits(p, n);
		name[at] = (char)(digit < p->radix[at] ? p->digits[at][digit] : ' ');
	}
}

/* Returns the bytes that the entry takes in a table that is not packed. */
static size_t front_coded(const struct entry *before, const struct entry *e, bool restart)
{
	size_t shared = 0;

	while (!restart && shared < before->size && before->name[shared] == e->name[shared])
		shared++;
	return 2 + (e->size - shared >= 64) + e->size - shared + (restart ? 4 : 0);
}

static bool read_packed(struct view *v, struct slice data, const struct fence *fence,
	const struct fence *next, struct totals *found)
{
	struct packed p = { .number = 0 };
	struct entry before = { .size = 0 }, e = before;
	uint64_t number = 0;
	bool tails;

	if (!v->wide)
		return wrong(v, "a packed table, and a base of form 1");
	if (!take_packed_head(&p, data))
		return wrong(v, "a packed table that is none");
	take_digits(&p);
	tails = p.number < p.longest;
	*found = (struct totals){ .tables = 1, .entries = p.count, .bytes = 2 + 4 };
	for (uint64_t i = 0; i < p.count; i++, before = e) {
		e.removed = p.removals && take_bits(&p, 1);
		number += take_gap(&p) + (i && !tails);
		spell(&p, number, e.name);
		take_tail(&p, e.name);
		for (e.size = 0; e.size < p.longest && e.name[e.size]; e.size++)
			;
		found->bytes += front_coded(&before, &e, i % INTERVAL == 0);
		if (compare(name_of(&e), name_of(&before)) <= 0)
			return wrong(v, "members of a packed table are out of order");
		if (!take_entry(v, &e, fence, next, found))
			return false;
	}
	return (p.bits - p.bit < 8 && found->bytes == p.size) ||
		wrong(v, "a packed table of another size");
}

bool stored_lose_removal(struct slice table)
{
	struct packed p = { .number = 0 };
	char name[NAME_SIZE];
	uint64_t number = 0;

	if (!slice_starts(table, SLICE("T2")) || !take_packed_head(&p, table) || !p.removals)
		return false;
	take_digits(&p);
	for (uint64_t i = 0; i < p.count; i++) {
		size_t bit = p.bit;

		if (take_bits(&p, 1)) {
			((unsigned char *)p.bytes)[bit / 8] ^= (unsigned char)(1u << bit % 8);
			return true;
		}
		number += take_gap(&p) + (i && p.number == p.longest);
		spell(&p, number, name);
		take_tail(&p, name);
	}
	return false;
}

/*
 * The content must be the entries and nothing else, from the fence on and below the next one, if
 * there is one.
 */
static bool read_table(struct view *v, struct slice data, const struct fence *fence,
	const struct fence *next, struct totals *found)
{
	struct entry e = { .size = 0 };
	uint64_t count = data.n < 6 ? 0 : little(data.p + data.n - 4, 4),
		 behind = (count + INTERVAL - 1) / INTERVAL * 4 + 4;
	struct slice rest = data, restarts;

	if (slice_starts(data, SLICE("T2")))
		return read_packed(v, data, fence, next, found);
	if (count == 0 || memcmp(data.p, "T1", 2) != 0 || behind + 2 > data.n)
		return wrong(v, "a table that is none");
	restarts = slice_skip(data, data.n - behind);
	rest = slice_of(data.p + 2, data.n - behind - 2);
	*found = (struct totals){ .tables = 1, .entries = count, .bytes = data.n };
	for (uint64_t i = 0; i < count; i++) {
		bool restart = i % INTERVAL == 0;
		if (restart &&
			little(restarts.p + i / INTERVAL * 4, 4) != (uint64_t)(rest.p - data.p))
			return wrong(v, "a restart is not where its entry is");
		if (!next_entry(v, &rest, restart, &e) || !take_entry(v, &e, fence, next, found))
			return false;
	}
	return rest.n == 0 || wrong(v, "there is more in a table than its entries");
}

/* --- indexes --- */

static bool next_fence(struct slice *rest, struct fence *out)
{
	struct slice check;
	uint64_t size;

	out->totals.tables = 1;
	if (!take(rest, ID_SIZE, &out->id) || !is_id(out->id, "t") || !take(rest, 8, &check))
		return false;
	out->check = little(check.p, 8);
	return take_varint(rest, &out->totals.bytes) && take_varint(rest, &out->totals.entries) &&
		take_varint(rest, &out->totals.removals) && take_varint(rest, &size) &&
		take(rest, size, &out->first);
}

static bool begin_index(struct slice *rest)
{
	struct slice mark;

	return take(rest, 2, &mark) && slice_equal(mark, SLICE("I1"));
}

static bool read_fenced(
	struct view *v, const struct fence *fence, const struct fence *next, struct totals *run)
{
	struct totals found;
	struct slice data;

	if (!open_item(v, fence->id, fence->check, &data) ||
		!read_table(v, data, fence, next, &found))
		return false;
	if (memcmp(&found, &fence->totals, sizeof(found)) != 0)
		return wrong(v, "a table is another than its index says");
	run->tables++;
	run->entries += found.entries;
	run->removals += found.removals;
	run->bytes += found.bytes;
	return true;
}

static bool read_index(struct view *v, struct slice data, struct totals *found)
{
	struct fence fence, next = { .first = { "", 0 } };
	bool more = true;

	*found = (struct totals){ 0 };
	if (!begin_index(&data) || !next_fence(&data, &next))
		return wrong(v, "an index that is none");
	if (next.first.n)
		return wrong(v, "the first fence of an index is not empty");
	while (more) {
		fence = next;
		more = data.n > 0;
		if (more && !next_fence(&data, &next))
			return wrong(v, "an index that ends with no fence");
		if (more && compare(fence.first, next.first) >= 0)
			return wrong(v, "fences are out of order");
		if (!read_fenced(v, &fence, more ? &next : NULL, found))
			return false;
	}
	return found->tables > 1 || wrong(v, "an index of one table");
}

/* --- the set --- */

static bool read_run(struct view *v, const struct run *run)
{
	struct totals found;
	struct slice data;

	if (!open_item(v, run->id, run->check, &data))
		return false;
	if (run->id.p[0] == 'i' ? !read_index(v, data, &found)
				: !read_table(v, data, NULL, NULL, &found))
		return false;
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
	struct view words = { .w = w, .key = key, .words = out->words },
		    loaded = { .w = w, .key = key };
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

enum stored_state stored_set_read(struct world *w, int key, bool members[SIM_MEMBERS])
{
	struct view v = { .w = w, .key = key, .members = members };
	struct memcached_item *base = find_base(&v);

	memset(members, 0, SIM_MEMBERS * sizeof(*members));
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
	struct slice index;
	struct run run;
	struct fence fence;

	while (next_run(&refs, &run)) {
		add_key(v, run.id, out);
		if (run.id.p[0] != 'i' || !find_item(v, run.id, &index) || !begin_index(&index))
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
