/*
 * Lists in the simulated world, beside its sets: every item that is pushed has a name of its own, so that of each it is known
 * when it was pushed, where it is, and to whom it was handed out. Keys are l0, of which items go by pops alone, and l1, which
 * sees everything.
 */
#ifndef SIM_LISTS_H
#define SIM_LISTS_H

#include "world.h"

enum { SIM_LISTS = 2, SIM_ITEMS = 8192 };

struct list_version {
	uint64_t tick;
	bool absent;
	size_t count;
	int *items;
};

struct truth_list {
	int items[SIM_ITEMS];
	size_t count;
	bool absent;
	bool spoiled; /* a segment is gone: what it comes to is not known until the base is gone too */
	struct list_version *versions;
	size_t version_count, version_capacity;
};

struct list_item {
	int list, client;
	size_t command; /* that pushed it */
	bool front, executed, acknowledged;
	bool set; /* by lset: it stands anywhere */
	bool removed, delivered, uncertain;
	const struct proxy *remover;
};

struct lists {
	struct truth_list lists[SIM_LISTS];
	struct list_item items[SIM_ITEMS];
	int item_count;
	size_t last[SIM_CLIENTS][SIM_LISTS]; /* the number of each client's last push */
};

/* What a command is about, beside what struct sim_op says. */
struct sim_list_op {
	int list, first, count; /* items that it pushes */
	uint64_t wanted;        /* to be popped */
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

/* Which list a key is; -1 for none. */
int lists_index(struct slice key);

/* Writes the line of a random command; `op` is then one on a list. */
void lists_write_line(struct world *w, struct sim_op *op, struct buf *line);
/* That of a read of all. */
void lists_write_read(struct sim_op *op, int list, struct buf *line);

/* Whether nothing that the base of a list refers to is gone. Checks what is stored of a list. */
bool lists_whole(struct world *w, int list);
void lists_check(struct world *w, int list);

/* A call on a list's base was executed, or time went by; a reply came; a proxy is about to die; all is over. */
void lists_executed(struct world *w, const struct message *message, int list);
void lists_time(struct world *w);
void lists_reply(struct sim_op *op);
void lists_proxy_dies(struct world *w, const struct proxy *proxy);
void lists_end(struct world *w);

#endif
