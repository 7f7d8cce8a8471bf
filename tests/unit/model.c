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

static void put(struct model *m, struct slice member, bool in, uint32_t date)
{
	struct model_member *found = find(m, member);

	if (!found) {
		assert(m->count < MODEL_MAX);
		found = &m->members[m->count++];
		*found = (struct model_member){ member, false, 0 };
	}
	m->live += (size_t)in - (size_t)found->in;
	found->in = in;
	found->date = date;
}

/* Returns the size of the word at the front. Any size that no word has, if there is none. */
static size_t word_size(struct slice text)
{
	size_t n = 0;

	while (n < text.n && ((unsigned char)text.p[n] > 0x20 || text.p[n] == 1)) {
		if (text.p[n++] != 1)
			continue;
		if (n == text.n || text.p[n] < 0x21 || text.p[n] > 0x42 ||
			(text.p[n] == 0x21 &&
				(n > 1 || text.n == 2 || (text.p[2] != ' ' && text.p[2] != 2))))
			return 0;
		n++;
	}
	return n;
}

/* Returns the size of the date at the front, with its mark; 0 if there is none. */
static size_t date_size(struct slice text, uint32_t *date)
{
	enum { DIGITS = 10 };
	uint64_t number = 0;

	if (text.n <= DIGITS || text.p[0] != 2)
		return 0;
	for (size_t i = 1; i <= DIGITS; i++) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return 0;
		number = number * 10 + (uint64_t)(text.p[i] - '0');
	}
	*date = (uint32_t)number;
	return number > 0 && number <= UINT32_MAX ? 1 + DIGITS : 0;
}

bool model_log(struct model *m, struct slice log)
{
	size_t i = 0;

	while (i < log.n) {
		size_t start = i + 1, n, dated = 0;
		char sign = log.p[i];
		uint32_t date = 0;

		if (sign != '+' && sign != '-')
			return false;
		n = word_size(slice_skip(log, start));
		if (n < 1 || n > 2000)
			return false;
		if (sign == '+')
			dated = date_size(slice_skip(log, start + n), &date);
		i = start + n + dated;
		if (i == log.n || log.p[i++] != ' ')
			return false;
		put(m, slice_of(log.p + start, n), sign == '+', dated ? date : 0);
	}
	return true;
}

void model_expire(struct model *m, int64_t now)
{
	for (size_t i = 0; i < m->count; i++) {
		struct model_member *member = &m->members[i];
		if (!member->date || member->date > now)
			continue;
		member->in = false;
		member->date = 0;
		m->live--;
	}
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

/* Also whether dates are counted, and none is before the first one that the fold knows of. */
static bool has_dates(const struct model *m, const struct fold *f)
{
	size_t dated = 0, at;
	bool same = true;

	for (size_t i = 0; i < m->count && same; i++) {
		const struct model_member *member = &m->members[i];
		dated += member->date > 0;
		same = fold_find(f, member->name, &at) ? fold_date(&f->members[at]) == member->date
						       : !member->in;
		same = same && (!member->date || member->date >= f->first_date);
	}
	return same && f->dated == dated;
}

static bool has_members(const struct model *m, const struct fold *f)
{
	struct buf got = BUF_EMPTY, expected = BUF_EMPTY;
	bool same;

	fold_join(f, &got);
	join(m, &expected);
	same = slice_equal(buf_slice(&got), buf_slice(&expected)) && f->live == m->live &&
		fold_joined_size(f) == buf_size(&got) && has_dates(m, f);
	for (size_t i = 0; i < m->count; i++)
		same = same && fold_contains(f, m->members[i].name) == m->members[i].in;
	buf_free(&got);
	buf_free(&expected);
	return same;
}

/* Returns whether a fold's log, with or without removals, has the same members again. */
static bool encodes(const struct model *m, const struct fold *f, bool removals)
{
	struct fold again = { .seed = f->seed + 1 };
	struct buf log = BUF_EMPTY;
	bool same;

	fold_encode(f, removals, &log);
	same = buf_size(&log) == fold_log_size(f, removals) && fold_log(&again, buf_slice(&log)) &&
		has_members(m, &again) && again.member_count == (removals ? m->count : m->live) &&
		again.bytes == fold_log_size(&again, removals) &&
		again.bytes == fold_log_size(&again, true);
	fold_free(&again);
	buf_free(&log);
	return same;
}

bool model_agrees(const struct model *m, const struct fold *f)
{
	return has_members(m, f) && encodes(m, f, false) && encodes(m, f, true) &&
		fold_log_size(f, true) <= f->bytes &&
		fold_log_size(f, false) <= fold_log_size(f, true);
}
