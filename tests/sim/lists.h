/*
 * Lists in the simulated world. Each pushed item has a unique name. So the simulation knows when the item was pushed, where it
 * is, and which client popped it. The keys are l0, from which only pops, also of random items, remove items, l1, which gets all commands,
 * l2, which is as l0, but has a limit, and l3, which is often missing, and which clients load with leases.
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
	int items[SIM_ITEMS]; /* with those beyond the limit */
	size_t count;
	bool absent;
	bool spoiled; /* a segment is gone: the items are unknown until the base is gone too */
	struct list_version *versions;
	size_t version_count, version_capacity;
};

struct list_item {
	int list, client;
	size_t command; /* that pushed it */
	bool front, executed, acknowledged;
	bool set; /* by lset, so that its place says nothing */
	bool removed, delivered, uncertain;
	const struct lan_proxy *remover;
};

/* While somebody loads a list: what others pushed, of which `front` items stand in front, and what was loaded. */
struct list_lease {
	bool runs, damaged; /* damaged: a part of what was loaded is gone */
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

/* The part of struct sim_op that only commands on lists have. */
struct sim_list_op {
	int list, first, count; /* items that it pushes */
	uint64_t wanted;        /* how many items it pops at most */
	size_t before;          /* this client's last push before it */
};

void lists_init(struct world *w);
void lists_fini(struct world *w);

struct list_sequence {
	int items[SIM_ITEMS];
	size_t count;
};

/* The number of the item i<number>. */
int lists_item_number(struct world *w, struct slice name);

/* What is true of a list. */
struct truth_list *lists_of(struct world *w, int list);

/* The number of the list whose base has this key; -1 for any other key. */
int lists_index(struct slice key);

/* The rule of the list that has a limit: which end is cut depends on the seed. */
struct collection_rule lists_limit(uint64_t seed);

/* Makes `op` a random command on a list, and writes its line. */
void lists_write_line(struct world *w, struct sim_op *op, struct buf *line);
/* The same for a read of the whole list. */
void lists_write_read(struct sim_op *op, int list, struct buf *line);

/* Reads what is stored of a list, or of one segment: false if something is missing. */
bool lists_read_stored(struct world *w, int list, struct list_sequence *out);
bool lists_read_segment(struct world *w, int list, struct slice token, struct list_sequence *out);

/* An item was pushed by that message. */
void lists_pushed(struct world *w, const struct message *message, int item);

/* The list must have been missing, or there, at some moment since the command was issued. */
void lists_check_absent(struct sim_op *op, bool absent);

/* A command for the list that is loaded; the token of one that has it. */
command_id list_leases_choose(struct world *w);
void list_leases_write_token(struct sim_op *op, struct buf *line);

/* A call on its base was executed, or its base is this one now: true if that is said all about it, since somebody loads it. */
bool list_leases_executed(struct world *w, const struct message *message, struct slice before);
bool list_leases_check(struct world *w, struct slice base);

/* Whether the base is one that somebody loads. */
bool list_leases_is(struct slice base);

/* Whether the command is one of a lease, whose reply is checked here. */
bool list_leases_reply(struct sim_op *op);

/* Whether the base of a list and all its segments are there. */
bool lists_whole(struct world *w, int list);

/* Checks a stored list: when it is whole, it must be the true one. */
void lists_check(struct world *w, int list);

/* To be called when: a call on a base was executed; items may have expired; a reply came; a proxy is killed; all has settled. */
void lists_executed(struct world *w, const struct message *message, int list, struct slice before);
void lists_time(struct world *w);
void lists_reply(struct sim_op *op);
void lists_proxy_dies(struct world *w, const struct lan_proxy *proxy);
void lists_end(struct world *w);

#endif
