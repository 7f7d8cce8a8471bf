#include "collection/text/table_merge.h"

#include <stdlib.h>

#include "util/alloc.h"

void table_merge_init(struct table_merge *m, size_t count)
{
	*m = (struct table_merge){ .count = count, .winner = count, .bound = count };
	m->streams = xcalloc(count + 1, sizeof(*m->streams));
}

void table_merge_free(struct table_merge *m)
{
	free(m->streams);
	*m = (struct table_merge){ 0 };
}

void table_merge_feed(struct table_merge *m, size_t stream, const struct table *t, struct slice from)
{
	struct merge_stream *s = &m->streams[stream];

	s->state = table_seek(&s->cursor, t, from) ? STREAM_ON : STREAM_DRY;
	m->bound_known = false;
}

void table_merge_end(struct table_merge *m, size_t stream)
{
	m->streams[stream].state = STREAM_ENDED;
	m->bound_known = false;
}

static struct slice member_of(const struct table_merge *m, size_t stream)
{
	return table_member(&m->streams[stream].cursor);
}

static void advance(struct table_merge *m, size_t stream)
{
	if (!table_next(&m->streams[stream].cursor))
		m->streams[stream].state = STREAM_DRY;
}

/* Streams that say something of the winner's member say no more of it. */
static void pass_over(struct table_merge *m, size_t stream)
{
	if (m->streams[stream].state == STREAM_ON && slice_equal(member_of(m, stream), member_of(m, m->winner)))
		advance(m, stream);
}

/* The first stream with no entry at hand that may still have one; `count` when all others have ended. */
static size_t find_dry(const struct table_merge *m)
{
	size_t i = 0;

	while (i < m->count && m->streams[i].state != STREAM_DRY)
		i++;
	return i;
}

/* Finds the winner among all, and which comes behind it. */
static void choose(struct table_merge *m)
{
	m->winner = m->bound = m->count;
	for (size_t i = 0; i < m->count; i++) {
		if (m->streams[i].state != STREAM_ON)
			continue;
		/* Among equals the last one, which is the newest, wins. */
		if (m->winner == m->count || member_compare(member_of(m, i), member_of(m, m->winner)) <= 0) {
			m->bound = m->winner;
			m->winner = i;
		} else if (m->bound == m->count || member_compare(member_of(m, i), member_of(m, m->bound)) < 0) {
			m->bound = i;
		}
	}
	m->bound_known = true;
}

/* Goes past the entry that was given; true when the next one of the same stream comes first again. */
static bool go_on(struct table_merge *m)
{
	if (!m->given)
		return false;
	m->given = false;
	advance(m, m->winner);
	return m->bound_known && m->streams[m->winner].state == STREAM_ON &&
		(m->bound == m->count || member_compare(member_of(m, m->winner), member_of(m, m->bound)) < 0);
}

enum merge_state table_merge_next(struct table_merge *m)
{
	size_t dry;

	if (go_on(m)) {
		m->given = true;
		return MERGE_ENTRY;
	}
	dry = find_dry(m);
	if (dry < m->count) {
		m->winner = dry;
		return MERGE_DRY;
	}
	choose(m);
	if (m->winner == m->count)
		return MERGE_END;
	if (m->bound < m->count && slice_equal(member_of(m, m->bound), member_of(m, m->winner))) {
		for (size_t i = 0; i < m->winner; i++)
			pass_over(m, i);
		m->bound_known = false;
	}
	m->given = true;
	return MERGE_ENTRY;
}

bool table_merge_alone(const struct table_merge *m, size_t stream, struct slice to)
{
	for (size_t i = 0; i < m->count; i++) {
		const struct merge_stream *s = &m->streams[i];
		if (i != stream && s->state != STREAM_ENDED &&
			(s->state == STREAM_DRY || member_compare(table_member(&s->cursor), to) < 0))
			return false;
	}
	return true;
}
