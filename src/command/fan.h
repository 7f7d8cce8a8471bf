/*
 * A fan reads many keys in parallel for one request, and replies in the order of the keys. Each
 * key is a part. A fan starts with a few keys. Then it keeps as many in flight as its window
 * allows; the window shrinks as answers get larger. All fans of a host share the parts in flight
 * equally, since their calls delay those of other clients.
 *
 *     parts    replied to the client | answered or awaited | not yet asked
 *                                    ^ written             ^ asked
 *
 * The parts are in a ring, so the number of parts is not limited.
 */
#ifndef COMMAND_FAN_H
#define COMMAND_FAN_H

#include "command/task.h"

enum { FAN_RING = 4096 /* The maximum number of parts in a ring. */ };

/* Must be the first member of each part. */
struct fan_part {
	struct fan *fan;
	struct buf held; /* An answer that is held back until earlier ones are replied. */
	/* A text to insert after the first `before` bytes of `held`, or NULL. */
	struct shared *text;
	size_t before;
	bool done, hit, failed;
};

struct fan {
	/* The caller sets the next members, and clears the others. */
	struct task *task;
	/* Requests the next key. Returns false if there is none. */
	bool (*ask)(struct fan *fan, struct fan_part *part);
	/* Ends the task when all answers are replied. NULL: task_reply_end does. */
	void (*finish)(struct fan *fan);
	/* Returns whether the next key must wait for an earlier one; or NULL. */
	bool (*waits)(const struct fan *fan);
	/* Called when the parts in flight may stop early; or NULL. */
	void (*abandon)(struct fan *fan);
	char *parts;         /* Memory of the ring; need not be cleared. */
	size_t stride, ring; /* Bytes of a part; number of parts in the ring. */
	size_t total;        /* Maximum number of parts. */
	size_t first;        /* Number of parts to request before the size of answers is known. */
	/*
	 * Maximum number of answers with data to reply. Stops requesting after these. SIZE_MAX:
	 * no limit.
	 */
	size_t limit;

	size_t asked, answered, written; /* Numbers of parts. Answers may arrive in any order. */
	size_t hits, replied;            /* Answers with data: all, and those in the reply. */
	uint64_t bytes;                  /* Bytes of all answers so far. */
	size_t held;                     /* Bytes that are held in parts. */
	bool complete;                   /* No more keys are requested. */
	struct {
		bool on;
		bool flies;  /* It counts in host->fans. */
		bool pauses; /* Until the next slice of the client, which `waiter` begins. */
		struct waiter waiter;
	} asking;
};

/* Returns part number `i`, which must be requested and not yet written. */
struct fan_part *fan_part_at(const struct fan *fan, size_t i);

/* Starts to request keys. `fan` is part of its task, which may be freed when this returns. */
void fan_start(struct fan *fan);

/*
 * Adds the answer of a part, which has data, to the reply. Must be followed by fan_part_done,
 * even within `ask`. Must not be called for an answer without data.
 */
void fan_say(struct fan_part *part, const struct reply *reply);

/* Marks the answer of a part as complete. The task may be freed when this returns. */
void fan_part_done(struct fan_part *part);

/*
 * Replaces fan_part_done for a part that has no answer. Later parts are not replied, and no
 * more keys are requested.
 */
void fan_part_failed(struct fan_part *part);

#endif
