/*
 * Stores a new set, member by member in byte order. A small set is one log. For a larger one,
 * tables are written as they fill, next to the stored set; at the end one CAS replaces the set.
 * Until then no reader sees the new tables.
 */
#ifndef COMMAND_STORE_H
#define COMMAND_STORE_H

#include "collection/set/run_writer.h"
#include "command/task.h"

struct store {
	struct task *task;
	struct op op;
	const struct collection_rule *rule;
	uint32_t date; /* when the members expire; EXPIRY_NONE for never */
	void (*wake)(struct store *store);
	struct run_writer writer;
	/* Collects the members while they are few or the encoding has no tables; then the base. */
	struct buf log;
	uint64_t number;
	bool writes;   /* The writer is in use. */
	bool held;     /* For the caller: it stops adding until there is room. */
	bool finished; /* All members were added, or the store has failed. */
};

/*
 * Initializes a store of the set `key` with the time to live `ttl`. `wake` is called after
 * store_is_full returned true, when there may be room again. A failure of the task is kept in
 * its scratch. Borrows all arguments.
 */
void store_init(struct store *store, struct task *task, struct slice key, int64_t ttl,
	void (*wake)(struct store *store));

void store_add(struct store *store, struct slice member);

/* Returns whether so many writes are in flight that no more members should be added yet. */
bool store_is_full(const struct store *store);

/*
 * Replies the number of members, or the failure, in which case nothing is stored. The task is
 * done when this or a later call returns.
 */
void store_finish(struct store *store);

#endif
