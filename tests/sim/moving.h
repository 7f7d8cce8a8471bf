/*
 * The pool changes in a simulated world: servers, proxies with the code under test, a network, and clients. What clients alone see is
 * checked, key by key: see linear.h. One seed determines the whole history.
 *
 * A history has one to three changes of the ring. Each proxy gets each of them at another time, and its clock is apart from the others
 * by less than the margin. In a history with a proxy that is forgotten, or whose clock is wrong, reads may be stale: there only what
 * was acknowledged is looked for at the end. Of plain items, where a proxy is forgotten, all that clients see is checked: moving_undone.c.
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
	MOVING_KEYS = 10,
	MOVING_MARGIN = 2, /* seconds */
	MOVING_APART =
		500,     /* milliseconds that a clock may be wrong; a call may take as long as is left of the margin */
	MOVING_RING = 8, /* places on a ring */
	MOVING_CHANGES = 3,  /* of the ring, at most */
	MOVING_MEMBERS = 48, /* of a set */
	MOVING_DATE = 60 * 60 * 24 * 30
};

enum moving_mutation {
	MOVING_NONE,
#define MUTATION(name, what) MOVING_##name,
#include "movings.def"
#undef MUTATION
	MOVING_MUTATIONS
};

enum moving_kind { MOVING_SET, MOVING_LIST_KEY, MOVING_COUNTER, MOVING_TEXT, MOVING_NUMBER };

struct moving_ring {
	int count, servers[MOVING_RING]; /* a server with more weight has more places */
	uint64_t hash;
};

/* What a proxy is told: one ring; or two, and when the second one counts. */
struct moving_config {
	struct moving_ring former, ring;
	bool moves;
	int64_t at;
};

struct moving;
struct moving_proxy;

/* As worker/generation.h: each configuration has lanes of its own, and what is under way ends in the old ones. */
struct moving_generation {
	TAILQ_ENTRY(moving_generation) link;
	struct moving_proxy *proxy;
	struct lan_host lan;   /* with the lanes */
	struct lan_host inner; /* what moves call: its calls name their server */
	struct moves *moves;   /* NULL if there is one ring */
	struct moving_config config;
};

struct moving_proxy {
	struct lan_proxy lan; /* first; its first host has no use */
	struct moving *world;
	TAILQ_HEAD(, moving_generation) generations; /* the current one is the last */
	size_t config;                               /* the number of the one that it has: world->configs */
};

