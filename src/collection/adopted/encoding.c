#include "collection/adopted/encoding.h"

#include <assert.h>
#include <stdlib.h>

#include "util/alloc.h"

struct buf *plan_add(struct plan *plan, enum call_verb verb, struct snapshot_item *item,
	const struct snapshot_item *like)
{
	struct plan_step *step;

	assert(plan->count < PLAN_STEPS_MAX);
	/* Most work only reads. */
	if (!plan->steps)
		plan->steps = xmalloc(PLAN_STEPS_MAX * sizeof(*step));
	step = &plan->steps[plan->count++];
	*step = (struct plan_step){ .verb = verb, .item = item, .like = like };
	return &step->value;
}

struct buf *plan_store(struct plan *plan, struct snapshot_item *item)
{
	return plan_add(plan, item->there ? CALL_CAS : CALL_ADD, item, NULL);
}

struct buf *plan_rewrite(struct plan *plan, struct snapshot_item *item)
{
	return plan_add(plan, CALL_CAS, item, item);
}

void plan_expire(struct plan *plan, struct snapshot_item *item)
{
	plan_add(plan, CALL_CAS, item, NULL);
	plan->steps[plan->count - 1].expire = true;
}

void plan_drop(struct plan *plan, struct snapshot_item *item)
{
	plan_expire(plan, item);
	plan->steps[plan->count - 1].optional = true;
}

void plan_free(struct plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		buf_free(&plan->steps[i].value);
	free(plan->steps);
	plan->steps = NULL;
	plan->count = 0;
	plan->again = plan->check = plan->must = false;
}

void plan_write(struct plan *plan, struct members_text text)
{
	struct plan_step *step = &plan->steps[plan->count - 1];

	step->rest[step->rest[0].write != NULL] = text;
}

bool plan_step_write(struct snapshot *s, struct plan_step *step)
{
	return members_text_write(s, &step->rest[0], &step->value) &&
		members_text_write(s, &step->rest[1], &step->value);
}

bool worth_rewriting(const struct snapshot *s, size_t now, size_t size)
{
	return size + (s->forced ? 0 : size / 9) < now;
}

static void begin_folding(struct snapshot *s)
{
	s->folding.begun = true;
	s->all.fold.seed = s->seed;
	s->status = s->encoding->state(s);
	s->folding.done = s->status != ADOPTED_OK && s->status != ADOPTED_MISSING;
}

bool snapshot_fold(struct snapshot *s)
{
	bool good = true, over = false;

	if (!s->folding.begun)
		begin_folding(s);
	while (!s->folding.done && !over) {
		if (s->folding.rest.text.n)
			over = snapshot_fold_some(s, &s->all, &s->folding.rest, &good);
		else
			s->folding.done =
				!s->encoding->text(s, s->folding.next++, &s->folding.rest);
		if (!good)
			s->status = ADOPTED_CORRUPT;
		s->folding.done |= !good;
	}
	return s->folding.done;
}
