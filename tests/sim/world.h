/*
 * The simulated world: servers, proxies, clients, and a network that delays, loses and breaks. The
 * proxies run the real code of src/command and src/collection. One seed determines the whole
 * history.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <sys/queue.h>

#include "collection/lane/lanes.h"
#include "command/task.h"
#include "expiring.h"
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

/* Bugs that are inserted on purpose. The checks must find each of them. */
enum mutation {
	MUTATION_NONE,
#define MUTATION(name, what, encodings) MUTATION_##name,
#include "mutations.def"
#undef MUTATION
	MUTATIONS
};

/* The changes by the commands of a call; see check_form.c. */
struct wants {
	uint64_t adds, removes;
	bool pops, ends;
};

/* The last observed pointer of a flipped collection. */
struct seen_pointer {
	char name[8];
	uint64_t cas;
	bool appended; /* and this was the last call since then */
};

/* Data of the checks and mutations about a message. */
struct note {
	struct wants wants;
	struct seen_pointer lie; /* MUTATION_NO_CHECK */
	bool stale;              /* MUTATION_STALE_CAS: its cas id is from an earlier connection */
	/* MUTATION_EARLY_DELETE: nothing is done, but its proxy receives success */
	bool lost;
	/* a read of a base that was sent after a write which was not executed */
	bool behind;
	/* the number of the command that touches or deletes by this call; 0 if unknown */
	uint64_t asked;
	/* it may also be an earlier command, which touches again since a part was missing */
	bool unclear;
	bool expires, claims; /* a sexpire, or a sclaim, has sent it; if members expire */
};

static inline struct note *note(const struct message *m)
{
	return m->note;
}

struct sim_list_op;
struct lists;
struct stored_sets;

/* The members that a read refers to. They are numbered in byte order. */
struct sim_question {
	int asked[SIM_ASKED]; /* members, one by one */
	size_t count;         /* of them */
	int first, last;      /* a range of members */
	size_t most;          /* maximum number of members in the reply */
};

/* Of a command with several keys: the client's last earlier commands on each. */
struct sim_many {
	size_t before[SIM_KEYS][SIM_MEMBERS], before_any[SIM_KEYS];
	struct buf keys; /* the numbers of its sets, as bytes */
};

/* One command of a client. */
struct sim_op {
	/* in the world's commands in flight, or in the queue of a client */
	TAILQ_ENTRY(sim_op) link;
	struct world *world;
	struct lan_proxy *proxy;
	int client, key;
	command_id command;
	bool members[SIM_MEMBERS]; /* members that it adds, removes or loads */
	char token[STORED_TOKEN];  /* of a lease */
	bool executed[SIM_MEMBERS];
	struct sim_question question; /* of a read */
	uint64_t issued;              /* tick at which its proxy started it */
	int64_t exptime;              /* of a touch */
	bool touches, touched;        /* its touch of the base was sent, and was executed */
	bool touched_empty;           /* the base was empty then */
	int64_t ends;                 /* the end of the base that this touch has set */
	size_t number;                /* of the command, from 1 on */
	size_t before[SIM_MEMBERS];   /* this client's last earlier command on each, 0 for none */
	size_t before_any;
	struct buf line, reply;
	uint64_t seconds; /* of a saddex or sexpire */
	uint32_t date;    /* when the members that it writes expire; 0 for never */
	int expired;      /* number of members that a sexpire has written */
	struct buf log;   /* members that an addition or removal writes */
	bool log_executed;
	struct sim_list_op *list; /* of a command on a list, otherwise NULL */
	struct sim_many *many;    /* of a command with several keys, otherwise NULL */
	struct account account;   /* MUTATION_LATE_READ: as if each command had its own client */
	/* it failed with an unknown outcome: an sset, sload or sfill may still be executed */
	bool ended;
};

/* Data of a write that the checks need after its reply. */
struct sim_past {
	int client, key;
	uint64_t members; /* members that it names */
	bool adds;        /* it does not remove them */
	uint32_t date;    /* when they expire; 0 for never */
	bool done;        /* it was acknowledged, and `executed` has its tick */
};

