#include "collection/adopted/encodings/counted.h"

#include <stdlib.h>

#include "collection/adopted/encodings/words.h"
#include "util/alloc.h"

enum { REPEATED_MAX = 8, COUNT_MAX = 1 << 30 };

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
