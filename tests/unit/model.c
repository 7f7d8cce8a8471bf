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

void model_put(struct model *m, struct slice member, bool in)
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

static bool ordinary(char c)
{
	return (unsigned char)c > 0x20 && c != 0x7f;
}

bool model_log(struct model *m, struct slice log)
{
	size_t i = 0;

	while (i < log.n) {
		size_t start = i + 1, n = 0;
		char sign = log.p[i];

		if (sign != '+' && sign != '-')
			return false;
		while (start + n < log.n && ordinary(log.p[start + n]))
			n++;
		if (n < 1 || n > 250 || start + n == log.n || log.p[start + n] != ' ')
			return false;
		model_put(m, slice_of(log.p + start, n), sign == '+');
		i = start + n + 1;
	}
	return true;
}

void model_join(const struct model *m, struct buf *out)
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
