#include "collection/copies/repairs.h"

#include <stdlib.h>
#include <string.h>

#include "collection/copies/pair.h"
#include "collection/text/part_key.h"
#include "util/alloc.h"
#include "util/hash.h"

enum {
	REPAIRS_MAX = 16384, /* sets that are to be repaired */
	REPAIRS_AT_ONCE = 4,
	REPAIR_BUCKETS = 1024,
	REPAIR_PAUSE_MAX = 15000 /* milliseconds between two attempts: less than `repaired` */
};

struct repair {
	TAILQ_ENTRY(repair) link;
	LIST_ENTRY(repair) same; /* in the same bucket */
	struct repairs *repairs;
	struct pair *pair; /* in progress; NULL while it waits */
	uint64_t due;      /* milliseconds of env.now */
	unsigned pause;
	enum repair_kind kind;
	bool again;
	size_t n;
	char key[];
};

struct repairs {
	struct copies *copies;
	TAILQ_HEAD(, repair) queue; /* in the order in which they were added or have failed */
	LIST_HEAD(, repair) buckets[REPAIR_BUCKETS];
	struct waiter timer;
	size_t count, running;
	bool timed;
};

static void run_repairs(struct repairs *repairs);

struct repairs *repairs_create(struct copies *copies)
{
	struct repairs *repairs = xcalloc(1, sizeof(*repairs));

	repairs->copies = copies;
	TAILQ_INIT(&repairs->queue);
	return repairs;
}

static void remove_repair(struct repair *repair)
{
	TAILQ_REMOVE(&repair->repairs->queue, repair, link);
	LIST_REMOVE(repair, same);
	repair->repairs->count--;
	free(repair);
}

void repairs_destroy(struct repairs *repairs)
{
	struct repair *repair;

	while ((repair = TAILQ_FIRST(&repairs->queue)))
		remove_repair(repair);
	free(repairs);
}

bool repairs_idle(const struct repairs *repairs)
{
	return repairs->running == 0 && !repairs->timed;
}

size_t repairs_count(const struct repairs *repairs)
{
	return repairs->count;
}

static void repair_on_timer(struct waiter *waiter, const struct result *r)
{
	struct repairs *repairs =
		(struct repairs *)((char *)waiter - offsetof(struct repairs, timer));

	(void)r;
	repairs->timed = false;
	run_repairs(repairs);
}

static void wait_for_next(struct repairs *repairs)
{
	enum { PAUSE = 200 };
	struct env *env = repairs->copies->options.env;

	if (repairs->timed || repairs->copies->stopped || !env->later ||
		TAILQ_EMPTY(&repairs->queue))
		return;
	repairs->timed = true;
	repairs->timer.done = repair_on_timer;
	env->later(env, &repairs->timer, PAUSE);
}

/* A set that could not be repaired is tried again, less and less often. */
static void repair_ended(struct pair *pair, bool done)
{
	struct repairs *repairs = pair->copies->repairs;
	struct repair *repair = TAILQ_FIRST(&repairs->queue);

	while (repair->pair != pair)
		repair = TAILQ_NEXT(repair, link);
	repairs->running--;
	repair->pair = NULL;
	if (done && !repair->again) {
		remove_repair(repair);
	} else {
		unsigned least = (unsigned)repairs->copies->settled / 2;
		repair->pause = done ? 0 : repair->pause * 2;
		if (repair->pause < least)
			repair->pause = least;
		if (repair->pause > REPAIR_PAUSE_MAX)
			repair->pause = REPAIR_PAUSE_MAX;
		repair->again = false;
		repair->due = repairs->copies->options.env->now + repair->pause;
		TAILQ_REMOVE(&repairs->queue, repair, link);
		TAILQ_INSERT_TAIL(&repairs->queue, repair, link);
	}
	pair_end_as(pair, RESULT_DONE);
	run_repairs(repairs);
}

static void start_repair(struct repair *repair)
{
	struct repairs *repairs = repair->repairs;
	const struct call call = { .verb = CALL_GET, .key = slice_of(repair->key, repair->n) };

	repairs->running++;
	repair->pair = pair_create(repairs->copies, &call, NULL);
	repair->pair->checks = repair->kind == REPAIR_PARTS;
	repair->pair->call.role.copied = repair->kind == REPAIR_COUNTER;
	if (repair->kind == REPAIR_COUNTER)
		counter_repair(repair->pair, repair_ended);
	else
		pair_repair(repair->pair, repair_ended);
}

static void run_repairs(struct repairs *repairs)
{
	uint64_t now = repairs->copies->options.env->now;
	struct repair *repair, *next;

	for (repair = TAILQ_FIRST(&repairs->queue);
		repair && repairs->running < REPAIRS_AT_ONCE && !repairs->copies->stopped;
		repair = next) {
		next = TAILQ_NEXT(repair, link);
		if (!repair->pair && repair->due <= now)
			start_repair(repair);
	}
	wait_for_next(repairs);
}

bool repairs_add(struct copies *copies, struct slice key, enum repair_kind kind)
{
	struct repairs *repairs = copies->repairs;
	struct repair *repair;
	uint64_t hash;

	key = part_key_first_base(key);
	hash = hash_key(key, copies->options.env->seed);
	LIST_FOREACH(repair, &repairs->buckets[hash % REPAIR_BUCKETS], same) {
		if (slice_equal(slice_of(repair->key, repair->n), key)) {
			if (kind > repair->kind)
				repair->kind = kind;
			repair->again = repair->pair != NULL;
			return true;
		}
	}
	if (repairs->count >= REPAIRS_MAX || copies->stopped)
		return false;
	repair = xcalloc(1, sizeof(*repair) + key.n);
	repair->repairs = repairs;
	repair->kind = kind;
	repair->n = key.n;
	memcpy(repair->key, key.p, key.n);
	repair->due = copies->options.env->now + copies->options.timeout;
	TAILQ_INSERT_TAIL(&repairs->queue, repair, link);
	LIST_INSERT_HEAD(&repairs->buckets[hash % REPAIR_BUCKETS], repair, same);
	repairs->count++;
	wait_for_next(repairs);
	return true;
}
