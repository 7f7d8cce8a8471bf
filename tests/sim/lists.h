/*
 * Lists in the simulated world. Each pushed item has a unique name. So the simulation knows when
 * the item was pushed, where it is, and which client popped it. The keys are l0, from which only
 * pops, also of random items, remove items; l1, which receives all commands; l2, which is like l0,
 * but has a limit; and l3, which is often missing, and which clients load with leases.
 */
#ifndef SIM_LISTS_H
#define SIM_LISTS_H

#include "world.h"

enum { SIM_LISTS = 4, SIM_LIMITED = 2, LOADED_LIST = 3, SIM_LIST_MAX = 30, SIM_ITEMS = 8192 };

struct list_version {
	uint64_t tick;
	bool absent, spoiled;
	size_t count;
	int *items;
};

struct truth_list {
	int items[SIM_ITEMS]; /* including those beyond the limit */
	size_t count;
	bool absent;
	/* a segment is missing: the items are unknown until the base is missing too */
	bool spoiled;
	struct list_version *versions;
	size_t version_count, version_capacity;
};

struct list_item {
	int list, client;
	size_t command; /* the client that pushed it */
	bool front, executed, acknowledged;
	bool set; /* by lset, so that its position means nothing */
	bool removed, delivered, uncertain;
	const struct lan_proxy *remover;
};

/*
 * While a list is being loaded: the items pushed by others, of which the first `front` are at the
 * head, and the loaded ones.
 */
struct list_lease {
	bool runs, damaged; /* damaged: a part of the loaded items is missing */
	uint64_t since;     /* tick at which this lease began */
	uint64_t deadline;
	char token[STORED_TOKEN];
	int words[SIM_ITEMS], loaded[SIM_ITEMS];
	size_t count, front, loaded_count;
	struct list_given {
		char token[STORED_TOKEN];
		uint64_t tick;
		bool told;
	} given[LEASES_GIVEN];
	size_t given_count, last_told; /* last_told: a number from 1 on, or 0 for none */
};

struct lists {
	struct list_lease lease;
	struct truth_list lists[SIM_LISTS];
	struct list_item items[SIM_ITEMS];
	int item_count;
	size_t last[SIM_CLIENTS][SIM_LISTS]; /* the number of each client's last push */
};

/* The part of struct sim_op for commands on lists. */
struct sim_list_op {
	int list, first, count; /* number of items it pushes */
	uint64_t wanted;        /* maximum number of items it pops */
	size_t before;          /* the previous push of this client */
};

void lists_init(struct world *w);
void lists_fini(struct world *w);

struct list_sequence {
	int items[SIM_ITEMS];
	size_t count;
};

/* Returns the number of the item i<number>. */
int lists_item_number(struct world *w, struct slice name);
/* The same of a stored word. */
int lists_stored_number(struct world *w, struct slice word);

/* The true state of a list. */
struct truth_list *lists_of(struct world *w, int list);

/* Returns the number of the list whose base has this key; -1 for any other key. */
int lists_index(struct slice key);

/* The rule of the list that has a limit: the seed determines which end is cut. */
struct collection_rule lists_limit(uint64_t seed);

/* Makes `op` a random command on a list, and writes its line. */
void lists_write_line(struct world *w, struct sim_op *op, struct buf *line);
/* The same for a read of the complete list. */
void lists_write_read(struct sim_op *op, int list, struct buf *line);

/* Reads the stored items of a list, or of one segment. Returns false if an item is missing. */
bool lists_read_stored(struct world *w, int list, struct list_sequence *out);
bool lists_read_segment(
	struct world *w, int list, struct slice token, bool wide, struct list_sequence *out);

/* An item was pushed by that message. */
void lists_pushed(struct world *w, const struct message *message, int item);

/* Checks that the list was missing, or existed, at some moment since the command was issued. */
void lists_check_absent(struct sim_op *op, bool absent);

/* Chooses a command for the list that is loaded; the token of a client that has one. */
command_id list_leases_choose(struct world *w);
void list_leases_write_token(struct sim_op *op, struct buf *line);

/*
 * A call on its base was executed, or its base is now this one. Returns true if all effects were
 * recorded, since the list is being loaded.
 */
bool list_leases_executed(struct world *w, const struct message *message, struct slice before);
bool list_leases_check(struct world *w, struct slice base);

/* Returns whether the base is that of a list that is being loaded. */
bool list_leases_is(struct slice base);

/* Returns whether the command belongs to a lease, whose reply is checked here. */
bool list_leases_reply(struct sim_op *op);

/* Returns whether the base of a list and all its segments exist. */
bool lists_whole(struct world *w, int list);

/* Checks a stored list: if it is complete, it must equal the true one. */
void lists_check(struct world *w, int list);

/*
 * Called when: a call on a base was executed; items may have expired; a reply was received; a
 * proxy is killed; everything has settled.
 */
void lists_executed(struct world *w, const struct message *message, int list, struct slice before);
void lists_time(struct world *w);
void lists_reply(struct sim_op *op);
void lists_proxy_dies(struct world *w, const struct lan_proxy *proxy);
void lists_end(struct world *w);

#endif
