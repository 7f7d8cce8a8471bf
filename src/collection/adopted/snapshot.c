#include "collection/adopted/snapshot.h"

#include <assert.h>
#include <stdlib.h>

#include "collection/ttl.h"
#include "util/alloc.h"
#include "util/hash.h"

struct snapshot_item *snapshot_add(struct snapshot *s, int role, struct slice before,
	struct slice middle, struct slice behind, bool asked)
{
	size_t n = before.n + middle.n + behind.n;
	struct snapshot_item *item;

	assert(n <= KEY_MAX);
	item = xcalloc(1, sizeof(*item));
	slice_write(slice_write(slice_write(item->key, before), middle), behind);
	item->waiter.key = slice_of(item->key, n);
	item->role = role;
	item->asked = asked;
	s->items = xrealloc(s->items, (s->count + 1) * sizeof(*s->items));
	s->items[s->count++] = item;
	return item;
}

struct snapshot_item *snapshot_find(const struct snapshot *s, int role)
{
	for (size_t i = 0; i < s->count; i++) {
		if (s->items[i]->role == role)
			return s->items[i];
	}
	return NULL;
}

void snapshot_free(struct snapshot *s)
{
	for (size_t i = 0; i < s->count; i++) {
		buf_free(&s->items[i]->value);
		free(s->items[i]);
	}
	free(s->items);
	s->items = NULL;
	s->count = 0;
	counted_free(&s->all);
	memset(&s->folding, 0, sizeof(s->folding));
	work_free(s);
}

size_t snapshot_memory(const struct snapshot *s)
{
	size_t bytes = fold_memory(&s->all.fold) + s->count * sizeof(**s->items);

	for (size_t i = 0; i < s->count; i++)
		bytes += s->items[i]->value.cap;
	return bytes;
}

struct slice snapshot_item_value(const struct snapshot_item *item)
{
	return buf_slice(&item->value);
}

/* --- work in slices --- */

/* The steps of work for reading `bytes` bytes of words. */
static size_t reading_steps(size_t bytes)
{
	enum { BYTES = 4 /* read in one step */ };

	return bytes / BYTES + 1;
}

bool snapshot_fold_some(
	const struct snapshot *s, struct counted *c, struct words *words, bool *good)
{
	size_t before = words->text.n;

	*good = words_fold(c, words);
	return snapshot_is_over(s, reading_steps(before - words->text.n));
}

/* Takes the next member from the source of a text. A word of a text is stored in `word`. */
static const struct fold_member *next_of(struct members_text *text, struct fold_member *word)
{
	struct slice member;

	if (text->fold)
		return text->written < text->fold->member_count
			? &text->fold->members[text->written++]
			: NULL;
	if (!words_next(&text->text, &member))
		return NULL;
	*word = (struct fold_member){ .p = member.p, .n = (uint32_t)member.n, .live = true };
	return word;
}

bool members_text_write(struct snapshot *s, struct members_text *text, struct buf *out)
{
	enum { BYTES = 64 /* written in one step */ };
	const struct fold_member *member;
	struct fold_member word;

	while (text->write && (member = next_of(text, &word))) {
		size_t before = buf_size(out);
		text->write(s, member, text->other, out);
		if (snapshot_is_over(s, 1 + (buf_size(out) - before) / BYTES))
			return false;
	}
	return true;
}

void signed_write(struct snapshot *s, const struct fold_member *member, const struct fold *other,
	struct buf *out)
{
	(void)s;
	(void)other;
	buf_add(out, member->live ? "+" : "-", 1);
	buf_add(out, member->p, member->n);
}

void signed_write_live(struct snapshot *s, const struct fold_member *member,
	const struct fold *other, struct buf *out)
{
	if (member->live)
		signed_write(s, member, other, out);
}

bool work_fold(struct snapshot *s, struct words text)
{
	struct snapshot_work *w = &s->work;
	bool good = true, over = false;

	if (!w->folds)
		w->unfolded = text;
	w->folds = true;
	w->folded.fold.seed = s->seed;
	while (w->unfolded.text.n && !over) {
		over = snapshot_fold_some(s, &w->folded, &w->unfolded, &good);
		assert(good);
	}
	(void)good;
	return w->unfolded.text.n == 0;
}

bool work_write(struct snapshot *s, struct members_text text)
{
	struct snapshot_work *w = &s->work;

	if (!w->writes)
		w->writer = text;
	w->writes = true;
	return members_text_write(s, &w->writer, &w->text);
}

struct buf work_text(struct snapshot *s)
{
	struct buf text = s->work.text;

	s->work.text = BUF_EMPTY;
	return text;
}

void work_next(struct snapshot *s)
{
	struct snapshot_work *w = &s->work;

	w->folds = w->writes = false;
	fold_reset(&w->folded.fold);
	buf_free(&w->text);
}

void work_free(struct snapshot *s)
{
	counted_free(&s->work.folded);
	fold_free(&s->work.later);
	buf_free(&s->work.text);
	buf_free(&s->work.more);
	s->work = (struct snapshot_work){ 0 };
}

uint64_t snapshot_cas(const struct snapshot *s)
{
	uint64_t sum = 0, only = 0;
	size_t there = 0;

	for (size_t i = 0; i < s->count; i++) {
		const struct snapshot_item *item = s->items[i];
		if (!item->there)
			continue;
		only = item->reply.cas;
		sum += hash_mix(hash_key(item->waiter.key, 0) | 1, item->reply.cas | 1ull << 63);
		there++;
	}
	sum >>= 64 - 53;
	return there == 1 ? only : sum ? sum : 1;
}

size_t snapshot_bytes(const struct snapshot *s)
{
	size_t bytes = 0;

	for (size_t i = 0; i < s->count; i++)
		bytes += snapshot_item_value(s->items[i]).n;
	return bytes;
}

bool snapshot_can_be_rewritten(const struct snapshot *s)
{
	for (size_t i = 0; i < s->count; i++) {
		if (s->items[i]->there &&
			(s->items[i]->reply.ttl == TTL_UNKNOWN || s->items[i]->reply.cas == 0))
			return false;
	}
	return true;
}
