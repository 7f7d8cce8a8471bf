/*
 * Sets with two copies in the code of the daemon: proxies with lanes, machines, the layer of
 * copies (and of moves) under test, five servers, and clients. model.h is the model of the same
 * rules; its faults and checks are these. One seed determines the whole history. Its kind is one
 * of:
 *
 *     cache      the application writes its database, then a word to the set if it exists, and
 *                loads a missing set with a lease
 *     owned      sets are created by their first member; members are popped, claimed, taken and
 *                expire, sets are replaced, deleted, and get a time to live
 *
 * and its faults one of: none; one faulty server; any of five servers; cuts on both sides;
 * evictions of one copy while the other server is unreachable; each of ten servers killed in turn,
 * an hour between. Servers are killed and start empty, or hang and then execute what had arrived, in
 * any order of connections; connections are cut for some proxies, for calls or only for answers, and
 * calls arrive long after they have failed. Proxies are killed at any of their calls. Clocks of
 * proxies and of servers differ. In some histories the ring of servers changes, and each proxy gets
 * the new one at another time.
 *
 * Each read is checked for each member as a regular register: it has the value of a write that has
 * begun, and that no later acknowledged write contradicts. With at most one faulty server, a set
 * that is owned is never lost; when servers are killed in turn, no set is. At the end both copies are
 * equal, and each of them alone is enough: either server may be down, and a new proxy reads the
 * same.
 */
#ifndef SIM_PAIRS_H
#define SIM_PAIRS_H

#include <sys/queue.h>

#include "collection/copies/copies.h"
#include "command/task.h"
#include "moving.h"

enum {
	PAIRS_SERVERS = LAN_SERVERS,
	PAIRS_PROXIES = 3,
	PAIRS_KEYS = 2,
	PAIRS_CLAIMED = 2,  /* members that are only claimed: the last ones */
	PAIRS_MEMBERS = 18, /* all of them */
	PAIRS_POPPED = PAIRS_MEMBERS - PAIRS_CLAIMED,
	PAIRS_WRITES = 4096,
	PAIRS_READS = 512,
	PAIRS_EVENTS = 512,
	/* Milliseconds. */
	PAIRS_TIMEOUT = COPIES_TIMEOUT,
	PAIRS_SETTLED = 4 * PAIRS_TIMEOUT, /* in the layer under test, as the next one */
	PAIRS_REPAIRED = 8 * PAIRS_TIMEOUT,
	PAIRS_SKEW = PAIRS_TIMEOUT / 5, /* of clocks of proxies that differ */
	PAIRS_AHEAD = 1500,             /* most of a server's clock */
	PAIRS_SLACK = 4000,             /* by which a set or member may expire earlier or later */
	PAIRS_MARGIN = 2                /* seconds: of moves */
};

enum pairs_mutation {
	PAIRS_NONE,
#define MUTATION(name, ...) PAIRS_##name,
#include "pairs.def"
	PAIRS_MUTATIONS
};

enum pairs_mark {
#define MARK(name, ...) PAIRS_MARK_##name,
#include "pairs.def"
	PAIRS_MARKS
};

enum pairs_faults {
	PAIRS_FAULTS_NONE,
	PAIRS_FAULTS_ONE,
	PAIRS_FAULTS_ANY,
	PAIRS_FAULTS_SIDES,
	PAIRS_FAULTS_EVICT,
	PAIRS_FAULTS_TURNS,
	PAIRS_FAULTS
};

struct pairs;
struct pairs_proxy;
struct pairs_event;

/* As worker/generation.h: each configuration has its own lanes and copies. */
struct pairs_generation {
	TAILQ_ENTRY(pairs_generation) link;
	struct pairs_proxy *proxy;
	struct lan_host lan;    /* with the lanes, whose calls go to the copies */
	struct lan_host middle; /* of the copies, whose calls go to moves or to the network */
	struct lan_host inner;  /* of the moves */
	struct copies *copies;
	struct moves *moves; /* NULL if there is one ring */
	struct moving_config config;
};

/* The connection of a proxy to a server. */
struct pairs_wire {
	int64_t cut_until;  /* milliseconds; 0 if it is not cut */
	bool only_answers;  /* calls arrive */
	bool lost;          /* calls that are sent during the cut never arrive */
	int64_t down_until; /* the proxy has noticed, and sends nothing */
};

