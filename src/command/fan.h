/*
 * A fan: one request that asks for many keys at once and answers in the order in which it asked. No more is asked for at a
 * time than the client can take: some at first, then as many as what came lets expect to fit.
 *
 *     parts  ... gone | told in order | answered, or waited for | not yet asked ...
 *                     ^ written                                ^ asked
 *
 * The parts lie in a ring, so that there may be any number of them, one after the other.
 */
#ifndef COMMAND_FAN_H
#define COMMAND_FAN_H

#include "command/task.h"

enum { FAN_RING = 4096 /* as many parts as any ring needs */ };

/* First in each part. */
struct fan_part {
	struct fan *fan;
	struct buf held; /* an answer that must wait for earlier ones */
	bool done, hit, failed;
};

struct fan {
	/* These are given, the rest is zero. */
	struct task *task;
	bool (*ask)(struct fan *fan, struct fan_part *part); /* asks for the next key; false when there is no more */
	void (*finish)(struct fan *fan);                     /* all is told and answered: ends the task */
	char *parts;                                         /* not initialised */
	size_t stride, ring;                                 /* the size of a part, and how many there is room for */
	size_t total;                                        /* parts at most */
	size_t first; /* so many are asked for before it is known how large the answers are */
	size_t limit; /* answers to tell at most: when so many were, nothing more is asked for; SIZE_MAX for all */

	size_t asked, answered, written; /* parts, in order but for the answers */
	size_t hits, told;               /* answers that said something, and those that the client was given */
	uint64_t bytes;                  /* of all answers so far */
	size_t held;                     /* bytes that wait in parts */
	bool complete;                   /* there is nothing more to ask for */
	bool asking;
};

/* Starts to ask. `fan` lives in its task, which may be gone when this returns. */
void fan_start(struct fan *fan);

/*
 * Where a part's answer of so many bytes of data goes, whole; a part that has none does not ask. Valid as task_reply says, and
 * no longer than until fan_part_done, which has to follow.
 */
struct buf *fan_reply(struct fan_part *part, size_t bytes);

/* Puts a text behind what is in `out`, which fan_reply gave, and gives where to go on. */
struct buf *fan_reply_shared(struct fan_part *part, struct buf *out, struct shared *text);

/* The part's answer is complete. The task may be gone when this returns. */
void fan_part_done(struct fan_part *part);

/* In place of that: the part will never be answered. What comes behind it is not told, nor is more asked for. */
void fan_part_failed(struct fan_part *part);

#endif
