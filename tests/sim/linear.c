#include "linear.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "util/alloc.h"
#include "util/hash.h"

enum { PLACES_MAX = 1 << 20, SLOTS_FIRST = 1 << 10 };

struct place {
	uint64_t done; /* a bit for each operation; 0 is no place */
	struct linear_state state;
};

struct search {
	struct linear *linear;
	uint64_t replied; /* the operations that have a reply */
	struct place *places;
	size_t slots, count;
	bool gives_up;
};

static size_t slot_of(const struct search *s, const struct place *p)
{
	size_t at = hash_slice(slice_of((const char *)p, sizeof(*p)), 1) % s->slots;

	while (s->places[at].done && memcmp(&s->places[at], p, sizeof(*p)) != 0)
		at = (at + 1) % s->slots;
	return at;
}

static void grow(struct search *s)
{
	struct place *old = s->places;
	size_t n = s->slots;

	s->slots = n ? 4 * n : SLOTS_FIRST;
	s->places = xcalloc(s->slots, sizeof(*s->places));
	for (size_t i = 0; i < n; i++) {
		if (old[i].done)
			s->places[slot_of(s, &old[i])] = old[i];
	}
	free(old);
}

/* True if the search was never here. */
static bool is_new(struct search *s, const struct place *p)
{
	size_t at;

	if (2 * s->count >= s->slots)
		grow(s);
	at = slot_of(s, p);
	if (s->places[at].done)
		return false;
	s->places[at] = *p;
	s->gives_up = s->gives_up || ++s->count > PLACES_MAX;
	return true;
}

static uint64_t bit(size_t op)
{
	return UINT64_C(1) << op;
}

/* An operation that begins after the first missing reply cannot be next. */
static uint64_t first_reply(const struct search *s, uint64_t done)
{
	const struct linear *l = s->linear;
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < l->count; i++) {
		if (l->ops[i].replied && !(done & bit(i)) && l->ops[i].until < first)
			first = l->ops[i].until;
	}
	return first;
}

static bool may_be_next(const struct search *s, uint64_t done, uint64_t first, size_t op)
{
	return !(done & bit(op)) && s->linear->ops[op].from < first;
}

/* A read that is right may as well be next: all others may still follow. */
static struct place take_reads(const struct search *s, struct place p)
{
	const struct linear *l = s->linear;
	struct linear_state after;

	for (bool more = true; more;) {
		uint64_t first = first_reply(s, p.done);
		more = false;
		for (size_t i = 0; i < l->count; i++) {
			if (l->ops[i].reads && may_be_next(s, p.done, first, i) &&
				l->step(l->arg, i, &p.state, 0, &after) == LINEAR_RIGHT) {
				p.done |= bit(i);
				more = true;
			}
		}
	}
	return p;
}

static bool search_from(struct search *s, struct place p);

static bool try_operation(struct search *s, const struct place *p, size_t op)
{
	const struct linear *l = s->linear;
	struct place next = { .done = p->done | bit(op) };
	enum linear_step step;

	for (unsigned choice = 0;
		(step = l->step(l->arg, op, &p->state, choice, &next.state)) != LINEAR_END;
		choice++) {
		if (step == LINEAR_RIGHT && search_from(s, next))
			return true;
	}
	return false;
}

static bool search_from(struct search *s, struct place p)
{
	struct linear *l = s->linear;
	uint64_t first;

	p = take_reads(s, p);
	if ((p.done & s->replied) == s->replied)
		return true;
	if (p.done && !is_new(s, &p))
		return false;
	if (__builtin_popcountll(p.done & s->replied) >
		__builtin_popcountll(l->furthest & s->replied))
		l->furthest = p.done;
	first = first_reply(s, p.done);
	for (size_t i = 0; i < l->count && !s->gives_up; i++) {
		if (may_be_next(s, p.done, first, i) && try_operation(s, &p, i))
			return true;
	}
	return false;
}

enum linear_result linear_check(struct linear *l)
{
	struct search s = { .linear = l };
	bool found;

	assert(l->count <= LINEAR_OPS);
	l->furthest = 0;
	for (size_t i = 0; i < l->count; i++)
		s.replied |= l->ops[i].replied ? bit(i) : 0;
	found = search_from(&s, (struct place){ .done = 0 });
	l->places = s.count;
	free(s.places);
	return found ? LINEAR_YES : s.gives_up ? LINEAR_UNDECIDED : LINEAR_NO;
}
