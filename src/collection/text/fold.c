#include "collection/text/fold.h"

#include <assert.h>
#include <stdlib.h>

#include "collection/text/oplog.h"
#include "collection/text/table.h"
#include "protocol/element.h"
#include "util/alloc.h"
#include "util/hash.h"
#include "util/heap.h"

/* MOVED: slots moved to a new table for each new member; at least 2, since a table is half full. */
enum { SLOTS_MIN = 64, MEMBERS_MIN = 32, MOVED = 4, MANY = 64 * 1024 /* slots */ };

/*
 * Half of the hash, and the member's index plus one. The position of a slot depends only on
 * this half, so hashes are not computed again when the table grows. It also avoids most
 * comparisons of members.
 */
struct fold_slot {
	uint32_t hash, index;
};

static void drop_old(struct fold *f)
{
	free(f->old);
	f->old = NULL;
	f->old_count = f->moved = 0;
}

static void free_slots(struct fold *f)
{
	drop_old(f);
	free(f->slots);
	f->slots = NULL;
	f->slot_count = 0;
}

void fold_reset(struct fold *f)
{
	drop_old(f);
	/* New memory is cheaper than clearing so many slots. */
	if (f->slot_count > MANY)
		free_slots(f);
	else if (f->slots && f->member_count)
		memset(f->slots, 0, f->slot_count * sizeof(*f->slots));
	f->member_count = f->live = f->live_bytes = f->all_bytes = f->tokens = f->bytes = 0;
	f->left = 0;
	f->dated = 0;
	f->has_long = false;
}

void fold_free(struct fold *f)
{
	free(f->members);
	free_slots(f);
	*f = (struct fold){ .seed = f->seed };
}

/* Moves the next `n` slots of the old table to the new one. */
static void move_slots(struct fold *f, size_t n)
{
	for (; n && f->moved < f->old_count; n--, f->moved++) {
		const struct fold_slot *old = &f->old[f->moved];
		size_t at = old->hash & (f->slot_count - 1);
		if (!old->index)
			continue;
		while (f->slots[at].index)
			at = (at + 1) & (f->slot_count - 1);
		f->slots[at] = *old;
	}
	if (f->moved == f->old_count)
		drop_old(f);
}

/*
 * Returns the size of the next array, after one of `size` bytes. A block of some MB would be
 * cleared, or copied when it grows, which takes long; the system clears a larger block page by
 * page, as it is used, and moves it without copying. See util/heap.h.
 */
static size_t grown(size_t size, bool skips)
{
	return skips && size >= HEAP_LARGE / 4 && size < HEAP_LARGE ? HEAP_LARGE : 2 * size;
}

/*
 * Enlarges the table. Moving a large one at once would take long, so new_member moves a few slots
 * for each new member, and all are moved before the table is full again.
 */
static void grow_slots(struct fold *f)
{
	enum { FEW = 4096 };

	assert(!f->old);
	if (!f->slot_count)
		f->secret = hash_secret_of(f->seed);
	f->old = f->slots;
	f->old_count = f->slot_count;
	f->slot_count = f->slot_count
		? grown(f->slot_count * sizeof(*f->slots), true) / sizeof(*f->slots)
		: SLOTS_MIN;
	f->slots = xcalloc(f->slot_count, sizeof(*f->slots));
	if (f->old_count <= FEW)
		move_slots(f, FEW);
}

/* Returns the slot of a member in a table, or the empty slot for it. Requires an empty slot. */
static struct fold_slot *find_in(const struct fold *f, struct fold_slot *slots, size_t count,
	const char *p, size_t n, uint32_t hash)
{
	size_t at = hash & (count - 1);

	for (;; at = (at + 1) & (count - 1)) {
		struct fold_slot *slot = &slots[at];
		if (!slot->index)
			return slot;
		const struct fold_member *m = &f->members[slot->index - 1];
		if (slot->hash == hash && m->n == n && word_compare(m->p, p, n) == 0)
			return slot;
	}
}

/* Returns the slot of a member, or the empty slot for it. */
static inline struct fold_slot *find_slot(
	const struct fold *f, const char *p, size_t n, uint32_t hash)
{
	struct fold_slot *slot = find_in(f, f->slots, f->slot_count, p, n, hash), *old;

	if (slot->index || !f->old)
		return slot;
	old = find_in(f, f->old, f->old_count, p, n, hash);
	return old->index ? old : slot;
}