/* The true state of sets in encodings other than oplog. */
struct form_truth {
	struct form_command {
		int client, key;
		uint64_t issued, ended; /* ticks */
		uint64_t adds, removes;
		bool pops, ends, dates; /* dates: it sets a time to live */
		/* a call of this delete removed members that no other command was removing */
		bool deletes, wiped;
	} commands[SIM_COMMANDS];
	enum form_state state[SIM_KEYS];
	uint64_t members[SIM_KEYS];
	/* the last tick at which it was lost; at which it expired */
	uint64_t lost[SIM_KEYS], gone[SIM_KEYS];
	/* at which a part of it was missing, without a call that deleted it */
	uint64_t evicted[SIM_KEYS];
	/* members that were changed by a loss, until the set is missing */
	uint64_t damaged[SIM_KEYS];
	/* number of removals by pops that have not been acknowledged yet */
	unsigned taken[SIM_KEYS][SIM_MEMBERS];
	bool taking;
	/* the last removal of a damaged member, other than by a pop */
	uint64_t dropped[SIM_KEYS][SIM_MEMBERS];
	uint64_t second; /* for which everything was checked */
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
	/* when all sets and lists were last checked */
	uint64_t second;
	/* numbers of each client's last command on each */
	size_t last[SIM_CLIENTS][SIM_KEYS][SIM_MEMBERS];
	size_t last_any[SIM_CLIENTS][SIM_KEYS];
	uint64_t executed[SIM_COMMANDS];    /* ticks, by the number of the command; 0 for none */
	struct sim_past past[SIM_COMMANDS]; /* by the number of the command */
	bool ever_added[SIM_KEYS][SIM_MEMBERS];
	unsigned granted[SIM_KEYS][SIM_MEMBERS]; /* claims without a reply to a client yet */
	struct sim_stakes {
		unsigned taken[SIM_MEMBERS]; /* by stakes without a reply yet */
		unsigned maybe[SIM_MEMBERS]; /* the same, unless it had expired then */
		bool unsure;                 /* some of them may never be in a reply */
	} stakes[SIM_PROXIES][SIM_KEYS];     /* stakes.c */
	/* number of removals by calls of a delete that have not been acknowledged yet */
	unsigned deleted[SIM_KEYS];
	enum mutation mutation;
	struct index_check {
		uint64_t was, is;
	} index_checks[SIM_INDEXES]; /* MUTATION_FENCE: the fences of indexes that were changed */
	size_t index_count;
	struct seen_pointer pointers[SIM_PROXIES][SIM_KEYS]; /* MUTATION_NO_CHECK */
	/* MUTATION_BLIND_VIEW: the bases as seen by each proxy */
	struct buf views[SIM_PROXIES][SIM_KEYS];
	int stray;   /* the proxy with another list of servers; -1 for none */
	bool skewed; /* the clocks of proxies differ by a second */
	bool dated;  /* clients touch sets with dates */
	/* expiring.c: members expire; errors of estimates in milliseconds; the last dates */
	bool expiring;
	int64_t clock_errors[SIM_PROXIES][SIM_SERVERS];
	struct expiring_date {
		int key;
		uint32_t date;
	} last_dates[EXPIRING_DATES];
	size_t date_count;
	bool starting;                              /* a command is being started */
	uint64_t full_reads[SIM_PROXIES][SIM_KEYS]; /* MUTATION_OLD_MOMENT: the last, by proxies */
	/* dates.c: this date is no longer checked */
	bool date_lost[SIM_KEYS];
	int64_t dates; /* dates.c: number of chosen dates */
	/* dates.c: the date of a touch that was answered, or 0 */
	int64_t settled[SIM_KEYS];
	/* dates.c: the last tick at which a connection broke */
	uint64_t broken;
	/* when a proxy last read only a time to live */
	uint64_t date_read[SIM_PROXIES][SIM_KEYS];
	/* when a proxy last carried out a CAS */
	uint64_t date_written[SIM_PROXIES][SIM_KEYS];
	struct rewrite {
		/* ticks: of its last CAS, and of its last CAS or correction */
		uint64_t written, changed;
		char item[16];
	} rewrites[SIM_PROXIES][SIM_KEYS]; /* dates.c */
	/* dates.c: the tick of the last correction that crossed another rewrite */
	uint64_t crossed[SIM_KEYS];
	bool slow;             /* some calls take seconds */
	bool ended;            /* a command since pipeline_run() */
	unsigned evictions;    /* of items, and restarts of servers */
	const char *violation; /* the violation, or NULL */
	char detail[200];
	uint64_t commands, failures, compactions, merges, incomplete;
	/* lives.c, dates.c: touches that a correction has undone, and may not have detected */
	uint64_t undone;
	uint64_t expired; /* members that rewrites dropped */
};

/* Runs one history. If a check failed, `violation` and `detail` describe it. */
void world_run(struct world *world, const struct form *form, uint64_t seed, enum mutation mutation,
	bool verbose);

/* Returns the sizes of collections in a history, which the seed chooses. */
const struct collection_options *world_sizes(uint64_t seed);

