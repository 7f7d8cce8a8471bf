/*
 * Jobs in lists, which clients hold, acknowledge and give back, in a simulated world. Proxies are
 * killed at any of their calls, connections break, servers restart, and the clocks of all of them
 * differ. After each call the stored lists are compared with those before it: each job is in one
 * place; it leaves the place where it is held only by its ticket, or when its time is over by the
 * clock of the server. In the end all jobs are done, or among the dead ones.
 *
 * In some histories all lists move to other servers, whose clocks differ: the list is what its
 * former server has, and otherwise what the new one has. A proxy reads the clock of the new server
 * from a moment before the move on, which is another one for each proxy.
 *
 * The lists are j0, and j1, whose jobs go to d0 when they were delivered too often.
 */
#ifndef SIM_HOLDING_H
#define SIM_HOLDING_H

#include "stage.h"

enum {
	HOLDING_SERVERS = 3,
	HOLDING_FORMER = 2, /* the first of them, on which all lists are at first */
	HOLDING_CLIENTS = 8,
	HOLDING_LISTS = 3,
	HOLDING_BURIES = 1, /* j1 */
	HOLDING_DEAD = 2,   /* d0 */
	HOLDING_AFTER = 2,  /* deliveries */
	HOLDING_JOBS = 600,
	HOLDING_VERSIONS = 4096,
	HOLDING_TICKET = 12,
	HOLDING_SECONDS = 3,       /* of a hold, at most */
	HOLDING_DEAD_SECONDS = 60, /* of the hold before a job is moved to the dead ones */
	HOLDING_BESIDE = 2500,     /* milliseconds that a client may wait although there is a job */
	HOLDING_MARGIN = 2         /* seconds, of a move */
};

/* Bugs that are inserted on purpose. The checks must find each of them. */
enum holding_mutation {
	HOLDING_NONE,
#define MUTATION(name, what) HOLDING_##name,
#include "holdings.def"
#undef MUTATION
	HOLDING_MUTATIONS
};

/* A job in the stored form of a list. */
struct holding_place {
	int listed, at; /* how often it is in the list; its position */
	bool held, right;
	int64_t date;
	uint32_t deliveries;
	char ticket[HOLDING_TICKET + 1];
};

struct holding_state {
	struct holding_place jobs[HOLDING_JOBS];
	int count; /* of the listed ones */
	uint64_t hash;
	int64_t due; /* the first date; INT64_MAX if none is held */
};

struct holding_job {
	bool pushed, acknowledged, done, excused;
	uint32_t holds; /* executed ones since it was pushed to its list */
	int buried;     /* copies that were pushed to the dead list */
	/* Of the last hold: whether a client has sent this to end it, and how it ended. */
	bool ack_sent, fail_sent;
	char ticket[HOLDING_TICKET + 1], done_by[HOLDING_TICKET + 1];
	int list;
};

struct holding;

/* A command of a client. */
struct holding_op {
	struct stage_op stage;
	struct holding *world;
	int list, job; /* the job whose ticket it has, or -1 */
	char ticket[HOLDING_TICKET + 1];
	char overdue[HOLDING_TICKET + 1]; /* of a job that was due when the command was sent */
	size_t version;                   /* of the list when it was sent */
};

struct holding_proxy {
	struct stage_proxy stage;
	struct lan_host inner; /* the env for calls of moves, which name their server */
	struct moves *moves;   /* NULL if the lists do not move */
};

struct holding {
	struct stage stage;
	struct holding_proxy proxies[STAGE_PROXIES];
	struct push_board boards[STAGE_PROXIES];
	enum holding_mutation mutation;
	bool restarts;
	bool scarce; /* most clients find no job */
	/* If the lists move: the time in seconds, else 0; the new ring; the moments in milliseconds. */
	int64_t at;
	unsigned turn;
	uint64_t reloads[STAGE_PROXIES];
	struct holding_client {
		bool busy;
		int job; /* that it may hold, or -1 */
		char ticket[HOLDING_TICKET + 1];
	} clients[HOLDING_CLIENTS];
	struct holding_state lists[HOLDING_LISTS];
	struct holding_job jobs[HOLDING_JOBS];
	int job_count;
	struct holding_version {
		int count;
		uint64_t hash;
	} versions[HOLDING_LISTS][HOLDING_VERSIONS];
	size_t version_count[HOLDING_LISTS];
	/* since when a client could have a job, in milliseconds; UINT64_MAX: there is none */
	uint64_t filled[HOLDING_LISTS];
	uint64_t held, returned, dead, moved;
};

/* For histories_main. */
extern const struct histories holding_histories;

/*
 * Return the seconds of the clock of a list's server: proxies may read two clocks until the list
 * moves.
 */
int64_t holding_least(const struct holding *world, int list);
int64_t holding_most(const struct holding *world, int list);
/* Returns the item of a key on its server, or on the former one; NULL if that has none. */
const struct memcached_item *holding_item(struct holding *world, struct slice key, bool former);
/* Returns the list whose base has this key, or -1; the key, of two characters. */
int holding_list(struct slice key);
const char *holding_key(int list);

/* --- holding_model.c --- */

/* Compares the stored list with that before the call. */
void holding_executed(struct holding *world, const struct message *message, int list);
/* Its server has restarted: its jobs are lost. */
void holding_lost(struct holding *world, int list);
/* As in stage_hooks. */
void holding_answered(struct stage_op *op);
void holding_check_waiters(struct holding *world);
void holding_check_end(struct holding *world);
/* Returns whether a job with this ticket is held in a list; its number. */
bool holding_is_held(const struct holding *world, int list, const char *ticket, int *job);

/* --- holding_clients.c --- */

void holding_act(struct holding *world);
void holding_drain(struct holding *world);

/* --- holding_mutate.c --- */

void holding_mutate_sent(struct lan *lan, struct message *message);
void holding_mutate_executed(struct holding *world, struct message *message);

#endif