/* Takes much memory at once only if most of the log is still to be read. */
static void grow_members(struct fold *f)
{
	size_t size = f->member_capacity * sizeof(*f->members);

	f->member_capacity =
		size ? grown(size, f->left > f->bytes) / sizeof(*f->members) : MEMBERS_MIN;
	f->members = xrealloc(f->members, f->member_capacity * sizeof(*f->members));
}

static void new_member(
	struct fold *f, struct fold_slot *slot, const char *p, size_t n, uint32_t hash)
{
	if (f->member_count == f->member_capacity)
		grow_members(f);
	f->members[f->member_count++] = (struct fold_member){ .p = p, .n = (uint32_t)n };
	f->all_bytes += n;
	*slot = (struct fold_slot){ hash, (uint32_t)f->member_count };
	if (f->old)
		move_slots(f, MOVED);
}

/* A removal is kept as a member too: it overrides an addition in an older layer. */
static struct fold_member *note(struct fold *f, const char *p, size_t n)
{
	if (f->member_count * 2 >= f->slot_count)
		grow_slots(f);
	uint32_t hash = (uint32_t)hash_member(slice_of(p, n), &f->secret);
	struct fold_slot *slot = find_slot(f, p, n, hash);
	if (!slot->index)
		new_member(f, slot, p, n, hash);
	return &f->members[slot->index - 1];
}

static void set_live(struct fold *f, struct fold_member *m, bool live)
{
	f->dated -= m->dated;
	m->dated = false;
	if (m->live == live)
		return;
	m->live = live;
	f->live = live ? f->live + 1 : f->live - 1;
	f->live_bytes = live ? f->live_bytes + m->n : f->live_bytes - m->n;
}

size_t fold_note(struct fold *f, struct slice member)
{
	return (size_t)(note(f, member.p, member.n) - f->members);
}

void fold_set(struct fold *f, size_t i, bool live)
{
	set_live(f, &f->members[i], live);
}

void fold_add(struct fold *f, struct slice member)
{
	set_live(f, note(f, member.p, member.n), true);
}

void fold_remove(struct fold *f, struct slice member)
{
	set_live(f, note(f, member.p, member.n), false);
}

void fold_rebase(struct fold *f, const char *from, const char *to)
{
	for (size_t i = 0; i < f->member_count; i++)
		f->members[i].p = to + (f->members[i].p - from);
}

bool fold_take_encoded(struct fold *f, struct slice log)
{
	const char *p = log.p;

	if (log.n != fold_log_size(f, true))
		return false;
	/* The tokens have the order of the members. */
	for (size_t i = 0; i < f->member_count; i++) {
		f->members[i].p = p + 1;
		p += f->members[i].n + 2 + (f->members[i].dated ? EXPIRY_SIZE : 0);
	}
	f->tokens = f->member_count;
	f->bytes = log.n;
	return true;
}

size_t fold_memory(const struct fold *f)
{
	return f->member_capacity * sizeof(*f->members) +
		(f->slot_count + f->old_count) * sizeof(*f->slots);
}

static bool takes_word(struct fold *f, size_t n)
{
	if (n <= MEMBER_WORD_MAX)
		return true;
	f->has_long = true;
	return f->takes_long && n <= ELEMENT_WORD_MAX;
}

/* Reads a word with a date. Returns its end, or NULL. It is apart because few logs have any. */
static __attribute__((noinline)) const char *add_dated(
	struct fold *f, const char *word, const char *end)
{
	struct fold_member *m;
	uint32_t date;
	size_t n;

	end = expiry_word_end(word, end, &n);
	if (!end || !takes_word(f, n))
		return NULL;
	m = note(f, word, n);
	set_live(f, m, true);
	m->p = word;
	m->dated = true;
	date = fold_date(m);
	if (f->dated++ == 0 || date < f->first_date)
		f->first_date = date;
	return end;
}

bool fold_log(struct fold *f, struct slice log)
{
	const char *p = log.p, *end = log.p + log.n;

	f->bytes += log.n;
	while (p < end) {
		bool add = *p == '+';
		const char *member = ++p;

		if (!add && p[-1] != '-') {
			p = oplog_extra_end(p - 1, end);
			if (!p)
				return false;
			continue;
		}
		p = element_word_end(p, end);
		if (p && p < end && takes_word(f, (size_t)(p - member)))
			set_live(f, note(f, member, (size_t)(p - member)), add);
		else if (p || !add || !(p = add_dated(f, member, end)))
			return false;
		f->tokens++;
		p++;
	}
	return true;
}

