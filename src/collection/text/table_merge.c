#include "collection/text/table_merge.h"

#include <stdlib.h>

#include "util/alloc.h"

void table_merge_init(struct table_merge *m, size_t count)
{
	*m = (struct table_merge){ .count = count, .dry = count, .winner = count };
	m->streams = xcalloc(count + 1, sizeof(*m->streams));
	m->order = xcalloc(count + 1, sizeof(*m->order));
}

void table_merge_free(struct table_merge *m)
{
	free(m->streams);
	free(m->order);
	*m = (struct table_merge){ 0 };
}

static struct slice member_of(const struct table_merge *m, size_t place)
{
	return table_member(&m->streams[m->order[place]].cursor);
}

/* Returns whether a stream precedes the one at a place of the order. */
static bool comes_before(const struct table_merge *m, size_t stream, size_t place, bool *equal)
{
	int order = member_compare(table_member(&m->streams[stream].cursor), member_of(m, place));

	*equal |= order == 0;
	return order < 0 || (order == 0 && stream > m->order[place]);
}

/*
 * Returns the position of a stream in `order`, starting at `from`. The search finds an equal
 * member, since it ends next to it.
 */
static size_t find_place(struct table_merge *m, size_t stream, size_t from)
{
	size_t low = from, high = m->on;
	bool equal = false;

	/* A stream often has several consecutive entries. */
	if (low < high && comes_before(m, stream, low, &equal))
		high = low;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (comes_before(m, stream, middle, &equal))
			high = middle;
		else
			low = middle + 1;
	}
	m->equals += equal;
	return low;
}

void table_merge_feed(
	struct table_merge *m, size_t stream, const struct table *t, struct slice from)
{
	struct merge_stream *s = &m->streams[stream];
	size_t place;

	if (!table_seek(&s->cursor, t, from))
		return;
	s->state = STREAM_ON;
	m->dry--;
	place = find_place(m, stream, 0);
	memmove(m->order + place + 1, m->order + place, (m->on++ - place) * sizeof(*m->order));
	m->order[place] = stream;
}

void table_merge_end(struct table_merge *m, size_t stream)
{
	m->streams[stream].state = STREAM_ENDED;
	m->dry--;
}

/* Moves the first stream to its next entry. */
static void advance_first(struct table_merge *m)
{
	size_t stream = m->order[0], place;

	if (table_next(&m->streams[stream].cursor)) {
		if (m->on == 1)
			return;
		place = find_place(m, stream, 1) - 1;
		memmove(m->order, m->order + 1, place * sizeof(*m->order));
		m->order[place] = stream;
	} else {
		m->streams[stream].state = STREAM_DRY;
		m->dry++;
		memmove(m->order, m->order + 1, --m->on * sizeof(*m->order));
	}
}

/* Skips the returned entry, and the entries of older streams with the same member. */
static void pass(struct table_merge *m)
{
	size_t same = 1;

	while (m->equals && same < m->on && slice_equal(member_of(m, same), member_of(m, 0)))
		same++;
	m->equals -= same - 1;
	for (; same > 0; same--)
		advance_first(m);
}

enum merge_state table_merge_next(struct table_merge *m)
{
	if (m->given)
		pass(m);
	m->given = false;
	if (m->dry) {
		for (m->winner = 0; m->streams[m->winner].state != STREAM_DRY; m->winner++)
			;
		return MERGE_DRY;
	}
	if (m->on == 0)
		return MERGE_END;
	m->winner = m->order[0];
	m->given = true;
	return MERGE_ENTRY;
}

bool table_merge_alone(const struct table_merge *m, size_t stream, struct slice to)
{
	for (size_t i = 0; i < m->count; i++) {
		const struct merge_stream *s = &m->streams[i];
		if (i != stream && s->state != STREAM_ENDED &&
			(s->state == STREAM_DRY || !to.p ||
				member_compare(table_member(&s->cursor), to) < 0))
			return false;
	}
	return true;
}
