/*
 * The room of one worker: its blocked commands, and the queue of each key, in a hash table that
 * grows by one bucket at a time, so that no command pays for all. Idle queues wait for their
 * next poll in lists, one for each length of the pause.
 */
#ifndef WAITING_LINES_H
#define WAITING_LINES_H

#include <stdint.h>
#include <sys/queue.h>

#include "protocol/call.h"
#include "waiting/push_board.h"

struct blocked;
struct env;
struct wait_place;
struct wait_places;

enum { LINES_PAUSES = 7 };

/* The queue of a key. */
struct wait_line {
	struct wait_line *next; /* In the same bucket. */
	LIST_ENTRY(wait_line) beside;
	TAILQ_ENTRY(wait_line) link; /* In room->due. */
	struct waiting *room;
	TAILQ_HEAD(, wait_place) places;
	struct waiter poll;
	uint64_t hash;
	uint64_t poll_at; /* In the time of env.now. */
	uint64_t empty;   /* CAS id of the list when it was last found empty; 0 if it never was. */
	/* In the time of env.now: when held elements may be given back; 0 for never. */
	uint64_t held_until;
	unsigned pause; /* The pause after the next poll, as an index of lines_pauses. */
	int due;        /* The list of room->due that it is in; -1: it is being polled. */
	bool asks;      /* A command pops. */
	bool again;     /* The list may have changed meanwhile. */
	char key[];
};

TAILQ_HEAD(wait_due, wait_line);

struct waiting {
	/* The arguments of waiting_create. */
	struct env *env;
	struct push_board *board;
	size_t max, calls_max;
	void (*tell)(struct env *env);

	size_t count; /* Of blocked commands. */
	size_t calls; /* Calls in flight, including timers. */
	TAILQ_HEAD(, blocked) all;
	struct blocked *next; /* Of a walk over all. Advanced if the command leaves. */
	size_t lines;
	/* The hash table of the queues; see lines.c. */
	struct {
		struct wait_line **buckets;
		size_t size, half, capacity;
	} table;
	/* Queues to poll, in the order of poll_at: one list for each pause. */
	struct wait_due due[LINES_PAUSES];
	uint64_t poll_from; /* In microseconds: when the next poll is permitted. */
	/* The queues of each slot of the board, and the pushes that were handled. */
	struct wait_slot {
		LIST_HEAD(, wait_line) lines;
		uint64_t pushed;
	} slots[PUSH_BOARD_SLOTS];
	unsigned groups[PUSH_BOARD_GROUPS];
	struct wait_line *next_line; /* Of a walk over a slot. Advanced if the queue is freed. */
	struct {
		struct waiter waiter;
		uint64_t deadline; /* The earliest deadline, or an earlier time. */
		/* In the time of env.now: when to check for clients that send no more. */
		uint64_t look_at;
		bool is_set;
	} timer;
	/* Places of commands that have left. */
	struct {
		STAILQ_HEAD(, wait_places) places;
		struct waiter waiter;
		bool is_paused; /* The waiter will continue to remove them. */
	} left;
	bool ended;
};

/* Milliseconds between two polls of a key, which grow while its list stays empty. */
extern const unsigned lines_pauses[LINES_PAUSES];

struct wait_line *lines_find(const struct waiting *room, struct slice key);

/* Finds or creates a queue; it is polled for the first time after the shortest pause. */
struct wait_line *lines_get(struct waiting *room, struct slice key);

/* Frees the queue if it is not in use any more. */
void lines_drop_unused(struct wait_line *line);

/* Polls the queue after this pause, an index of lines_pauses. lines_take cancels that. */
void lines_plan(struct wait_line *line, unsigned pause);
void lines_take(struct wait_line *line);

#endif
