/* A view of a set whose items are in a cupboard. */
#ifndef UNIT_VIEWING_H
#define UNIT_VIEWING_H

#include "set_model.h"
#include "unit.h"

static struct cupboard cupboard;
static struct set_store store;
static struct set_view view;

static inline void viewing_setup(void)
{
	cupboard.random = 1;
	TAILQ_INIT(&store.used);
	set_view_init(&view, 42, &store);
}

/* Checks that everything is freed, and that all counters are 0 again. */
static inline void viewing_teardown(void)
{
	set_view_free(&view);
	cupboard_free(&cupboard);
	ck_assert(TAILQ_EMPTY(&store.used));
	ck_assert_uint_eq(store.memory, 0);
}

/*
 * Queries until there is an answer, or none is possible. A view without an answer must have a
 * want.
 */
static inline bool viewing_ask(struct set_request *r, size_t *loaded)
{
	while (!set_answer(&view, r)) {
		ck_assert_uint_gt(view.want_count, 0);
		*loaded += view.want_count;
		if (!set_model_load(&cupboard, &view))
			return false;
	}
	return true;
}

#endif
