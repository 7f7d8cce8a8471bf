#include "waiting/polls.h"

#include "collection/env.h"
#include "waiting/blocked.h"
#include "waiting/lines.h"

enum {
	US = 1000,          /* In a millisecond. */
	BURST_US = 50 * US, /* So long may a turn be late without slowing down the polls. */
	BATCH = 5 /* Milliseconds of polls that are sent together when there are too many. */
};

/* The next pause is longer. */
static void plan(struct wait_line *line)
{
	line->pause += line->pause + 1 < LINES_PAUSES;
	lines_plan(line, line->pause);
}

/* Shares a poll's result with other workers, which then need not poll. */
static void spread(const struct wait_line *line, const struct result *r, bool is_new)
{
	const struct waiting *room = line->room;
	size_t slot = push_board_slot(line->hash);

	push_board_see(room->board, slot, r->status == RESULT_HIT ? r->cas : 0);
	if (is_new && push_board_is_shared(room->board, slot) &&
		push_board_note(room->board, line->poll.key) && room->tell)
		room->tell(room->env);
}

static void polls_on_answer(struct waiter *waiter, const struct result *r)
{
	struct wait_line *line =
		(struct wait_line *)((char *)waiter - offsetof(struct wait_line, poll));
	bool is_new = r->status == RESULT_HIT && (r->cas == 0 || r->cas != line->empty);

	line->room->calls--;
	plan(line);
	spread(line, r, is_new);
	if (is_new || (r->status == RESULT_HIT && line->again)) {
		line->empty = r->cas;
		blocked_wake(line);
	} else {
		lines_drop_unused(line);
	}
}

/*
 * Returns whether another worker has polled this list lately. Its result may be new to this
 * worker.
 */
static bool is_asked(struct wait_line *line)
{
	struct push_board *board = line->room->board;
	size_t slot = push_board_slot(line->hash);
	unsigned left, pause = 0;
	uint64_t seen;

	if (line->again)
		return false;
	left = push_board_ask(board, slot, push_board_tag(line->hash), line->room->env->now,
		lines_pauses[line->pause]);
	if (left == 0)
		return false;
	while (lines_pauses[pause] < left)
		pause++;
	lines_plan(line, pause);
	seen = push_board_seen(board, slot);
	if (seen && seen != line->empty) {
		line->empty = seen;
		blocked_wake(line);
	}
	return true;
}

/* A list of an adopted encoding may be in other items, so the first command just tries to pop. */
static void send_poll(struct wait_line *line)
{
	struct env *env = line->room->env;
	bool is_due;

	lines_take(line);
	/* The CAS id does not show that the time of a held element is over. */
	is_due = line->held_until && line->held_until <= env->now;
	if (is_due)
		line->held_until = 0;
	else if (is_asked(line))
		return;
	if (TAILQ_EMPTY(&line->places) || is_due ||
		rules_collection(env->rules, line->poll.key)->encoding != ENCODING_OPLOG) {
		plan(line);
		blocked_wake(line);
		return;
	}
	line->room->calls++;
	line->poll.done = polls_on_answer;
	env_get(env, WANT_CAS, &line->poll);
}

/* Each list is in the order of its times. */
static struct wait_line *first_due(const struct waiting *room)
{
	struct wait_line *first = NULL;

	for (int i = 0; i < LINES_PAUSES; i++) {
		struct wait_line *line = TAILQ_FIRST(&room->due[i]);
		if (line && (!first || line->poll_at < first->poll_at))
			first = line;
	}
	return first;
}

/* Counts a poll, and returns true, if it is permitted now. */
static bool take_turn(struct waiting *room)
{
	uint64_t now = room->env->now * US;
	uint64_t all = atomic_load(&room->board->lines);

	if (room->poll_from + BURST_US < now)
		room->poll_from = now - BURST_US;
	if (room->poll_from > now || (room->calls_max && room->calls >= room->calls_max))
		return false;
	room->poll_from += (uint64_t)US * US / POLLS_MOST * all / room->lines;
	return true;
}

void polls_send(struct waiting *room)
{
	struct wait_line *line;

	while ((line = first_due(room)) && line->poll_at <= room->env->now && take_turn(room))
		send_poll(line);
}

uint64_t polls_next(const struct waiting *room, uint64_t latest)
{
	const struct wait_line *line = first_due(room);
	uint64_t now = room->env->now, next;

	if (!line)
		return latest;
	next = line->poll_at > now ? line->poll_at : now + BATCH;
	return next < latest ? next : latest;
}
