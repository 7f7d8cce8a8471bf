/*
 * A fan reads many keys for one request, in parallel, and replies in the order of the keys. A part is one key. A fan asks for a
 * few keys at first. Then it asks for as many as its window allows, which shrinks as answers are larger.
 *
 *     parts    replied to the client | answered or awaited | not yet asked
 *                                    ^ written             ^ asked
 *
 * The parts are in a ring, so a fan may have any number of them.
 */
#ifndef COMMAND_FAN_H
#define COMMAND_FAN_H

#include "command/task.h"

enum { FAN_RING = 4096 /* parts of the largest ring */ };

/* First in each part. */
struct fan_part {
	struct fan *fan;
	struct buf held;     /* an answer that waits for earlier ones: */
	struct shared *text; /* NULL, or a text behind its first `before` bytes */
	size_t before;
	bool done, hit, failed;
};

struct fan {
	/* The caller sets these, and clears the others. */
	struct task *task;
	bool (*ask)(struct fan *fan, struct fan_part *part); /* asks for the next key; false if there is none */
	void (*finish)(struct fan *fan);      /* all answers were replied: ends the task; NULL: task_reply_end does */
	bool (*waits)(const struct fan *fan); /* the next key must wait for an earlier one; or NULL */
	void (*abandon)(struct fan *fan);     /* asked parts may stop early; or NULL */
	char *parts;                          /* memory of the ring, not cleared */
	size_t stride, ring;                  /* bytes of a part; parts of the ring */
	size_t total;                         /* parts at most */
	size_t first;                         /* parts asked before the size of answers is known */
	size_t limit; /* answers with data to reply at most: after these nothing is asked; SIZE_MAX for all */

	size_t asked, answered, written; /* numbers of parts; answers may come in any order */
	size_t hits, replied;            /* answers with data: all, and those in the reply */
	uint64_t bytes;                  /* of all answers so far */
	size_t held;                     /* bytes that wait in parts */
	bool complete;                   /* nothing more is asked */
	bool asking;
};

/* The part of that number, which must be asked and not yet written. */
struct fan_part *fan_part_at(const struct fan *fan, size_t i);

/* Starts to ask. `fan` is part of its task, which may be freed when this returns. */
void fan_start(struct fan *fan);

/*
 * Replies the answer of a part, which has data. fan_part_done must follow, even within `ask`. It is not called for an answer without
 * data.
 */
void fan_say(struct fan_part *part, const struct reply *reply);

/* The part's answer is complete. The task may be freed when this returns. */
void fan_part_done(struct fan_part *part);

/* Instead of fan_part_done: the part has no answer. Later parts are not replied, and nothing more is asked. */
void fan_part_failed(struct fan_part *part);

#endif