/* A command of a client. `a` and `b` are what its line and its reply say; moving_model.c knows how. */
struct moving_op {
	TAILQ_ENTRY(moving_op) link;
	struct moving *world;
	int client, key;
	command_id command;
	bool lost;   /* no command: the item was lost */
	bool moved;  /* no command: the item has got another cas id */
	bool final;  /* no command: how long the item lives when all is over */
	bool former; /* its proxy was forgotten, and has the former ring alone */
	bool on_new; /* the key moves, and the proxy knows that its time has come */
	struct buf line, reply;
	struct account account;  /* of a command that no client sends */
	uint64_t asked, replied; /* ticks; 0: no reply */
	uint64_t mask, number;
	size_t text; /* the number of a text: see moving_text */
	int64_t exptime;
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

/* What a proxy has written last to a set or list, and may have to correct. */
struct moving_rewrite {
	bool wrote, given_back; /* a client has since given the item one of these times */
	int64_t first, last;    /* when the item expires by the write, and by the last correction */
};

struct moving_key {
	enum moving_kind kind;
	char name[32];
	struct moving_op *ops[LINEAR_OPS];
	size_t count;
	int elements; /* of a list: so many have been pushed */
	bool spoiled; /* a part was lost: nothing is known any more */
	bool claimed; /* a claim came late */
	bool undone;  /* a rewrite may have undone a touch: see moving_lives.c */
	struct moving_rewrite rewrites[MOVING_PROXIES];
	uint64_t cas[MOVING_CLIENTS];
	/* In a history with stale reads: what is known. */
	signed char words[MOVING_MEMBERS + 256]; /* 1: it is in, -1: it is out, 0: unknown */
	bool removed[MOVING_MEMBERS];            /* its only writer has removed it */
	bool contested[MOVING_MEMBERS];          /* the proxy that was forgotten has removed it */
	bool on_new[MOVING_MEMBERS];             /* where its only writer wrote last */
	uint64_t counted;
};

struct moving {
	struct lan lan;
	struct moving_proxy proxies[MOVING_PROXIES];
	TAILQ_HEAD(, moving_op) ops; /* all of them */
	struct moving_key keys[MOVING_KEYS];
	struct rules rules;
	struct collection_rule rule;
	const struct collection_options *options;
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
	uint64_t tick; /* a count of all that happens */
	enum moving_mutation mutation;
	bool faults, losses, stale; /* proxies break, servers lose items, a proxy is forgotten */
	int forgotten;              /* a proxy, or -1 */
	const char *violation;
	char detail[600];
	/* What mutations remember. */
	struct moving_seen {
		bool known;
		struct result result;
		struct buf value;
	} seen[MOVING_PROXIES][MOVING_KEYS];
	/* Totals over the history. */
	uint64_t commands, failures, moved, merged, waited, undecided;
};

/* Runs the history of a seed. False if something was wrong: then world->violation says what. */
bool moving_run(struct moving *world, uint64_t seed, enum moving_mutation mutation, bool verbose);

/*
 * In some histories the server of a write loses its item right before, and gets the late claim of a mover. So a guard whose look has seen
 * the item is overtaken. With mutations of guards it happens more often.
 */
void moving_lose_to_claim(struct moving *world, const struct message *message);

/* For histories_main. */
extern const struct histories moving_histories;

void moving_fail(struct moving *world, const char *what, const char *format, ...) __attribute__((format(printf, 3, 4)));
uint64_t moving_random(struct moving *world, uint64_t below);
bool moving_chance(struct moving *world, unsigned percent);
uint64_t moving_now(const struct moving *world); /* milliseconds */

/* --- moving_network.c --- */

/* The server of a key on a ring. */
int moving_place(const struct moving_ring *ring, struct slice key);

/* Whether the key is that of a part; the key of its base, or the key itself. */
struct slice moving_base(struct slice key, bool *is_part);

/* The item of a key on a server, or NULL. */
struct memcached_item *moving_item(struct moving *world, int server, struct slice key);

extern const struct lan_hooks moving_hooks;

/* What env.call of lanes does. */
void moving_call(struct env *env, const struct call *call, struct waiter *waiter);

/* The generation that waits for a message, or NULL. */
struct moving_generation *moving_generation(const struct message *message);

/* A server restarts, and forgets all items. */
void moving_restart(struct moving *world, int server);

/* --- moving_proxy.c --- */

void moving_start_proxy(struct moving *world, int index);
void moving_stop_proxy(struct moving_proxy *proxy);
void moving_kill(struct moving *world, int index);

/* Gives a proxy the next configuration. */
void moving_configure(struct moving_proxy *proxy, size_t config);

void moving_set_clock(struct lan_proxy *proxy);
struct moving_generation *moving_current(const struct moving_proxy *proxy);
/* Old generations go when nothing is under way in them. */
void moving_retire(struct moving_proxy *proxy);

/* --- moving_clients.c --- */

void moving_init_keys(struct moving *world);
void moving_act(struct moving *world, int client);
/* A command that reads the whole key, by a client. */
void moving_read(struct moving *world, int client, int key);
/* A get of an item by the tool, whose reply only must be no error. */
void moving_get(struct moving *world, int proxy, struct slice item);
/* Something happens to a key that is no command. Gives NULL if the history has no room. */
struct moving_op *moving_note(struct moving *world, int key);
void moving_answered(struct moving_op *op);
void moving_free_op(struct moving_op *op);
/* The number of the key with that name, or -1. */
int moving_find_key(const struct moving *world, struct slice name);

/* --- moving_model.c --- */

/* The number of a text, from 1 on; the text of a number. */
size_t moving_text(struct moving *world, struct slice text);
struct slice moving_text_of(const struct moving *world, size_t number);

void moving_check_key(struct moving *world, int key);

/* What a command makes of one item, the number of its text, or 0. */
enum linear_step moving_step_item(struct moving *world, const struct moving_op *op, uint64_t *item);

/* --- moving_undone.c --- */

/* As linear.step. */
enum linear_step moving_step_undone(struct moving *world, const struct moving_op *op, const struct linear_state *before,
	unsigned choice, struct linear_state *after);

/* --- moving_lives.c --- */

/* A call has been executed. */
void moving_follow_life(struct moving *world, const struct message *message);

/* --- moving_mutate.c --- */

void moving_mutate_sent(struct moving *world, struct message *message);
/* True if it is as good as executed. */
bool moving_mutate_execute(struct moving *world, struct message *message);
void moving_mutate_executed(struct moving *world, struct message *message);

#endif
