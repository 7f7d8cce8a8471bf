#include "collection/roster.h"

#include <stdlib.h>

#include "protocol/request.h"
#include "util/alloc.h"
#include "util/hash.h"
#include "util/random.h"

void roster_free(struct roster *r)
{
	buf_free(&r->text);
	shared_drop(r->shared);
	free(r->index);
	*r = (struct roster){ .seed = r->seed };
}

/* The end of a token that begins at `p`, or NULL when it is none. */
static const char *token_end(const char *p, const char *end)
{
	const char *space = memchr(p, ' ', (size_t)(end - p));

	return space && space - p > 1 && space - p <= MEMBER_MAX + 1 && *p == '+' ? space : NULL;
}

bool roster_add_clean(struct roster *r, struct slice segment, const struct fold *over)
{
	const char *p = segment.p, *end = segment.p + segment.n, *space;
	/* What is written is shorter than what is read, a sign for each member. */
	char *start = buf_reserve(&r->text, segment.n + 1), *at = start;
	bool live;

	for (; p < end; p = space + 1) {
		space = token_end(p, end);
		if (!space)
			return false;
		size_t n = (size_t)(space - p);
		if (over->member_count && fold_mentions(over, slice_of(p + 1, n - 1), &live))
			continue;
		memcpy(at, p + 1, n);
		at += n;
		r->count++;
	}
	buf_commit(&r->text, (size_t)(at - start));
	return true;
}

void roster_add_fold(struct roster *r, const struct fold *fold)
{
	fold_join(fold, &r->text);
	r->count += fold->live;
	/* The space behind the last member of a clean segment parts nothing when no other follows. */
	if (fold->live == 0 && buf_size(&r->text))
		r->text.end--;
}

struct slice roster_text(const struct roster *r)
{
	return buf_slice(r->shared ? &r->shared->text : &r->text);
}

struct shared *roster_share(struct roster *r)
{
	if (!r->shared)
		r->shared = shared_create(&r->text);
	return r->shared;
}

static size_t find(const struct roster *r, struct slice member)
{
	struct slice text = roster_text(r);
	size_t at = hash_slice(member, r->seed) & (r->slots - 1);

	for (; r->index[at]; at = (at + 1) & (r->slots - 1)) {
		size_t from = r->index[at] - 1;
		if (text.n - from >= member.n && memcmp(text.p + from, member.p, member.n) == 0 &&
			(text.n - from == member.n || text.p[from + member.n] == ' '))
			break;
	}
	return at;
}

static void make_index(struct roster *r)
{
	struct slice text = roster_text(r), rest = text, member;

	for (r->slots = 16; r->slots < 2 * r->count; r->slots *= 2)
		;
	r->index = xcalloc(r->slots, sizeof(*r->index));
	while ((member = roster_next(&rest)).n)
		r->index[find(r, member)] = (uint32_t)(member.p - text.p) + 1;
}

bool roster_contains(struct roster *r, struct slice member)
{
	if (!r->index)
		make_index(r);
	return r->index[find(r, member)] != 0;
}

size_t roster_memory(const struct roster *r)
{
	return (r->shared ? r->shared->text.cap : r->text.cap) + (r->index ? r->slots * sizeof(*r->index) : 0);
}

/* Selection sampling: Knuth, The Art of Computer Programming 2, 3.4.2, algorithm S. */
size_t roster_sample(const struct roster *r, size_t count, uint64_t *random, const char *before, struct buf *out)
{
	struct slice rest = roster_text(r), member;
	size_t left = r->count, need = count < r->count ? count : r->count, chosen = need;

	for (; need; left--) {
		member = roster_next(&rest);
		if (random_next(random) % left >= need)
			continue;
		buf_add(out, before, strlen(before));
		buf_add_slice(out, member);
		BUF_ADD(out, " ");
		need--;
	}
	return chosen;
}
