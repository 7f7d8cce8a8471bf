#include "collection/adopted/encodings/words.h"

#include <stdlib.h>

#include "protocol/element.h"
#include "protocol/request.h"
#include "util/alloc.h"

enum { COUNT_MAX = 1 << 30 };

static bool is_text(char c)
{
	return (unsigned char)c > ' ' && c != 0x7f;
}

bool signed_fold(struct fold *f, struct slice text)
{
	const char *p = text.p, *end = text.p + text.n;

	f->bytes += text.n;
	while (p < end) {
		bool add = *p == '+';
		const char *member = p + 1;

		if (!add && *p != '-')
			return false;
		for (p = member; p < end && is_text(*p) && *p != '+' && *p != '-'; p++)
			;
		if (p == member || p - member > MEMBER_MAX)
			return false;
		if (add)
			fold_add(f, slice_of(member, (size_t)(p - member)));
		else
			fold_remove(f, slice_of(member, (size_t)(p - member)));
		f->tokens++;
	}
	return true;
}

size_t signed_size(const struct fold *f, bool all)
{
	return all ? f->all_bytes + f->member_count : f->live_bytes + f->live;
}

bool delimited_next(struct slice *text, char delimiter, struct slice *member)
{
	const char *end = text->n ? memchr(text->p, delimiter, text->n) : NULL;
	size_t n = end ? (size_t)(end - text->p) : 0;

	if (n == 0 || n > MEMBER_MAX)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!is_text(text->p[i]))
			return false;
	}
	*member = slice_of(text->p, n);
	*text = slice_skip(*text, n + 1);
	return true;
}

void delimited_add(struct buf *out, struct slice member, char delimiter, int64_t count)
{
	for (; count > 0; count--) {
		buf_add_slice(out, member);
		buf_add(out, &delimiter, 1);
	}
}

/* --- counted members --- */

void counted_free(struct counted *c)
{
	free(c->members);
	fold_free(&c->fold);
	*c = (struct counted){ .fold.seed = c->fold.seed };
}

static void count(struct counted *c, struct slice member, bool removed)
{
	size_t i = fold_note(&c->fold, member);
	struct counted_member *m;

	if (i >= c->capacity) {
		size_t capacity = c->fold.member_capacity;
		c->members = xrealloc(c->members, capacity * sizeof(*c->members));
		memset(c->members + c->capacity, 0, (capacity - c->capacity) * sizeof(*c->members));
		c->capacity = capacity;
	}
	m = &c->members[i];
	if (m->added + m->removed < COUNT_MAX) {
		m->added += !removed;
		m->removed += removed;
	}
	fold_set(&c->fold, i, m->added > m->removed);
}

bool counted_read(struct counted *c, struct slice text, char delimiter, bool removed)
{
	struct slice member;

	c->fold.bytes += text.n;
	while (text.n) {
		if (!delimited_next(&text, delimiter, &member))
			return false;
		count(c, member, removed);
		c->fold.tokens++;
	}
	return true;
}

struct counted_member counted_find(const struct counted *c, struct slice member)
{
	size_t i;

	return fold_find(&c->fold, member, &i) ? c->members[i] : (struct counted_member){ 0, 0 };
}

int32_t counted_net(const struct counted *c, struct slice member)
{
	struct counted_member m = counted_find(c, member);

	return m.added - m.removed;
}

/* --- texts that are read in portions --- */

/* Removes a portion that ends with a whole word; all of the text if it is malformed. */
static struct slice take_portion(struct words *words)
{
	enum { BYTES = 8 * 1024 };
	struct slice text = words->text;

	if (words->kind != WORDS_SIGNED)
		return slice_portion(&words->text, BYTES, words->delimiter);
	if (text.n > BYTES) {
		text.n = BYTES;
		while (text.n < words->text.n && text.p[text.n] != '+' && text.p[text.n] != '-')
			text.n++;
	}
	words->text = slice_skip(words->text, text.n);
	return text;
}

bool words_fold(struct counted *c, struct words *words)
{
	struct slice text = take_portion(words);

	if (words->kind == WORDS_SIGNED)
		return signed_fold(&c->fold, text);
	return counted_read(c, text, words->delimiter, words->kind == WORDS_REMOVED);
}

bool words_next(struct words *words, struct slice *member)
{
	if (words->kind != WORDS_LOG)
		return delimited_next(&words->text, words->delimiter, member);
	*member = slice_token(&words->text);
	if (member->n == 0)
		return false;
	*member = slice_skip(*member, 1);
	return true;
}