bool fold_expire(struct fold *f, int64_t now)
{
	uint32_t first = UINT32_MAX;
	size_t dated = f->dated;

	if (!dated || f->first_date > now)
		return false;
	for (size_t i = 0; i < f->member_count; i++) {
		struct fold_member *m = &f->members[i];
		uint32_t date = fold_date(m);
		if (expiry_is_past(date, now))
			set_live(f, m, false);
		else if (date && date < first)
			first = date;
	}
	f->first_date = first;
	return f->dated < dated;
}

/*
 * Returns whether a large table is new, or may be replaced by a new one for the next members: each
 * of them may then be in another page. On a virtual machine, the first access to a page can take
 * as long as many members.
 */
static bool has_new_table(const struct fold *f, size_t bytes)
{
	return f->old || (f->slot_count > MANY && 2 * f->member_count + bytes > f->slot_count);
}

bool fold_portion(struct fold *f, struct slice *rest)
{
	enum { BYTES = 16 * 1024, OF_NEW_TABLE = 2 * 1024 };
	bool is_new = has_new_table(f, BYTES);
	struct slice portion = slice_portion(rest, is_new ? OF_NEW_TABLE : BYTES, ' ');

	f->left = rest->n;
	return fold_log(f, portion);
}

bool fold_find(const struct fold *f, struct slice member, size_t *i)
{
	const struct fold_slot *slot;

	if (!f->slot_count)
		return false;
	slot = find_slot(f, member.p, member.n, (uint32_t)hash_member(member, &f->secret));
	*i = (size_t)slot->index - 1;
	return slot->index != 0;
}

bool fold_mentions(const struct fold *f, struct slice member, bool *live)
{
	size_t i;

	if (!fold_find(f, member, &i))
		return false;
	*live = f->members[i].live;
	return true;
}

bool fold_mentions_hashed(const struct fold *f, struct slice member, uint64_t hash, bool *live)
{
	const struct fold_slot *slot;

	if (!f->slot_count)
		return false;
	slot = find_slot(f, member.p, member.n, (uint32_t)hash);
	if (!slot->index)
		return false;
	*live = f->members[slot->index - 1].live;
	return true;
}

bool fold_contains(const struct fold *f, struct slice member)
{
	bool live = false;

	return fold_mentions(f, member, &live) && live;
}

size_t fold_joined_size(const struct fold *f)
{
	return f->live ? f->live_bytes + f->live - 1 : 0;
}

/*
 * Writes each live member, or all members, from `i` to `end`, followed by a space and, if `sign`,
 * preceded by its sign. Returns the end of the text.
 */
static char *write_fold(const struct fold *f, size_t i, size_t end, char *p, bool sign, bool all)
{
	for (; i < end; i++) {
		const struct fold_member *m = &f->members[i];
		if (!m->live && !all)
			continue;
		if (sign)
			*p++ = m->live ? '+' : '-';
		memcpy(p, m->p, m->n);
		p += m->n;
		if (m->dated && sign) {
			memcpy(p, m->p + m->n, EXPIRY_SIZE);
			p += EXPIRY_SIZE;
		}
		*p++ = ' ';
	}
	return p;
}

bool fold_join_portion(const struct fold *f, size_t *at, struct buf *out)
{
	size_t left = f->member_count - *at, joined = fold_joined_size(f);
	size_t end = *at + (left < FOLD_JOINED ? left : FOLD_JOINED);
	/* One more byte is written than kept: the space after the last member. */
	char *p = buf_reserve(out, *at ? 0 : joined + 1), *start = p;

	p = write_fold(f, *at, end, p, false, false);
	*at = end;
	buf_commit(out, (size_t)(p - start));
	if (end < f->member_count)
		return false;
	out->end -= joined > 0;
	return true;
}

void fold_join(const struct fold *f, struct buf *out)
{
	size_t at = 0;

	while (!fold_join_portion(f, &at, out))
		;
}

size_t fold_log_size(const struct fold *f, bool removals)
{
	size_t names = removals ? f->all_bytes + 2 * f->member_count : f->live_bytes + 2 * f->live;

	return names + f->dated * EXPIRY_SIZE;
}

void fold_encode(const struct fold *f, bool removals, struct buf *out)
{
	(void)write_fold(f, 0, f->member_count, buf_reserve(out, fold_log_size(f, removals)), true,
		removals);
	buf_commit(out, fold_log_size(f, removals));
}
