#include "waiting/blocked.h"

#include "collection/env.h"
#include "waiting/lines.h"

enum {
	JOIN_STEPS = 8, /* Of work, as in env_is_over, for each key. */
	LEAVE_STEPS = 4,
	WAKE_MAX = 100 /* Commands that are looked at in one piece. */
};

size_t blocked_size(size_t count)
{
	return sizeof(struct wait_places) + count * sizeof(struct wait_place);
}

void blocked_init(struct blocked *b, struct waiting *room, const struct blocked_hooks *hooks,
	struct account *account, size_t count)
{
	*b = (struct blocked){ .hooks = hooks, .room = room, .account = account };
	b->places = pool_get(room->env->pool, blocked_size(count));
	b->places->owner = b;
	b->places->count = count;
	b->places->joined = 0;
	for (size_t i = 0; i < count; i++)
		b->places->at[i] = (struct wait_place){ .all = b->places };
}

bool blocked_is_over(const struct blocked *b, bool ask)
{
	return b->room->ended || b->deadline <= b->room->env->now || b->hooks->is_gone(b, ask);
}

/* --- leaving --- */

static void remove_place(struct wait_place *place)
{
	TAILQ_REMOVE(&place->line->places, place, link);
	lines_drop_unused(place->line);
	place->line = NULL;
}

static void blocked_on_remove(struct waiter *waiter, const struct result *r);

/* Removes the places of commands that have left, in slices that are charged to no client. */
static void remove_left(struct waiting *room)
{
	struct env *env = room->env;
	struct wait_places *left;

	while (!room->left.is_paused && (left = STAILQ_FIRST(&room->left.places))) {
		while (left->joined > 0) {
			struct wait_place *place = &left->at[left->joined - 1];
			if (env_is_over(env, LEAVE_STEPS)) {
				room->left.is_paused = true;
				room->calls++;
				room->left.waiter.done = blocked_on_remove;
				env->pause(env, &room->left.waiter, NULL);
				return;
			}
			left->joined--;
			if (place->line)
				remove_place(place);
		}
		STAILQ_REMOVE_HEAD(&room->left.places, link);
		pool_put(env->pool, left, blocked_size(left->count));
	}
}

static void blocked_on_remove(struct waiter *waiter, const struct result *r)
{
	struct waiting *room =
		(struct waiting *)((char *)waiter - offsetof(struct waiting, left.waiter));

	(void)r;
	room->calls--;
	room->left.is_paused = false;
	remove_left(room);
}

void blocked_leave(struct blocked *b)
{
	struct waiting *room = b->room;

	if (b->is_queued) {
		room->count--;
		push_board_leave(room->board, b->places->count);
		if (room->next == b)
			room->next = TAILQ_NEXT(b, link);
		TAILQ_REMOVE(&room->all, b, link);
	}
	b->is_queued = false;
	b->places->owner = NULL;
	STAILQ_INSERT_TAIL(&room->left.places, b->places, link);
	b->places = NULL;
	remove_left(room);
}

/* --- joining --- */

static void blocked_on_join(struct waiter *waiter, const struct result *r)
{
	struct blocked *b = (struct blocked *)((char *)waiter - offsetof(struct blocked, joins));

	(void)r;
	b->room->calls--;
	blocked_join(b);
}

void blocked_join(struct blocked *b)
{
	struct wait_places *places = b->places;
	struct env *env = b->room->env;

	b->is_busy = true;
	while (places->joined < places->count) {
		struct wait_place *place = &places->at[places->joined];
		if (env_is_over(env, JOIN_STEPS)) {
			b->room->calls++;
			b->joins.done = blocked_on_join;
			env->pause(env, &b->joins, b->account);
			return;
		}
		places->joined++;
		place->line = lines_get(b->room, place->key);
		TAILQ_INSERT_TAIL(&place->line->places, place, link);
	}
	blocked_stay(b);
}

/* --- waking --- */

/* Handles changes of its lists during the attempt; a command has few keys (WAIT_KEYS_MAX). */
void blocked_stay(struct blocked *b)
{
	b->is_busy = false;
	if (blocked_is_over(b, false)) {
		b->hooks->end(b);
		return;
	}
	for (size_t i = 0; i < b->places->count; i++) {
		struct wait_line *line = b->places->at[i].line;
		if (line->again && !line->asks) {
			/* May end and free the command. */
			blocked_wake(line);
			return;
		}
	}
}

void blocked_pass_on(struct wait_line *line, bool popped)
{
	bool more;

	if (!line)
		return;
	more = popped || line->again;
	line->asks = line->again = false;
	if (more)
		blocked_wake(line);
	else
		lines_drop_unused(line);
}

/* Returns how many of `most` steps are left. */
static unsigned drop_head(struct wait_line *line, unsigned most)
{
	struct wait_place *place;

	for (; most > 0 && (place = TAILQ_FIRST(&line->places)); most--) {
		struct blocked *b = place->all->owner;
		if (b && (b->is_busy || !blocked_is_over(b, true)))
			break;
		if (b)
			b->hooks->end(b);
		else
			remove_place(place);
	}
	return most;
}

/* Returns a place whose command is to pop, or NULL; then the rest of `most` steps in `left`. */
static struct wait_place *first_free(struct wait_line *line, unsigned most, unsigned *left)
{
	struct wait_place *place = TAILQ_FIRST(&line->places);

	for (; most > 0 && place; most--, place = TAILQ_NEXT(place, link)) {
		const struct blocked *b = place->all->owner;
		if (b && !b->is_busy && !blocked_is_over(b, true))
			return place;
		line->again |= b != NULL;
	}
	*left = most;
	return NULL;
}

void blocked_wake(struct wait_line *line)
{
	struct wait_place *place;
	struct blocked *b;
	unsigned left;

	if (line->asks) {
		line->again = true;
		return;
	}
	line->again = false;
	line->asks = true; /* Keeps the queue. */
	left = drop_head(line, WAKE_MAX);
	place = first_free(line, left, &left);
	if (place) {
		b = place->all->owner;
		b->line = line;
		b->is_busy = true;
		b->hooks->pop(b, (size_t)(place - place->all->at));
		return;
	}
	line->asks = false;
	/* The rest is looked at after the next poll. */
	line->again |= left == 0;
	if (left == 0 && line->due > 0) {
		lines_take(line);
		lines_plan(line, 0);
	}
	lines_drop_unused(line);
}
