#include "collection/adopted/encoding.h"

#include <assert.h>
#include <stdlib.h>

#include "util/alloc.h"

struct snapshot_item *snapshot_add(
	struct snapshot *s, int role, struct slice before, struct slice middle, struct slice behind, bool asked)
{
	size_t n = before.n + middle.n + behind.n;
	struct snapshot_item *item;

	assert(n <= KEY_MAX);
	item = xcalloc(1, sizeof(*item));
	slice_write(slice_write(slice_write(item->key, before), middle), behind);
	item->waiter.key = slice_of(item->key, n);
	item->role = role;
	item->asked = asked;
	s->items = xrealloc(s->items, (s->count + 1) * sizeof(*s->items));
	s->items[s->count++] = item;
	return item;
}

struct snapshot_item *snapshot_find(const struct snapshot *s, int role)
{
	for (size_t i = 0; i < s->count; i++) {
		if (s->items[i]->role == role)
			return s->items[i];
	}
	return NULL;
}

void snapshot_free(struct snapshot *s)
{
	for (size_t i = 0; i < s->count; i++) {
		buf_free(&s->items[i]->value);
		free(s->items[i]);
	}
	free(s->items);
	s->items = NULL;
	s->count = 0;
}

struct slice snapshot_item_value(const struct snapshot_item *item)
{
	return buf_slice(&item->value);
}

struct buf *plan_add(
	struct plan *plan, enum call_verb verb, struct snapshot_item *item, const struct snapshot_item *like)
{
	struct plan_step *step = &plan->steps[plan->count++];

	assert(plan->count <= PLAN_STEPS_MAX);
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
	*plan = (struct plan){ 0 };
}

bool worth_rewriting(const struct snapshot *s, size_t now, size_t size)
{
	return size + (s->forced ? 0 : size / 9) < now;
}
