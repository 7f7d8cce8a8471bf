/*
 * A command that blocks on lists, to be embedded in its task: its places in the queues of its
 * keys. Keys are numbered in the order of the request.
 */
#ifndef WAITING_BLOCKED_H
#define WAITING_BLOCKED_H

#include <sys/queue.h>

#include "protocol/call.h"

struct account;
struct blocked;
struct waiting;
struct wait_line;

struct blocked_hooks {
	/*
	 * Returns whether the client must not block any more. If `ask`, also checks whether the
	 * peer has closed the socket.
	 */
	bool (*is_gone)(const struct blocked *blocked, bool ask);
	/*
	 * Starts to pop from the list of a key. In the end the line is passed on, see
	 * blocked_pass_on.
	 */
	void (*pop)(struct blocked *blocked, size_t key);
	/* Replies that there is no element, after blocked_leave. */
	void (*end)(struct blocked *blocked);
};

/* A place in the queue of a key. */
struct wait_place {
	TAILQ_ENTRY(wait_place) link;
	struct wait_line *line; /* NULL if it is not queued. */
	struct wait_places *all;
	struct slice key; /* Borrowed; valid as long as the command. */
};

/* All places of a command. They outlive it until they have been removed from the queues. */
struct wait_places {
	STAILQ_ENTRY(wait_places) link; /* In the list of those to remove. */
	struct blocked *owner;          /* NULL if it has left. */
	size_t count, joined;           /* Number of places, and of queued places. */
	struct wait_place at[];
};

struct blocked {
	TAILQ_ENTRY(blocked) link; /* In the list of queued commands. */
	const struct blocked_hooks *hooks;
	struct waiting *room;
	struct account *account;
	struct wait_places *places; /* NULL after it has left. */
	struct wait_line *line;     /* The queue for which it pops, or NULL. */
	struct waiter joins;
	uint64_t deadline; /* In the time of env.now; UINT64_MAX for none. */
	bool is_queued;
	bool is_busy; /* It pops, or joins its queues: it must not be woken. */
};

/*
 * Initializes a command of `count` keys. The caller sets the deadline, and the key of each
 * place. The account pays for long work; it is borrowed until blocked_leave, as is `hooks`.
 */
void blocked_init(struct blocked *blocked, struct waiting *room, const struct blocked_hooks *hooks,
	struct account *account, size_t count);

/* Returns the bytes that blocked_init allocates for `count` keys. */
size_t blocked_size(size_t count);

/* Leaves all queues. Must be called once before the command is freed, queued or not. */
void blocked_leave(struct blocked *blocked);

/*
 * Continues to wait after an attempt that found no element, or ends. `line` of blocked_pass_on
 * is blocked->line from before the attempt ended; NULL does nothing. It lets the next command
 * pop if this one popped, or if the list may have changed.
 */
void blocked_stay(struct blocked *blocked);
void blocked_pass_on(struct wait_line *line, bool popped);

/* --- for the other files of this room --- */

/* Returns whether the command must not get an element any more. */
bool blocked_is_over(const struct blocked *blocked, bool ask);

/* Takes places in all queues, in slices; then as blocked_stay. */
void blocked_join(struct blocked *blocked);

/*
 * Lets the first command pop that is not busy with another of its keys. Ends commands at the
 * head of the queue whose deadline has passed, or whose clients send no more: no element is
 * popped for them.
 */
void blocked_wake(struct wait_line *line);

#endif
