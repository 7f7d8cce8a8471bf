/*
 * The servers of a simulated pool change: servers, proxies with the code under test, a network,
 * and clients. Only replies to clients are checked, key by key: see linear.h. One seed determines
 * the whole history.
 *
 * A history has one to three changes of the ring. Each proxy receives each of them at a different
 * time, and its clock differs from the others by less than the margin. Members of one set expire
 * within seconds: moving_dated.c. In some histories those of the others expire long after the last
 * command: then the sets must be empty. In a history with a proxy that still has the old
 * configuration, or whose clock is wrong, reads may be stale: there only acknowledged writes are
 * checked at the end. If a proxy has the old configuration, all replies about plain items are
 * checked: moving_undone.c.
 */
#ifndef SIM_MOVING_H
#define SIM_MOVING_H

#include <sys/queue.h>

#include "collection/move/moves.h"
#include "command/task.h"
#include "histories.h"
#include "lan.h"
#include "linear.h"

enum {
	MOVING_SERVERS = 5,
	MOVING_PROXIES = 3,
	MOVING_CLIENTS = 6,
	MOVING_KEYS = 11,
	MOVING_MARGIN = 2, /* seconds */
	MOVING_APART =
		/*
		 * milliseconds by which a clock may be wrong; a call may take the rest of the
		 * margin
		 */
	500,
	MOVING_RING = 10,    /* places on a ring */
	MOVING_CHANGES = 3,  /* of the ring, at most */
	MOVING_MEMBERS = 48, /* of a set */
	MOVING_LIFE = 1000,  /* seconds after which members expire, more than a history has */
	MOVING_DATE = 60 * 60 * 24 * 30
};

enum moving_mutation {
	MOVING_NONE,
#define MUTATION(name, what) MOVING_##name,
#include "movings.def"
#undef MUTATION
	MOVING_MUTATIONS
};

enum moving_kind {
	MOVING_SET,
	MOVING_DATED,
	MOVING_LIST_KEY,
	MOVING_COUNTER,
	MOVING_TEXT,
	MOVING_NUMBER
};

struct moving_ring {
	int count, servers[MOVING_RING]; /* a server with a higher weight has more places */
	uint64_t hash;
};

/* The configuration of a proxy: one ring; or two, and the time from which the second one counts. */
struct moving_config {
	struct moving_ring former, ring;
	bool moves;
	int64_t at;
};

struct moving;
struct moving_proxy;

/*
 * As worker/generation.h: each configuration has its own lanes; operations that are in flight end
 * in the old ones.
 */
struct moving_generation {
	TAILQ_ENTRY(moving_generation) link;
	struct moving_proxy *proxy;
	struct lan_host lan;   /* with the lanes */
	struct lan_host inner; /* the env for calls of moves, which name their server */
	struct moves *moves;   /* NULL if there is one ring */
	struct moving_config config;
};

struct moving_proxy {
	struct lan_proxy lan; /* first; its first host is unused */
	struct moving *world;
	TAILQ_HEAD(, moving_generation) generations; /* the last one is the current one */
	/* number of its configuration: world->configs */
	size_t config;
};

/*
 * A command of a client. `a` and `b` are its arguments and its reply; moving_model.c defines them.
 */
struct moving_op {
	TAILQ_ENTRY(moving_op) link;
	struct moving *world;
	int client, key;
	command_id command;
	bool lost;   /* not a command: the item was lost */
	bool moved;  /* not a command: the item got another cas id */
	bool final;  /* not a command: the item's time to live at the end */
	bool former; /* its proxy still has the old configuration, with only the former ring */
	bool on_new; /* the key moves, and the proxy has reached the time of the move */
	struct buf line, reply;
	struct account account;  /* of a command that is not sent by a client */
	uint64_t asked, replied; /* ticks; 0: no reply */
	uint64_t mask, number;
	size_t text; /* number of a text: see moving_text */
	int64_t exptime;
	int64_t least[MOVING_MEMBERS]; /* of a read: the dates when it was asked for */
	uint64_t cas;
	struct {
		struct slice word; /* the first one of the line */
		bool has_value;
		struct slice value;
		uint64_t mask, number, cas;
		size_t text;
		bool is_number;
	} got;
};

struct moving_key {
	enum moving_kind kind;
	char name[32];
	struct moving_op *ops[LINEAR_OPS];
	size_t count;
	int elements; /* of a list: number of pushed elements */
	bool spoiled; /* a part was lost: the state is unknown */
	bool claimed; /* a claim arrived late */
	uint64_t cas[MOVING_CLIENTS];
	/* The known state, in a history with stale reads. */
	signed char words[MOVING_MEMBERS + 256]; /* 1: member, -1: not a member, 0: unknown */
	bool removed[MOVING_MEMBERS];            /* its only writer has removed it */
	/* the proxy with the old configuration has removed it */
	bool contested[MOVING_MEMBERS];
	bool on_new[MOVING_MEMBERS]; /* where its only writer wrote last */
	uint64_t counted;
	/* Of members that expire: the least and the greatest date that may count. */
	struct moving_date {
		int64_t least, most;
		bool vague; /* an addition may still be executed */
	} dates[MOVING_MEMBERS];
};

