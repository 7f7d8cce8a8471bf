#include "collection/set/match.h"

#include "collection/set/walk.h"
#include "util/glob.h"
#include "util/num.h"

/* Returns about how many entries of the tables have so many bytes. */
static uint64_t entries_in(const struct set_view *v, uint64_t bytes)
{
	uint64_t entries = 0, size = 1;

	for (size_t i = 0; i < v->run_count; i++) {
		entries += v->runs[i].ref.entries;
		size += v->runs[i].ref.bytes;
	}
	return (uint64_t)((double)bytes / (double)size * (double)entries) + 1;
}

/*
 * Returns how many entries to load. It is unknown how many of them match: first as many as are
 * needed if all do, then twice as many after each round trip, but at most AHEAD bytes at once.
 */
static uint64_t expected(const struct set_view *v, const struct set_request *r)
{
	enum { AHEAD = 1 << 20 };
	uint64_t least = r->count - r->written, more = r->looked;

	return num_least(least > more ? least : more, entries_in(v, AHEAD));
}

/* Adds the member to the answer if it matches. Returns the steps of work. */
static size_t compare(struct set_request *r, struct slice member)
{
	char bytes[MEMBER_WORD_MAX];
	struct slice element = member;

	if (element_has_escapes(member))
		element = slice_of(bytes, (size_t)(element_write(bytes, member) - bytes));
	r->looked++;
	if (glob_matches(r->glob, element)) {
		buf_add_word(&r->text, member);
		r->written++;
	}
	return WALK_STEPS + glob_steps(r->glob, element);
}

/* Continues after the last member that was compared, which is copied to `room`. */
static struct set_range rest_of(const struct set_request *r, char room[MEMBER_WORD_MAX])
{
	struct set_range range = r->range;
	struct slice last = buf_slice(&r->offsets);

	if (r->looked) {
		(void)slice_write(room, last);
		range.from = slice_of(room, last.n);
		range.after = true;
	}
	return range;
}

static void note_last(struct set_request *r, struct slice member)
{
	buf_consume(&r->offsets, buf_size(&r->offsets));
	buf_add_slice(&r->offsets, member);
}

bool match_range(struct set_view *v, struct set_request *r)
{
	char room[MEMBER_WORD_MAX], last[MEMBER_WORD_MAX];
	struct set_range range = rest_of(r, room);
	enum walk_step step = WALK_WANTED;
	struct walk walk;
	struct slice member;
	size_t n = 0;
	bool over = false;

	if (!r->glob) {
		r->glob = glob_compile(r->pattern);
		set_view_spend(v, glob_compile_steps(r->pattern));
	}
	if (walk_begin(&walk, v, &range, expected(v, r), true)) {
		while (!over && r->written < r->count &&
			(step = walk_next(&walk, &member)) == WALK_MEMBER) {
			n = (size_t)(slice_write(last, member) - last);
			over = set_view_is_over(v, compare(r, member));
		}
	}
	walk_end(&walk);
	if (n)
		note_last(r, slice_of(last, n));
	r->more = r->written == r->count;
	return step == WALK_END || r->more;
}
