/*
 * The simulated world: servers, proxies, clients, and a network that delays, loses and breaks. The proxies run the real code of
 * src/command and src/collection. One seed determines the whole history.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <sys/queue.h>

#include "collection/lane/lanes.h"
#include "command/task.h"
#include "form.h"
#include "lan.h"
#include "leases.h"
#include "lives.h"
#include "truth.h"

enum {
	SIM_SERVERS = 2,
	SIM_PROXIES = 3,
	SIM_KEY_SIZE = 2,
	SIM_COMMANDS = 1024,
	SIM_ASKED = 3,
	SIM_INDEXES = 256,
	SIM_DATE = 60 * 60 * 24 * 30 /* seconds; a time to live above it is a date */
};

/* Bugs that are put in on purpose. The checks must find each. */
enum mutation {
	MUTATION_NONE,
#define MUTATION(name, what, encodings) MUTATION_##name,
#include "mutations.def"
#undef MUTATION
	MUTATIONS
};

/* The changes that the commands behind a call ask for; see check_form.c. */
struct wants {
	uint64_t adds, removes;
	bool pops, ends;
};

/* What the pointer of a flipped collection showed. */
struct seen_pointer {
	char name[8];
	uint64_t cas;
	bool appended; /* and that was the last that was sent since */
};

/* What the checks and mutations note of a message. */
struct note {
	struct wants wants;
	struct seen_pointer lie; /* MUTATION_NO_CHECK */
	bool stale;              /* MUTATION_STALE_CAS: its cas id is of an earlier connection */
	bool lost;               /* MUTATION_EARLY_DELETE: nothing is done, and its proxy believes that it was */
	bool behind;             /* a read of a base that was sent behind a write which was not executed */
	uint64_t asked; /* the number of the command that touches or deletes by this call; 0 where it is not known */
	bool unclear;   /* it may also be an earlier command, which touches once more since a part was missing */
};

static inline struct note *note(const struct message *m)
{
	return m->note;
}

struct sim_list_op;
struct lists;
struct stored_sets;

/* The members that a read is about. They are numbered in byte order. */
struct sim_question {
	int asked[SIM_ASKED]; /* members, one by one */
	size_t count;         /* of them */
	int first, last;      /* a range of members */
	size_t most;          /* the most members that the reply may list */
};

/* Of a command of many keys: the client's last earlier commands on each. */
struct sim_many {
	size_t before[SIM_KEYS][SIM_MEMBERS], before_any[SIM_KEYS];
	struct buf keys; /* the numbers of its sets, as bytes */
};

/* One command of a client. */
struct sim_op {
	TAILQ_ENTRY(sim_op) link; /* in the world's commands under way, or in those that a client has waiting */
	struct world *world;
	struct lan_proxy *proxy;
	int client, key;
	command_id command;
	bool members[SIM_MEMBERS]; /* that it adds, removes or loads */
	char token[STORED_TOKEN];  /* of a lease */
	bool executed[SIM_MEMBERS];
	struct sim_question question; /* of a read */
	uint64_t issued;              /* tick at which its proxy started it */
	int64_t exptime;              /* of a touch */
	bool touches, touched;        /* its touch of the base was sent, and was executed */
	size_t number;                /* of the command, from 1 on */
	size_t before[SIM_MEMBERS];   /* this client's last earlier command on each, 0 for none */
	size_t before_any;
	struct buf line, reply;
	struct buf log; /* what it writes, of an addition or removal */
	bool log_executed;
	struct sim_list_op *list; /* of a command on a list, NULL else */
	struct sim_many *many;    /* of a command of many keys, NULL else */
	struct account account;   /* MUTATION_LATE_READ: as if each command had a client of its own */
	bool ended;               /* it failed with an unknown outcome: an sset, sload or sfill may still be executed */
};

/* What the checks need of a write after its reply. */
struct sim_past {
	int client, key;
	uint64_t members; /* that it names */
	bool done;        /* it was acknowledged, and `executed` has its tick */
};

