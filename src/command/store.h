/*
 * Storing a new set, member by member in byte order. Few members are one log. Of more, tables are written as they fill, beside what is
 * stored; at last one CAS makes the new set of them, or nobody sees anything.
 */
#ifndef COMMAND_STORE_H
#define COMMAND_STORE_H

#include "collection/set/run_writer.h"
#include "command/task.h"

struct store {
	struct task *task;
	struct op op;
	const struct collection_rule *rule;
	void (*wake)(struct store *store);
	struct run_writer writer;
	struct buf log; /* while the members are few, or the encoding has no tables; then the base */
	uint64_t number;
	bool writes;   /* the writer is in use */
	bool held;     /* for the caller: it adds no more until there is room */
	bool finished; /* all members were added, or it has failed */
};

/*
 * The set of `key` will have the time to live `ttl`. `wake` is called after store_is_full, when it may be so no longer. The failure of the
 * task is kept in its scratch. Borrows all.
 */
void store_init(
	struct store *store, struct task *task, struct slice key, int64_t ttl, void (*wake)(struct store *store));

void store_add(struct store *store, struct slice member);

/* Whether so much is under way that no more should be added yet. */
bool store_is_full(const struct store *store);

/* Replies the number of members, or the failure: then nothing is stored. The task is done when this or a later call returns. */
void store_finish(struct store *store);

#endif
