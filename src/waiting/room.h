/* The blocked commands of one worker, and the queue of each of their keys. */
#ifndef WAITING_ROOM_H
#define WAITING_ROOM_H

#include <stdint.h>
#include <sys/queue.h>

#include "protocol/call.h"
#include "waiting/push_board.h"

struct blocked;
struct env;
struct wait_place;
struct wait_places;

enum { ROOM_PAUSES = 7 };

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
	unsigned pause;   /* The pause after the next poll, as an index of lines_pauses. */
	int due;          /* The list of room->due that it is in; -1: it is being polled. */
	bool asks;        /* A command pops. */
	bool again;       /* The list may have changed meanwhile. */
	char key[];
};

TAILQ_HEAD(wait_due, wait_line);

struct waiting {
	/* As in struct waiting_options. */
	struct env *env;
	struct push_board *board;
	size_t max, calls_max;
	void (*tell)(struct env *env);

	size_t count, keys; /* Blocked commands, and the sum of their keys. */
	size_t calls;       /* Calls in flight, including timers. */
	TAILQ_HEAD(, blocked) all;
	struct blocked *next; /* Of a walk over all. Advanced if the command leaves. */
	size_t lines;
	/* The hash table of the queues; see lines.c. */
	struct {
		struct wait_line **buckets;
		size_t size, half, capacity;
	} table;
	/* Queues to poll, in the order of poll_at: one list for each pause. */
	struct wait_due due[ROOM_PAUSES];
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

#endif
