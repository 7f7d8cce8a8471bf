/*
 * Commands with two keys in a simulated world: moves between lists and between sets, stored unions,
 * intersections and differences, and clients that wait for elements. Proxies are killed at any of
 * their calls, and connections break. One seed determines the whole history. Its kind is one of:
 *
 *     moves      lmove from shared lists to a list of the client: each element exists once, unless
 *                a proxy was killed
 *     shared     lmove and pops between shared lists: no element is lost, and none exists more often
 *                than copies were left
 *     waiters    blpop, brpop and blmove through three proxies: each element is returned once, and
 *                no client waits for a list that has elements
 *     members    smove: each member is in one set, unless a proxy was killed; other members agree
 *                with the replies to the client that adds and removes them
 *     stores     sunionstore, sinterstore, sdiffstore: reads of the target are linearizable
 *
 * In some histories connections stall: calls that time out must not be executed after the client has been answered. In some histories
 * only a few keys may wait at once. Clients may leave while they wait: they get nothing that is pushed later, and stop waiting.
 *
 * In some histories the rules of sets make members expire long after the last command: the sets that
 * are read then must be empty. In some of those of members they expire within seconds: none is found
 * after its date, or missing before it.
 *
 * In some histories clients also name a plain item as a target of moves: they must receive an
 * error, and it must not change.
 */
#ifndef SIM_TAKING_H
#define SIM_TAKING_H

#include "linear.h"
#include "stage.h"

enum {
	TAKING_SERVERS = 2,
	TAKING_WORKERS = 2, /* of one process, the first of the proxies */
	TAKING_CLIENTS = 9,
	TAKING_LISTS = 4 + TAKING_CLIENTS, /* l0 to l2, d0, and one of each client */
	TAKING_SHARES = 3,                 /* of them: l0 to l2 */
	TAKING_DONE = 3,                   /* d0 */
	TAKING_OWN = 4,
	TAKING_SETS = 4, /* s0 to s2, and t0, which is stored to */
	TAKING_TARGET = 3,
	TAKING_ELEMENTS = 1000,
	TAKING_MEMBERS = 24,  /* that are moved */
	TAKING_STABLE = 96,   /* members of the sources of stores, which are never removed */
	TAKING_VOLATILE = 16, /* and members that are added and removed */
	TAKING_BESIDE = 1000, /* milliseconds that a client may wait although there is an element */
	TAKING_LIFE = 1000,   /* seconds after which members expire, more than a history has */
	TAKING_SHORT = 3,     /* the same in some histories */
	/* milliseconds that a pop in flight may take after its client has disconnected */
	TAKING_GONE = 500
};

enum taking_kind {
	TAKING_MOVES,
	TAKING_SHARED,
	TAKING_WAITERS,
	TAKING_SMOVES,
	TAKING_STORES,
	TAKING_KINDS
};

/* Bugs that are inserted on purpose. The checks must find each of them. */
enum taking_mutation {
	TAKING_NONE,
#define MUTATION(name, what) TAKING_##name,
#include "takings.def"
#undef MUTATION
	TAKING_MUTATIONS
};

/* How a client disconnects while it waits. */
enum taking_way {
	TAKING_STAYS,
	TAKING_CLOSES, /* The proxy has closed the connection, and abandoned its tasks. */
	/*
	 * The proxy has read the end of the input, or a line after which it will close the
	 * connection.
	 */
	TAKING_ENDS,
	TAKING_VANISHES /* The end of the input is only found when the socket is checked. */
};

enum taking_place { TAKING_SOMEWHERE, TAKING_IN, TAKING_OUT };

struct taking_set {
	uint64_t stable[2]; /* a bit for each */
	uint32_t loose;     /* the same for members that are added and removed */
	uint32_t moved;     /* members that are moved */
	unsigned count;
};

/* The date of a member that expires is between these. */
struct taking_date {
	uint64_t least, most;
};

struct taking;

/* A command of a client. */
struct taking_op {
	struct stage_op stage;
	struct taking *world;
	int from, to;                   /* lists or sets; -1 for none */
	int keys[TAKING_SHARES], count; /* of a blocking command: its lists */
	int member;
	size_t linear;       /* of the target: its position in the history */
	enum taking_way way; /* how its client has disconnected, if it has */
	uint64_t left;       /* when it did, in milliseconds */
	bool is_popping;     /* a pop was in flight when the task was abandoned */
	bool is_refused;     /* its target is the plain item */
};

struct taking_proxy {
	struct stage_proxy stage;
	void (*later)(struct env *env, struct waiter *waiter, unsigned ms); /* of the network */
	uint64_t works;      /* when its calls on a stalled connection are over, in milliseconds */
	struct waiter looks; /* at the board, soon */
	bool asked_to_look;
};

