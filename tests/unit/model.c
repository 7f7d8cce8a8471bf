#include "model.h"

#include <assert.h>

static struct model_member *find(struct model *m, struct slice member)
{
	for (size_t i = 0; i < m->count; i++) {
		if (slice_equal(m->members[i].name, member))
			return &m->members[i];
	}
	return NULL;
}

static void put(struct model *m, struct slice member, bool in)
{
	struct model_member *found = find(m, member);

	if (!found) {
		assert(m->count < MODEL_MAX);
		found = &m->members[m->count++];
		*found = (struct model_member){ member, false };
	}
	m->live += (size_t)in - (size_t)found->in;
	found->in = in;
}

/* Returns the size of the word at the front. Any size that no word has, if there is none. */
static size_t word_size(struct slice text)
{
	size_t n = 0;

	while (n < text.n && ((unsigned char)text.p[n] > 0x20 || text.p[n] == 1)) {
		if (text.p[n++] != 1)
			continue;
		if (n == text.n || text.p[n] < 0x21 || text.p[n] > 0x42 ||
			(text.p[n] == 0x21 && (n > 1 || text.n == 2 || text.p[2] != ' ')))
			return 0;
		n++;
	}
	return n;
}

bool model_log(struct model *m, struct slice log)
{
	size_t i = 0;

	while (i < log.n) {
		size_t start = i + 1, n;
		char sign = log.p[i];

		if (sign != '+' && sign != '-')
			return false;
		n = word_size(slice_skip(log, start));
		if (n < 1 || n > 2000 || start + n == log.n || log.p[start + n] != ' ')
			return false;
		put(m, slice_of(log.p + start, n), sign == '+');
		i = start + n + 1;
	}
	return true;
}

static void join(const struct model *m, struct buf *out)
{
	bool more = false;

	for (size_t i = 0; i < m->count; i++) {
		if (!m->members[i].in)
			continue;
		if (more)
			BUF_ADD(out, " ");
		buf_add_slice(out, m->members[i].name);
		more = true;
	}
}

static bool has_members(const struct model *m, const struct fold *f)
{
	struct buf got = BUF_EMPTY, expected = BUF_EMPTY;
	bool same;

	fold_join(f, &got);
	join(m, &expected);
	same = slice_equal(buf_slice(&got), buf_slice(&expected)) && f->live == m->live &&
		fold_joined_size(f) == buf_size(&got);
	for (size_t i = 0; i < m->count; i++)
		same = same && fold_contains(f, m->members[i].name) == m->members[i].in;
	buf_free(&got);
	buf_free(&expected);
	return same;
}

bool model_agrees(const struct model *m, const struct fold *f)
{
	struct fold again = { .seed = f->seed + 1 };
	struct buf log = BUF_EMPTY;
	bool same;

	fold_encode(f, false, &log);
	same = has_members(m, f) && fold_log(&again, buf_slice(&log)) && has_members(m, &again);
	same = same && buf_size(&log) == fold_log_size(f, false) &&
		fold_log_size(f, true) <= f->bytes &&
		fold_log_size(f, false) <= fold_log_size(f, true) &&
		again.bytes == fold_log_size(&again, false) &&
		again.bytes == fold_log_size(&again, true);
	fold_free(&again);
	buf_free(&log);
	return same;
}
