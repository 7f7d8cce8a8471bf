#include "waiting/lines.h"

#include <stdlib.h>

#include "collection/env.h"
#include "util/alloc.h"

enum { BUCKETS_MIN = 64 };

const unsigned lines_pauses[LINES_PAUSES] = { 5, 10, 20, 40, 80, 160, 250 };

/* --- the table --- */

/*
 * Linear hashing: the table has between `half` and twice as many buckets. A hash whose bucket
 * does not exist yet is in the bucket that will be split for it.
 */
static struct wait_line **line_bucket(const struct waiting *room, uint64_t hash)
{
	size_t i = hash & (room->table.half * 2 - 1);

	return &room->table.buckets[i < room->table.size ? i : i - room->table.half];
}

static void grow_table(struct waiting *room)
{
	struct wait_line **from, *line;

	if (room->table.size == room->table.capacity) {
		room->table.capacity =
			room->table.capacity ? room->table.capacity * 2 : BUCKETS_MIN;
		room->table.buckets = xrealloc(
			room->table.buckets, room->table.capacity * sizeof(struct wait_line *));
	}
	if (room->table.size == room->table.half * 2)
		room->table.half = room->table.size ? room->table.size : 1;
	room->table.buckets[room->table.size++] = NULL;
	if (room->table.size == 1)
		return;
	from = &room->table.buckets[room->table.size - 1 - room->table.half];
	while ((line = *from)) {
		struct wait_line **to = line_bucket(room, line->hash);
		if (to == &room->table.buckets[room->table.size - 1]) {
			*from = line->next;
			line->next = *to;
			*to = line;
		} else {
			from = &line->next;
		}
	}
}

static struct wait_line *find_wait_line(const struct waiting *room, struct slice key, uint64_t hash)
{
	struct wait_line *line = room->table.size ? *line_bucket(room, hash) : NULL;

	while (line && (line->hash != hash || !slice_equal(line->poll.key, key)))
		line = line->next;
	return line;
}

static void insert_line(struct wait_line *line)
{
	struct waiting *room = line->room;
	struct wait_line **bucket;

	if (room->lines++ >= room->table.size)
		grow_table(room);
	bucket = line_bucket(room, line->hash);
	line->next = *bucket;
	*bucket = line;
}

static void withdraw(struct wait_line *line)
{
	struct waiting *room = line->room;
	struct wait_line **at = line_bucket(room, line->hash);

	while (*at != line)
		at = &(*at)->next;
	*at = line->next;
	if (--room->lines)
		return;
	free(room->table.buckets);
	room->table.buckets = NULL;
	room->table.size = room->table.half = room->table.capacity = 0;
}

/* --- queues --- */

struct wait_line *lines_find(const struct waiting *room, struct slice key)
{
	return find_wait_line(room, key, push_board_hash(room->board, key));
}

void lines_plan(struct wait_line *line, unsigned pause)
{
	line->poll_at = line->room->env->now + lines_pauses[pause];
	line->due = (int)pause;
	TAILQ_INSERT_TAIL(&line->room->due[pause], line, link);
}

void lines_take(struct wait_line *line)
{
	if (line->due >= 0)
		TAILQ_REMOVE(&line->room->due[line->due], line, link);
	line->due = -1;
}

/* The slot counts the key before its pushes are read, so that none is missed. */
static void enter_slot(struct wait_line *line)
{
	struct push_board *board = line->room->board;
	size_t slot = push_board_slot(line->hash);
	struct wait_slot *mine = &line->room->slots[slot];

	push_board_wait(board, slot, true);
	if (LIST_EMPTY(&mine->lines))
		mine->pushed = push_board_pushed(board, slot);
	LIST_INSERT_HEAD(&mine->lines, line, beside);
}

static void leave_slot(struct wait_line *line)
{
	if (line->room->next_line == line)
		line->room->next_line = LIST_NEXT(line, beside);
	LIST_REMOVE(line, beside);
	push_board_wait(line->room->board, push_board_slot(line->hash), false);
}

struct wait_line *lines_get(struct waiting *room, struct slice key)
{
	uint64_t hash = push_board_hash(room->board, key);
	struct wait_line *line = find_wait_line(room, key, hash);

	if (line)
		return line;
	line = xcalloc(1, sizeof(*line) + key.n);
	slice_write(line->key, key);
	line->room = room;
	line->hash = hash;
	line->poll.key = slice_of(line->key, key.n);
	TAILQ_INIT(&line->places);
	insert_line(line);
	lines_plan(line, 0);
	enter_slot(line);
	return line;
}

void lines_drop_unused(struct wait_line *line)
{
	if (!TAILQ_EMPTY(&line->places) || line->due < 0 || line->asks)
		return;
	lines_take(line);
	withdraw(line);
	leave_slot(line);
	free(line);
}