struct pairs_proxy {
	struct lan_proxy lan; /* first; its first host is unused */
	struct pairs *world;
	TAILQ_HEAD(, pairs_generation) generations; /* the last one is the current one */
	size_t config;                              /* its number in world->configs */
	struct pairs_wire wires[PAIRS_SERVERS];
	uint64_t kill_at; /* the call after which it is killed; 0 for none */
	int64_t offset;   /* of its clock, in milliseconds */
	void (*later)(struct env *env, struct waiter *waiter, unsigned ms); /* of the network */
	/* For a mutation: appends without an answer, and the time when there was none. */
	unsigned appends;
	uint64_t frozen;
};

/* A command of a client, or of the application. */
struct pairs_op {
	TAILQ_ENTRY(pairs_op) link;
	struct pairs *world;
	int proxy, key;
	command_id command;
	struct account account;
	int64_t began, ended; /* milliseconds */
	uint64_t members;     /* bits: its arguments; of an sload, those that are left */
	int64_t seconds;      /* of a touch, a saddex or a lease */
	int first;            /* of its writes, one for each member of `members` */
	int life;             /* of world->lives; -1 for none */
	char token[9];        /* of a load */
	bool failed;          /* its outcome is unknown */
	bool closing;         /* one of the history's last reads, which must not fail */
	struct buf line, reply;
};

/* A write to a member, of which the outcome is unknown if `ended` is 0. */
struct pairs_write {
	int key, member, proxy, next;
	bool adds;
	bool resets; /* all members, on both servers: no later word is void, whatever the clocks */
	int64_t began, ended;
};

/* `known`: the members that were asked for; `count` is -1, or the number of all members. */
struct pairs_read {
	int key, proxy;
	int64_t began, ended;
	uint64_t known, in;
	int count;
};

/* A command that sets or ends the life of a set or of a member. */
struct pairs_life {
	int key, member; /* -1: all */
	int64_t began, ended, seconds;
};

struct pairs_event {
	int64_t at;
	void (*run)(struct pairs *world, const struct pairs_event *event);
	int a, b;
	int64_t until;
	char token[9];
	uint64_t members;
};

/* A time in which each proxy sees one of two servers: `same` if all see the same one. */
struct pairs_sides {
	int64_t at, until;
	bool same;
};

struct pairs_server {
	int64_t dead_until, hung_until; /* 0 if it is not */
};

struct pairs {
	struct lan lan;
	struct pairs_proxy proxies[PAIRS_PROXIES];
	struct pairs_server servers[PAIRS_SERVERS];
	int64_t started[PAIRS_SERVERS]; /* when it was last restarted, or 1 */
	struct rules rules;
	struct collection_rule rule;
	struct collection_options options;
	struct moving_config configs[3];
	int64_t start;
	enum pairs_mutation mutation;
	enum pairs_faults faults;
	int server_count, faulty;
	bool owned, moves, apart;
	bool queues;     /* some calls are sent long after they were made */
	bool fails_fast; /* a proxy does not send to a server that has just failed */
	bool unsteady;   /* a server may have failed for some proxies only */
	bool lossy;      /* both copies may be lost */
	struct pairs_sides sides[3];
	int side_count;
	bool overlaps;              /* one server may be cut off before the other is repaired */
	bool ending;                /* nothing fails any more */
	TAILQ_HEAD(, pairs_op) ops; /* in flight */
	struct pairs_event events[PAIRS_EVENTS];
	int event_count;
	int64_t made; /* when the call was made that is sent now */
	uint64_t database[PAIRS_KEYS];
	struct pairs_write writes[PAIRS_WRITES];
	int write_count;
	int heads[PAIRS_KEYS][PAIRS_MEMBERS]; /* the writes of a member, linked by `next`; -1 */
	struct pairs_read reads[PAIRS_READS];
	int read_count;
	struct pairs_life lives[PAIRS_READS];
	int life_count;
	/* How often a member was taken, and at how many stamps it was added. */
	unsigned popped[PAIRS_KEYS][PAIRS_MEMBERS], claimed[PAIRS_KEYS][PAIRS_MEMBERS];
	struct pairs_added {
		uint64_t stamps[64];
		unsigned count;
	} added[PAIRS_KEYS][PAIRS_MEMBERS];
	unsigned resets[PAIRS_KEYS]; /* deletes and the like */
	uint64_t last_read;          /* the members that the last closing read has returned */
	bool last_exists;
	uint64_t incomplete; /* of generations that have ended: see pairs_incomplete */
	uint64_t losses;     /* of all, so far, if servers are killed in turn */
	const char *violation;
	char detail[700];
	/* Totals. */
	uint64_t acknowledged, answered, missing, errors, marks[PAIRS_MARKS];
};