/* For the parts of the world: */
void world_fail(struct world *world, const char *what, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
uint64_t world_random(struct world *world, uint64_t below);
bool world_chance(struct world *world, unsigned percent);
uint64_t world_now(const struct world *world); /* milliseconds */
void world_settle(struct world *world);        /* until nothing is in flight */
int world_server(struct slice key);
/* Returns the number of the set whose base has this key; -1 for any other key. */
int world_set(struct slice key);
struct memcached_item *world_find(struct world *world, struct slice key);

/*
 * network.c: this world's hooks of the network; returns whether the reply may report a set or list
 * as missing that is not, because its proxy has another list of servers.
 */
extern const struct lan_hooks network_hooks;
bool network_excuses(const struct sim_op *op);

/* proxy.c: fails everything that is in flight in a killed proxy, and replaces it by a new one. */
struct lan_proxy *proxy_create(struct world *world, int index);
void proxy_free(struct lan_proxy *proxy);
void proxy_kill(struct world *world, int index);
void proxy_free_op(struct sim_op *op);
void proxy_forget_op(struct sim_op *op);

/*
 * pipeline.c: a client sends a command; starts queued commands; drops those of a proxy, or with
 * NULL all.
 */
void pipeline_init(struct world *world);
void pipeline_send(struct sim_op *op);
void pipeline_run(struct world *world);
void pipeline_close(struct world *world, const struct lan_proxy *proxy);

/* clients.c: a client sends random commands, or this one. lists.c writes the lines of lists. */
void clients_act(struct world *world);
void clients_issue(
	struct world *world, struct lan_proxy *proxy, int client, int key, command_id command);

/* check.c: a message is executed at its server; a command has its reply. */
void check_execute(struct world *world, struct message *message);
void check_reply(struct sim_op *op);
void check_time(struct world *world);

/*
 * Marks an sset in flight as executed: the one with these members, or with NULL each one, since it
 * may be any of them.
 */
bool check_is_sset(struct world *world, int key, const bool *members);

/* --- stakes.c --- */

/*
 * A rewrite has left these members. Returns false if it cannot be that of a stake. Called with the
 * reply to a stake, also of a proxy that was killed.
 */
bool stakes_written(struct world *world, const struct message *message, int key,
	const bool members[SIM_MEMBERS]);
void stakes_reply(struct sim_op *op);

/* Returns how the reply begins. */
bool check_says(const struct sim_op *op, const char *word);

/*
 * Returns the tick from which on the reply to an operation may be true: after it started, and
 * after that earlier command was executed.
 */
uint64_t check_since(const struct sim_op *op, size_t before);

/*
 * check_reads.c: a read has its reply, which is not an error; whether some reader since that tick
 * may have found that a member is in its set, or is not.
 */
void check_answer(struct sim_op *op);
bool check_was(const struct world *world, int key, int member, uint64_t since, bool in);

/*
 * check_form.c: the same for the encodings other than oplog; an operation is issued, a message
 * sent.
 */
void form_issued(struct sim_op *op);
void form_sent(struct world *world, struct message *message);
void form_execute(struct world *world, struct message *message);
void form_reply(struct sim_op *op);
/* Its parts: the command is reported as executed, the member was returned by a pop. */
void form_stored(struct sim_op *op);
void form_popped(struct sim_op *op, int member);
/* An item of its set was evicted, or expired, while the command was in flight. */
bool form_was_evicted(const struct sim_op *op);
void form_time(struct world *world);

/*
 * dates.c: chooses which histories have dates and slow calls; a date for a touch; a message was
 * executed; the truth of its set was updated; a command has its reply; a connection breaks;
 * nothing is in flight.
 */
void dates_init(struct world *w, uint64_t seed);
int64_t dates_choose(struct world *w);
void dates_check(struct world *w, const struct message *m);
void dates_follow(struct world *w, int key, const struct message *m);
void dates_reply(struct sim_op *op);
void dates_broken(struct world *w);
void dates_quiet(struct world *w);

/*
 * mutate.c: inserts the bug into a call that is sent, that is about to be executed, or into its
 * result.
 */
void mutate_sent(struct world *world, struct message *message);
void mutate_execute(struct world *world, struct message *message);
void mutate_executed(struct world *world, struct message *message);

/* mutate_runs.c: the same for the bugs in sorted runs. */
void mutate_runs_sent(struct world *world, struct message *message);
void mutate_runs_execute(struct world *world, struct message *message);
void mutate_runs_executed(struct world *world, struct message *message);

/* mutate_stakes.c: the same for the bugs in stake. */
void mutate_stakes_sent(struct world *world, struct message *message);
void mutate_stakes_executed(struct world *world, struct message *message);

/*
 * mutate_lives.c: the same for the bugs in times to live, in deleted bases, and in missing items.
 */
void mutate_lives_sent(struct world *world, struct message *message);
void mutate_lives_executed(struct world *world, struct message *message);

/*
 * mutate_expiring.c: the same for the bugs in members that expire; how much an estimate of a clock
 * is off; and whether the bug needs such members.
 */
void mutate_expiring_sent(struct world *world, struct message *message);
void mutate_expiring_execute(struct world *world, struct message *message);
void mutate_expiring_executed(struct world *world, struct message *message);
int64_t mutate_expiring_clock(const struct lan_proxy *proxy, int server);
bool mutate_expiring_needed(const struct world *world);

/* mutate_leases.c: the same for the bugs in leases. */
void mutate_leases_sent(struct world *world, struct message *message);
void mutate_leases_executed(struct world *world, struct message *message);

#endif