struct taking {
	struct stage stage;
	struct taking_proxy proxies[STAGE_PROXIES];
	struct push_board board,
		own_board; /* Of the proxies that are workers of one process, and of the other proxy. */
	struct collection_rule own_rules[2];
	uint64_t life; /* seconds after which members of sets expire; 0: never */
	enum taking_kind kind;
	enum taking_mutation mutation;
	bool breaks, stalls; /* connections do so */
	size_t waiting_max;  /* max_waiting of each process, in keys */
	bool has_plain;      /* there is a plain item */
	struct taking_client {
		int proxy;
		bool busy;
		uint64_t rests; /* end of that, in milliseconds */
		/* The last addition or removal with an unknown outcome, and its set and member. */
		command_id failed;
		int set, loose;
	} clients[TAKING_CLIENTS];
	/* Elements of lists, by their numbers. */
	struct taking_element {
		bool acknowledged, executed;
		int copies;      /* pushes after the first one */
		int moved;       /* replies of moves between lists */
		int delivered;   /* replies of pops */
		int stored;      /* in all lists, at the end */
		uint64_t pushed; /* the time of the first push, in milliseconds */
	} elements[TAKING_ELEMENTS];
	int element_count;
	/* since when the list has elements, in milliseconds; UINT64_MAX: it has none */
	uint64_t filled[TAKING_LISTS];
	uint64_t failed_pops, failed_moves;
	/* Members of sets. */
	struct taking_member {
		int set; /* its set, or -1 if its client does not know */
		int failed;
		struct taking_date date;
	} members[TAKING_MEMBERS];
	struct taking_set sources[TAKING_SHARES]; /* members that were loaded into them */
	struct taking_store {
		struct linear_op op;
		uint64_t seen[2]; /* the stored members, or those that were read */
	} stores[LINEAR_OPS];
	size_t store_count;
	uint64_t tick;
	/* members that any source ever had */
	uint32_t ever_loose;
	enum taking_place loose[TAKING_SHARES][TAKING_VOLATILE]; /* according to the last replies */
	struct taking_date loose_dates[TAKING_SHARES][TAKING_VOLATILE];
	struct taking_set last_read; /* by smembers */
	uint64_t last_number;        /* the reply to the last store */
	/* for a mutation: the first result of a poll */
	uint64_t polls[STAGE_PROXIES][TAKING_LISTS];
	/* Totals over the histories. */
	uint64_t busy, taken, left;
};

/* For histories_main. */
extern const struct histories taking_histories;

/* Return the list, or the set, whose base has this key, or -1; the key, of two characters. */
int taking_list(struct slice key);
int taking_set_number(struct slice key);
const char *taking_list_key(int list);

/*
 * The plain item, which is a target in some histories; returns whether this command must use it as
 * its target.
 */
extern const struct slice taking_plain;
bool taking_refuses(struct taking_op *op);

/* Returns whether both are workers of one process, which have a common limit of waiting clients. */
bool taking_is_same_process(const struct stage_proxy *a, const struct stage_proxy *b);

/* --- taking_clients.c --- */

/* Sends a random command of the history's kind from a client that is not busy. */
void taking_act(struct taking *world);
/* Sends this line from a client. */
void taking_ask(struct taking *world, int client, command_id command, const char *line);
/* As in stage_hooks. */
void taking_answered(struct stage_op *op);
/* Returns whether the reply is an unknown outcome. */
bool taking_is_unknown(const struct taking_op *op);

/* --- taking_lists.c --- */

void taking_lists_init(struct taking *world);
/* Called after a call on the base of a list was executed. */
void taking_list_executed(struct taking *world, const struct message *message, int list);
void taking_list_answered(struct taking_op *op);
/* Returns whether the reply is the error that too many waiting clients. */
void taking_may_not_wait(const struct taking_op *op);
/*
 * Return the number of the next element to push, 0 if there are no more; of the element with this
 * name.
 */
int taking_new_element(struct taking *world);
int taking_element(struct taking *world, struct slice name);
/* Returns whether that call pushes an element that was pushed before, which makes it a move. */
bool taking_is_copy(struct taking *world, const struct call *call);
/* No client waits too long beside a list with elements, or after it has left; no more keys wait than max_waiting. */
void taking_check_waiters(struct taking *world);
/* Checks the state at the end. */
void taking_check_lists(struct taking *world);

/* --- taking_sets.c --- */

void taking_sets_init(struct taking *world);
void taking_write_smove(struct taking_op *op);
void taking_write_store(struct taking_op *op);
void taking_write_loose(struct taking_op *op);
void taking_set_answered(struct taking_op *op);
void taking_check_sets(struct taking *world);

/* --- taking_mutate.c --- */

void taking_mutate_sent(struct lan *lan, struct message *message);
bool taking_mutate_execute(struct lan *lan, struct message *message);
/* Called after the call was executed. */
void taking_mutate_executed(struct taking *world, struct message *message);

#endif