/* What is true of sets in other encodings than oplog. */
struct form_truth {
	struct form_command {
		int client, key;
		uint64_t issued, ended; /* ticks */
		uint64_t adds, removes;
		bool pops, ends, dates; /* dates: it gives a time to live */
		bool deletes, wiped;    /* a call of this delete took out members that nobody else was removing */
	} commands[SIM_COMMANDS];
	enum form_state state[SIM_KEYS];
	uint64_t members[SIM_KEYS];
	uint64_t lost[SIM_KEYS], gone[SIM_KEYS]; /* the last tick at which it was lost; at which it came to an end */
	uint64_t evicted[SIM_KEYS];              /* at which a part of it was gone, and no call had taken it */
	uint64_t damaged[SIM_KEYS];              /* members that a loss has changed, until there is no set any more */
	unsigned taken[SIM_KEYS][SIM_MEMBERS];   /* how often it went by a pop that has not said so yet */
	bool taking;
	uint64_t dropped[SIM_KEYS][SIM_MEMBERS]; /* when a damaged member was last taken out, other than by a pop */
	uint64_t second;                         /* for which all was looked at */
};

/* A client's connection. */
struct sim_client {
	struct account account;
	struct order order;
	TAILQ_HEAD(, sim_op) waiting; /* sent, but not started */
};

struct world {
	const struct form *form; /* NULL for oplog */
	struct form_truth form_truth;
	struct rules rules;
	struct collection_rule own_rules[8]; /* of `rules`, in a history without a form */
	const struct collection_options *options;
	struct lan lan;
	struct lan_proxy *proxies[SIM_PROXIES];
	TAILQ_HEAD(, sim_op) ops;
	struct truth truth;
	struct lists *lists;
	struct leases leases;
	struct stored_sets *stored; /* stored_set.c */
	int client_proxy[SIM_CLIENTS];
	struct sim_client clients[SIM_CLIENTS];
	struct life lives[LIVES];
	uint64_t second;                                 /* at which all sets and lists were last checked */
	size_t last[SIM_CLIENTS][SIM_KEYS][SIM_MEMBERS]; /* numbers of each client's last command on each */
	size_t last_any[SIM_CLIENTS][SIM_KEYS];
	uint64_t executed[SIM_COMMANDS];    /* ticks, by the number of the command; 0 for not */
	struct sim_past past[SIM_COMMANDS]; /* by the number of the command */
	bool ever_added[SIM_KEYS][SIM_MEMBERS];
	unsigned granted[SIM_KEYS][SIM_MEMBERS]; /* claims that no client was told of yet */
	unsigned deleted[SIM_KEYS]; /* how often a call of a delete took it away, and no reply has said so yet */
	enum mutation mutation;
	struct index_check {
		uint64_t was, is;
	} index_checks[SIM_INDEXES]; /* MUTATION_FENCE: those of indexes that were changed */
	size_t index_count;
	struct seen_pointer pointers[SIM_PROXIES][SIM_KEYS]; /* MUTATION_NO_CHECK */
	struct buf views[SIM_PROXIES][SIM_KEYS];             /* MUTATION_BLIND_VIEW: the bases as each proxy has them */
	int stray;                                           /* the proxy with another list of servers; -1 for none */
	bool skewed;                                         /* the clocks of proxies differ by a second */
	bool dated;                                          /* clients touch sets with dates */
	bool date_lost[SIM_KEYS];                            /* dates.c: this date is not checked any more */
	int64_t dates;                                       /* dates.c: so many were chosen */
	int64_t settled[SIM_KEYS];                           /* dates.c: the date of a touch that was answered, or 0 */
	uint64_t broken;                                     /* dates.c: the tick at which a connection last broke */
	uint64_t date_read[SIM_PROXIES][SIM_KEYS];           /* when a proxy last read a time to live alone */
	uint64_t date_written[SIM_PROXIES][SIM_KEYS];        /* when a proxy last carried out a CAS */
	struct rewrite {
		uint64_t written, changed; /* ticks: of its last CAS, and of its last CAS or correction */
		char item[16];
	} rewrites[SIM_PROXIES][SIM_KEYS]; /* dates.c */
	uint64_t crossed[SIM_KEYS];        /* dates.c: the tick of the last correction that crossed another rewrite */
	bool slow;                         /* some calls take seconds */
	bool ended;                        /* a command since pipeline_run() */
	unsigned evictions;                /* of items, and restarts of servers */
	const char *violation;             /* what went wrong, or NULL */
	char detail[200];
	uint64_t commands, failures, compactions, merges, incomplete;
	uint64_t undone; /* lives.c, dates.c: touches that a correction has undone, and may not have noticed */
};

/* Runs one history. If a check failed, `violation` and `detail` say which. */
void world_run(struct world *world, const struct form *form, uint64_t seed, enum mutation mutation, bool verbose);