/* For histories_main. */
extern const struct histories pairs_histories;

void pairs_fail(struct pairs *world, const char *what, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
unsigned pairs_below(struct pairs *world, unsigned n);
bool pairs_chance(struct pairs *world, unsigned percent);
/* Milliseconds since 1970, and since the history began. */
int64_t pairs_now(const struct pairs *world);
int64_t pairs_since(const struct pairs *world, int64_t time);
/* Adds an event, whose other members the caller may set. */
struct pairs_event *pairs_at(struct pairs *world, int64_t at,
	void (*run)(struct pairs *, const struct pairs_event *), int a, int b);

/* --- pairs_network.c --- */

/* The key of an item that belongs to a set: of the base or a part, of the first or second copy. */
struct pairs_name {
	int key; /* -1 if it is none */
	unsigned copy;
	bool is_part;
};

struct pairs_name pairs_name(struct slice key);
/* The key of a base. */
struct slice pairs_base_key(int key, unsigned copy);
/* The server of a copy's base by the last ring, and its item, or NULL. */
int pairs_server_of(const struct pairs *world, int key, unsigned copy);
struct memcached_item *pairs_item(struct pairs *world, int key, unsigned copy);

extern const struct lan_hooks pairs_hooks;

/* The data of a message. */
struct pairs_note {
	bool lost;   /* it is never executed */
	bool refill; /* a part that the other server has when it is sent */
	int64_t sent;
};
struct pairs_note *pairs_note(const struct message *message);
struct pairs_generation *pairs_generation(const struct message *message);

/* The implementation of env.call below copies and moves: a call to call->server. */
void pairs_send(struct env *env, const struct call *call, struct waiter *waiter);

bool pairs_is_cut(const struct pairs *world, int proxy, int server);
/* Returns whether no proxy reaches the server. */
bool pairs_is_unreachable(const struct pairs *world, int server);
/* Whether nothing has kept the proxy from any server since this time. */
bool pairs_has_reached_all(const struct pairs *world, int proxy, int64_t since);
void pairs_cut(struct pairs *world, int proxy, int server, int64_t until);
void pairs_kill(struct pairs *world, int server, int64_t until);
void pairs_hang(struct pairs *world, int server, int64_t until);
void pairs_evict(struct pairs *world, int key, unsigned copy);
/* Ends all faults. */
void pairs_heal(struct pairs *world);

/* --- pairs_proxy.c --- */

void pairs_start_proxy(struct pairs *world, int index);
void pairs_stop_proxy(struct pairs_proxy *proxy);
void pairs_kill_proxy(struct pairs *world, int index);
void pairs_configure(struct pairs_proxy *proxy, size_t config);
void pairs_retire(struct pairs_proxy *proxy);
void pairs_set_clock(struct lan_proxy *proxy);
struct pairs_generation *pairs_current(const struct pairs_proxy *proxy);
/* Returns how often a set was found not to be whole. */
uint64_t pairs_incomplete(const struct pairs *world);

/* --- pairs_clients.c --- */

void pairs_act(struct pairs *world, int proxy, int key);
struct pairs_op *pairs_ask(struct pairs *world, int proxy, int key, command_id command);
/* Called when the reply is complete, or the proxy was killed. */
void pairs_answered(struct pairs_op *op);
void pairs_free_op(struct pairs_op *op);
/* Begins to load a set. */
void pairs_load(struct pairs *world, int proxy, int key);
int pairs_member(struct slice name);
/* Notes the stamps of all groups of a base that is sent. */
void pairs_note_added(struct pairs *world, int key, struct slice base);

/* --- pairs_check.c --- */

bool pairs_is_expiring(const struct pairs *world);
void pairs_check_reads(struct pairs *world);
void pairs_check_taken(struct pairs *world);
void pairs_check_equal(struct pairs *world);

/* --- pairs_mutate.c --- */

/* Changes a call of lanes to the copies, which may be a rewrite of `call`. */
void pairs_mutate_call(struct pairs_proxy *proxy, struct call *call);
void pairs_mutate_sent(struct pairs *world, struct message *message);
/* Returns true if it counts as executed. */
bool pairs_mutate_execute(struct pairs *world, struct message *message);
void pairs_mutate_executed(struct pairs *world, struct message *message);
/* Whether the answer to this call is that its server is unreachable. */
bool pairs_mutate_fails(const struct pairs *world, const struct message *message);

#endif
