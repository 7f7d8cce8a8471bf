#include "waiting/waiting.h"

#include <stdlib.h>

#include "collection/env.h"
#include "util/alloc.h"
#include "waiting/blocked.h"
#include "waiting/lines.h"
#include "waiting/polls.h"

/* Times are in milliseconds. */
enum { TICK_MAX = 50, LOOK_MS = 100 };

static void set_poll_timer(struct waiting *room);

struct waiting *waiting_create(struct env *env, struct push_board *board, size_t max,
	size_t calls_max, void (*tell)(struct env *env))
{
	struct waiting *room = xcalloc(1, sizeof(*room));

	room->env = env;
	room->board = board;
	room->max = max;
	room->calls_max = calls_max;
	room->tell = tell;
	room->timer.deadline = UINT64_MAX;
	TAILQ_INIT(&room->all);
	STAILQ_INIT(&room->left.places);
	for (int i = 0; i < LINES_PAUSES; i++)
		TAILQ_INIT(&room->due[i]);
	return room;
}

void waiting_destroy(struct waiting *room)
{
	free(room);
}

size_t waiting_count(const struct waiting *room)
{
	return room->count;
}

bool waiting_idle(const struct waiting *room)
{
	return room->count == 0 && room->calls == 0 && room->lines == 0;
}

bool waiting_has(const struct waiting *room, struct slice key)
{
	const struct wait_line *line = lines_find(room, key);

	return line && !TAILQ_EMPTY(&line->places);
}

bool waiting_block(struct waiting *room, struct blocked *b)
{
	/* Not checked yet if commands were queued for all its keys. */
	if (blocked_is_over(b, false)) {
		b->hooks->end(b);
		return true;
	}
	if (!push_board_enter(room->board, b->places->count, room->max))
		return false;
	b->is_queued = true;
	room->count++;
	TAILQ_INSERT_TAIL(&room->all, b, link);
	if (b->deadline < room->timer.deadline)
		room->timer.deadline = b->deadline;
	blocked_join(b);
	set_poll_timer(room);
	return true;
}

/* --- changes of lists --- */

void waiting_pushed(struct waiting *room, struct slice key)
{
	struct wait_line *line = room->count ? lines_find(room, key) : NULL;

	if (!line)
		return;
	line->pause = 0;
	line->empty = 0;
	blocked_wake(line);
}

void waiting_due(struct waiting *room, struct slice key, uint64_t ms)
{
	struct wait_line *line = room->count ? lines_find(room, key) : NULL;

	if (line)
		line->held_until = room->env->now + ms;
}

/* Waking may end commands, and so free any queue. */
static void look_at_slot(struct waiting *room, size_t slot)
{
	uint64_t before = room->slots[slot].pushed, after = push_board_pushed(room->board, slot);
	struct wait_line *line;

	if (before == after)
		return;
	room->slots[slot].pushed = after;
	room->next_line = LIST_FIRST(&room->slots[slot].lines);
	while ((line = room->next_line)) {
		room->next_line = LIST_NEXT(line, beside);
		if (!push_board_concerns(before, after, push_board_tag(line->hash)))
			continue;
		line->empty = 0;
		blocked_wake(line);
	}
}

void waiting_look(struct waiting *room)
{
	if (room->lines == 0)
		return;
	for (size_t group = 0; group < PUSH_BOARD_GROUPS; group++) {
		unsigned pushes = atomic_load(&room->board->groups[group]);
		if (pushes == room->groups[group])
			continue;
		room->groups[group] = pushes;
		for (size_t i = 0; i < PUSH_BOARD_GROUP; i++)
			look_at_slot(room, group * PUSH_BOARD_GROUP + i);
	}
}

/* --- the clock --- */

/*
 * Ends commands whose deadline has passed or whose clients are gone, from room->next on, in
 * slices. Ending one may close its client, and so end others.
 */
static void end_some(struct waiting *room)
{
	struct blocked *b;

	while ((b = room->next) && !env_is_over(room->env, 1)) {
		room->next = TAILQ_NEXT(b, link);
		if (!b->is_busy && blocked_is_over(b, false))
			b->hooks->end(b);
		else if (b->deadline < room->timer.deadline)
			room->timer.deadline = b->deadline;
	}
}

static void waiting_on_timer(struct waiter *waiter, const struct result *r)
{
	struct waiting *room =
		(struct waiting *)((char *)waiter - offsetof(struct waiting, timer.waiter));
	uint64_t now = room->env->now;

	(void)r;
	room->calls--;
	room->timer.is_set = false;
	if (!room->next && (room->timer.deadline <= now || room->timer.look_at <= now)) {
		room->timer.look_at = now + LOOK_MS;
		room->timer.deadline = UINT64_MAX;
		room->next = TAILQ_FIRST(&room->all);
	}
	end_some(room);
	polls_send(room);
	set_poll_timer(room);
}

static void set_poll_timer(struct waiting *room)
{
	struct env *env = room->env;
	uint64_t next;

	if (room->timer.is_set || room->count == 0)
		return;
	next = room->next ? env->now + 1 : polls_next(room, env->now + TICK_MAX);
	room->timer.is_set = true;
	room->calls++;
	room->timer.waiter.done = waiting_on_timer;
	env->later(env, &room->timer.waiter, (unsigned)(next - env->now));
}

void waiting_end(struct waiting *room)
{
	room->ended = true;
	room->next = TAILQ_FIRST(&room->all);
	end_some(room);
}