/* The sizes of collections in a history. The seed chooses. */
const struct collection_options *world_sizes(uint64_t seed);

/* For the parts of the world: */
void world_fail(struct world *world, const char *what, const char *format, ...) __attribute__((format(printf, 3, 4)));
uint64_t world_random(struct world *world, uint64_t below);
bool world_chance(struct world *world, unsigned percent);
uint64_t world_now(const struct world *world); /* milliseconds */
int world_server(struct slice key);
/* The number of the set whose base has this key; -1 for any other key. */
int world_set(struct slice key);
struct memcached_item *world_find(struct world *world, struct slice key);

/*
 * network.c: what this world makes of the network; whether the reply may say that a set or list is missing that is not: its proxy has
 * another list of servers than the others.
 */
extern const struct lan_hooks network_hooks;
bool network_excuses(const struct sim_op *op);

/* proxy.c: all that is under way in a killed proxy fails, and a new proxy replaces it. */
struct lan_proxy *proxy_create(struct world *world, int index);
void proxy_free(struct lan_proxy *proxy);
void proxy_kill(struct world *world, int index);
void proxy_free_op(struct sim_op *op);
void proxy_forget_op(struct sim_op *op);

/* pipeline.c: a client sends a command; commands start that waited; those that wait are dropped: of a proxy, or with NULL all. */
void pipeline_init(struct world *world);
void pipeline_send(struct sim_op *op);
void pipeline_run(struct world *world);
void pipeline_close(struct world *world, const struct lan_proxy *proxy);

/* clients.c: a client sends random commands, or this one. lists.c writes the lines of lists. */
void clients_act(struct world *world);
void clients_issue(struct world *world, struct lan_proxy *proxy, int client, int key, command_id command);

/* check.c: a message is executed at its server; a command has its reply. */
void check_execute(struct world *world, struct message *message);
void check_reply(struct sim_op *op);
void check_time(struct world *world);

/* Marks an sset under way as executed: the one with these members, or with NULL each one, since any may be it. */
bool check_is_sset(struct world *world, int key, const bool *members);

/* How the reply begins. */
bool check_says(const struct sim_op *op, const char *word);

/* The tick from which on the reply to an operation may be true: after it started, and after that earlier command was executed. */
uint64_t check_since(const struct sim_op *op, size_t before);

/* check_reads.c: a read has its reply, which is no error. */
void check_answer(struct sim_op *op);

/* check_form.c: the same for the encodings beside oplog; an operation is issued, a message sent. */
void form_issued(struct sim_op *op);
void form_sent(struct world *world, struct message *message);
void form_execute(struct world *world, struct message *message);
void form_reply(struct sim_op *op);
/* Its parts: the command is said to have taken effect, the member was handed out. */
void form_stored(struct sim_op *op);
void form_popped(struct sim_op *op, int member);
/* An item of its set was evicted, or expired, while the command was under way. */
bool form_was_evicted(const struct sim_op *op);
void form_time(struct world *world);

/*
 * dates.c: says which histories have dates and slow calls; a date for a touch; a message was executed; the truth of its set
 * followed; a command has its reply; a connection breaks; nothing is under way.
 */
void dates_init(struct world *w, uint64_t seed);
int64_t dates_choose(struct world *w);
void dates_check(struct world *w, const struct message *m);
void dates_follow(struct world *w, int key, const struct message *m);
void dates_reply(struct sim_op *op);
void dates_broken(struct world *w);
void dates_quiet(struct world *w);

/* mutate.c: puts the bug into a call that is sent, that is about to be executed, or into what it brought. */
void mutate_sent(struct world *world, struct message *message);
void mutate_execute(struct world *world, struct message *message);
void mutate_executed(struct world *world, struct message *message);

/* mutate_runs.c: the same for the bugs in sorted runs. */
void mutate_runs_sent(struct world *world, struct message *message);
void mutate_runs_execute(struct world *world, struct message *message);
void mutate_runs_executed(struct world *world, struct message *message);

/* mutate_lives.c: the same for the bugs in times to live, in deleted bases, and in what is missing. */
void mutate_lives_sent(struct world *world, struct message *message);
void mutate_lives_executed(struct world *world, struct message *message);

/* mutate_leases.c: the same for the bugs in leases. */
void mutate_leases_sent(struct world *world, struct message *message);
void mutate_leases_executed(struct world *world, struct message *message);

#endif
