#include "collection/adopted/encodings/words.h"

#include <stdlib.h>

#include "protocol/request.h"
#include "util/alloc.h"

enum { REPEATED_MAX = 8, COUNT_MAX = 1 << 30 };

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

void signed_encode(const struct fold *f, bool all, struct buf *out)
{
	for (size_t i = 0; i < f->member_count; i++) {
		const struct fold_member *m = &f->members[i];
		if (!all && !m->live)
			continue;
		buf_add(out, m->live ? "+" : "-", 1);
		buf_add(out, m->p, m->n);
	}
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

void delimited_encode(const struct fold *f, char delimiter, struct buf *out)
{
	for (size_t i = 0; i < f->member_count; i++) {
		if (f->members[i].live)
			delimited_add(out, member_of(&f->members[i]), delimiter, 1);
	}
}

/* --- counted members --- */

void counted_free(struct counted *c)
{
	free(c->members);
	fold_free(&c->fold);
	*c = (struct counted){ .fold.seed = c->fold.seed };
}

void counted_to_fold(struct counted *c, struct fold *out)
{
	fold_free(out);
	*out = c->fold;
	c->fold = (struct fold){ .seed = c->fold.seed };
	counted_free(c);
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

bool counted_change(
	const struct counted *c, const struct fold *change, char delimiter, struct buf *added, struct buf *removed)
{
	bool few = true;

	for (size_t i = 0; i < change->member_count && few; i++) {
		const struct fold_member *m = &change->members[i];
		int32_t net = counted_net(c, member_of(m));
		if (m->live && net <= 0)
			delimited_add(added, member_of(m), delimiter, 1 - net);
		else if (!m->live && net > 0)
			delimited_add(removed, member_of(m), delimiter, net);
		few = net > -REPEATED_MAX && net < REPEATED_MAX;
	}
	return few;
}
