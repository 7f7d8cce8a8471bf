#include "collection/adopted/encodings/words.h"

#include "protocol/request.h"

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
