#include "collection/copies/repairs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

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
	uint64_t due; /* milliseconds of env.now */
	unsigned pause;
	enum repair_kind kind;
	bool started; /* in progress */
	bool again;   /* was added meanwhile */
	size_t n;
	char key[];
};

struct repairs {
	struct repairs_options options;
	TAILQ_HEAD(, repair) queue; /* in the order in which they were added or have failed */
	LIST_HEAD(, repair) buckets[REPAIR_BUCKETS];
	struct waiter timer;
	size_t count, running;
	bool timed, stopped;
};

static void run_repairs(struct repairs *repairs);

struct repairs *repairs_create(const struct repairs_options *options)
{
	struct repairs *repairs = xcalloc(1, sizeof(*repairs));

	repairs->options = *options;
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

void repairs_stop(struct repairs *repairs)
{
	repairs->stopped = true;
}

static struct repair *find_repair(struct repairs *repairs, struct slice key, uint64_t hash)
{
	struct repair *repair;

	LIST_FOREACH(repair, &repairs->buckets[hash % REPAIR_BUCKETS], same) {
		if (slice_equal(slice_of(repair->key, repair->n), key))
			return repair;
	}
	return NULL;
}

static void repairs_on_timer(struct waiter *waiter, const struct result *r)
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
	struct env *env = repairs->options.env;

	if (repairs->timed || repairs->stopped || !env->later || TAILQ_EMPTY(&repairs->queue))
		return;
	repairs->timed = true;
	repairs->timer.done = repairs_on_timer;
	env->later(env, &repairs->timer, PAUSE);
}

static void run_repairs(struct repairs *repairs)
{
	const struct repairs_options *options = &repairs->options;
	struct repair *repair, *next;

	for (repair = TAILQ_FIRST(&repairs->queue);
		repair && repairs->running < REPAIRS_AT_ONCE && !repairs->stopped; repair = next) {
		next = TAILQ_NEXT(repair, link);
		if (repair->started || repair->due > options->env->now)
			continue;
		repair->started = true;
		repairs->running++;
		options->start(options->arg, slice_of(repair->key, repair->n), repair->kind);
	}
	wait_for_next(repairs);
}

/* A set that could not be repaired is tried again, less and less often. */
static void try_later(struct repair *repair, bool done)
{
	struct repairs *repairs = repair->repairs;

	repair->pause = done ? 0 : repair->pause * 2;
	if (repair->pause < repairs->options.least)
		repair->pause = repairs->options.least;
	if (repair->pause > REPAIR_PAUSE_MAX)
		repair->pause = REPAIR_PAUSE_MAX;
	repair->again = false;
	repair->due = repairs->options.env->now + repair->pause;
	TAILQ_REMOVE(&repairs->queue, repair, link);
	TAILQ_INSERT_TAIL(&repairs->queue, repair, link);
}

void repairs_ended(struct repairs *repairs, struct slice key, bool done)
{
	struct repair *repair =
		find_repair(repairs, key, hash_key(key, repairs->options.env->seed));

	assert(repair && repair->started);
	repairs->running--;
	repair->started = false;
	if (done && !repair->again)
		remove_repair(repair);
	else
		try_later(repair, done);
	run_repairs(repairs);
}

bool repairs_add(struct repairs *repairs, struct slice key, enum repair_kind kind)
{
	const struct env *env = repairs->options.env;
	struct repair *repair;
	uint64_t hash;

	key = part_key_first_base(key);
	hash = hash_key(key, env->seed);
	repair = find_repair(repairs, key, hash);
	if (repair) {
		if (kind > repair->kind)
			repair->kind = kind;
		repair->again = repair->started;
		return true;
	}
	if (repairs->count >= REPAIRS_MAX || repairs->stopped)
		return false;
	repair = xcalloc(1, sizeof(*repair) + key.n);
	repair->repairs = repairs;
	repair->kind = kind;
	repair->n = key.n;
	memcpy(repair->key, key.p, key.n);
	repair->due = env->now + repairs->options.first;
	TAILQ_INSERT_TAIL(&repairs->queue, repair, link);
	LIST_INSERT_HEAD(&repairs->buckets[hash % REPAIR_BUCKETS], repair, same);
	repairs->count++;
	wait_for_next(repairs);
	return true;
}