struct moving {
	struct lan lan;
	struct moving_proxy proxies[MOVING_PROXIES];
	TAILQ_HEAD(, moving_op) ops; /* all of them */
	struct moving_key keys[MOVING_KEYS];
	struct rules rules;
	struct collection_rule own_rules[2]; /* that of all keys, and perhaps of sets */
	bool expires;                        /* members of sets do so, after the history */
	struct collection_options options;
	struct moving_client {
		struct account account;
		int proxy;
		bool busy;
	} clients[MOVING_CLIENTS];
	struct moving_config configs[2 * MOVING_CHANGES + 1];
	struct moving_text {
		struct buf bytes;
		uint64_t hash;
	} * texts;
	size_t text_count, text_capacity;
	uint64_t tick; /* number of all events */
	enum moving_mutation mutation;
	/* proxies fail, servers lose items, a proxy keeps the old configuration */
	bool faults, losses, stale;
	int forgotten; /* a proxy, or -1 */
	const char *violation;
	char detail[600];
	/* State of mutations. */
	struct moving_seen {
		bool known;
		struct result result;
		struct buf value;
	} seen[MOVING_PROXIES][MOVING_KEYS];
	/* Totals over the history. */
	uint64_t commands, failures, moved, merged, waited, undecided;
};

/* Runs the history of a seed. Returns false on a violation, which is in world->violation. */
bool moving_run(struct moving *world, uint64_t seed, enum moving_mutation mutation, bool verbose);

/*
 * In some histories the server of a write loses its item right before it, and receives the late
 * claim of a mover. So a guard that has found the item is overtaken. With mutations of guards this
 * happens more often.
 */
void moving_lose_to_claim(struct moving *world, const struct message *message);

/* For histories_main. */
extern const struct histories moving_histories;

void moving_fail(struct moving *world, const char *what, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
uint64_t moving_random(struct moving *world, uint64_t below);
bool moving_chance(struct moving *world, unsigned percent);
uint64_t moving_now(const struct moving *world); /* milliseconds */

/* --- moving_network.c --- */

/* Returns the server of a key on a ring. */
int moving_place(const struct moving_ring *ring, struct slice key);

/* Return whether the key is that of a part; the key of its base, or the key itself. */
struct slice moving_base(struct slice key, bool *is_part);

/* Returns the item of a key on a server, or NULL. */
struct memcached_item *moving_item(struct moving *world, int server, struct slice key);

extern const struct lan_hooks moving_hooks;

/* The implementation of env.call of lanes. */
void moving_call(struct env *env, const struct call *call, struct waiter *waiter);

/* Returns the generation that a message belongs to, or NULL. */
struct moving_generation *moving_generation(const struct message *message);

/* Restarts a server, which loses all items. */
void moving_restart(struct moving *world, int server);

/* --- moving_proxy.c --- */

void moving_start_proxy(struct moving *world, int index);
void moving_stop_proxy(struct moving_proxy *proxy);
void moving_kill(struct moving *world, int index);

/* Sets the next configuration of a proxy. */
void moving_configure(struct moving_proxy *proxy, size_t config);

void moving_set_clock(struct lan_proxy *proxy);
struct moving_generation *moving_current(const struct moving_proxy *proxy);
/* Frees old generations with nothing in flight. */
void moving_retire(struct moving_proxy *proxy);

/* --- moving_clients.c --- */

void moving_init_keys(struct moving *world);
void moving_act(struct moving *world, int client);
/* Sends a command of a client that reads the whole key. */
void moving_read(struct moving *world, int client, int key);
/* Sends a get of an item by the tool. Its reply must not be an error. */
void moving_get(struct moving *world, int proxy, struct slice item);
/* Records an event of a key that is not a command. Returns NULL if the history is full. */
struct moving_op *moving_note(struct moving *world, int key);
void moving_answered(struct moving_op *op);
void moving_free_op(struct moving_op *op);
/* Returns the number of the key with that name, or -1. */
int moving_find_key(const struct moving *world, struct slice name);

/* --- moving_model.c --- */

/* Return the number of a text, from 1 on; the text of a number. */
size_t moving_text(struct moving *world, struct slice text);
struct slice moving_text_of(const struct moving *world, size_t number);

void moving_check_key(struct moving *world, int key);

/* Returns the new state of an item after a command: the number of its text, or 0. */
enum linear_step moving_step_item(struct moving *world, const struct moving_op *op, uint64_t *item);

/* --- moving_dated.c --- */

/* Writes the arguments of a command on the set whose members expire; reads its reply, or has none. */
void moving_dated_write(struct moving_op *op);
void moving_dated_answered(struct moving_op *op);
/* Its item was lost. */
void moving_dated_lost(struct moving_key *key);

/* --- moving_undone.c --- */

/* As linear.step. */
enum linear_step moving_step_undone(struct moving *world, const struct moving_op *op,
	const struct linear_state *before, unsigned choice, struct linear_state *after);

/* --- moving_mutate.c --- */

void moving_mutate_sent(struct moving *world, struct message *message);
/* Returns true if it counts as executed. */
bool moving_mutate_execute(struct moving *world, struct message *message);
void moving_mutate_executed(struct moving *world, struct message *message);

#endif
