/*
 * Two copies of one set, on two of four servers, with three proxies: the rules for copies as small
 * programs over the pure functions of src/collection/copies, before the daemon has them. Bases are
 * stored as bytes. One seed determines the whole history. Its kind is one of:
 *
 *     cache      the application writes its database, then a word to the set if it exists, and
 *                loads a missing set
 *     owned      the set is created by its first member; members are popped and claimed, and the
 *                set is deleted
 *
 * and its faults one of: none, one faulty server, any of four servers, proxies and cuts on both
 * sides, and evictions of one copy while the other server is unreachable. Servers are killed and
 * start empty, or hang and then execute what had arrived, in any order; connections are cut for
 * some proxies, and calls arrive long after they have failed. Clocks of proxies differ.
 *
 * Each read is checked for each member as a regular register: it has the value of a write that has
 * begun, and that no later acknowledged write contradicts. With at most one faulty server, a set
 * that is owned is never lost, unless it is lost while it is created and the second copy is late. At
 * the end both copies are equal.
 */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "collection/copies/join.h"
#include "collection/copies/stamp.h"
#include "histories.h"

enum {
	MODEL_SERVERS = 4, /* the first two have the copies */
	MODEL_PROXIES = 3,
	MODEL_TABLES = 64,
	MODEL_MEMBERS = 3, /* the last one is only claimed */
	/* Milliseconds. */
	MODEL_TIMEOUT = 100,
	MODEL_SETTLED = 400,  /* S of the design: older words may be closed */
	MODEL_LEASE = 60,     /* how long a proxy uses absences that it has read */
	MODEL_AHEAD = 200,    /* how far ahead an absence is raised */
	MODEL_SKEW = 20,      /* of clocks that differ */
	MODEL_REPAIRED = 800, /* after an absence all sets are repaired that were written in it */
	MODEL_MARGIN = 100,   /* for clocks, when a set is loaded */
	MODEL_START = 1000000 /* of the history */
};

enum model_mutation {
	MODEL_NONE,
#define MUTATION(name, ...) MODEL_##name,
#include "model.def"
	MODEL_MUTATIONS
};

enum model_mark {
#define MARK(name, ...) MARK_##name,
#include "model.def"
	MODEL_MARKS
};

enum model_faults { FAULTS_NONE, FAULTS_ONE, FAULTS_ANY, FAULTS_SIDES, FAULTS_EVICT, FAULTS_KINDS };

enum model_verb {
	MODEL_SLEEP,
	MODEL_APPEND,
	MODEL_GET,
	MODEL_ADD,
	MODEL_CAS,
	MODEL_SET,
	MODEL_DELETE, /* with a cas id, unless that is 0 */
	MODEL_ADD_TABLE,
	MODEL_GET_TABLE,
	MODEL_DELETE_TABLE,
	MODEL_RAISE, /* the absence of a server */
	MODEL_READ_ABSENCES
};

/* FAIL: there is no answer, and the outcome is unknown. EXISTS also of a CAS that was lost. */
enum model_status { MODEL_PENDING, MODEL_FAIL, MODEL_OK, MODEL_MISS, MODEL_EXISTS };

struct model_answer {
	enum model_status status;
	struct slice value; /* of a GET; no value if it was missing */
	uint64_t cas;
	unsigned table; /* members */
	uint64_t absences[2];
};

struct model_op;

/* A call; those of an operation that are in flight together have different slots. */
struct model_call {
	struct model_op *op;
	unsigned slot, round;
	int server, proxy;
	enum model_verb verb;
	struct slice value;
	uint64_t cas, number; /* a number: of a table, its members, an absence, milliseconds */
	int which;            /* a table, or the server of an absence */
	int64_t sent;
	bool late;
	struct model_answer answer;
};

enum { MODEL_SLOTS = 4 };

/*
 * A running program of a proxy. Its function is called again where it waited, when the calls are
 * answered. A child runs for its parent, and leaves its result there.
 */
struct model_op {
	void (*run)(struct model_op *op);
	struct model_world *w;
	struct model_op *parent;
	int proxy, line, tries;
	unsigned life; /* of its proxy */
	unsigned round, left, needed;
	struct model_answer answers[MODEL_SLOTS];
	bool done; /* the result of the child that has just ended */
	/* The arguments and variables of the programs. */
	int member, server, table, former, write, here, tables_lost;
	/* Servers without an answer; that said OK; to which a base was written. */
	unsigned failed, stored, written;
	bool adds, found, claims;
	int64_t began;
	uint64_t stamp, seen, horizon, cas[2]; /* `seen`: when the set was last found missing */
	struct slice bases[2], next[2];
	unsigned snapshot;
};

struct model_server {
	enum { MODEL_UP, MODEL_DEAD, MODEL_HUNG } state;
	struct slice base; /* `p` is NULL if it is missing */
	uint64_t cas;
	bool has_table[MODEL_TABLES];
	unsigned tables[MODEL_TABLES];
	uint64_t absences[2];
	struct model_call *inbox[256];
	int waiting;
};

struct model_proxy {
	unsigned life;
	int64_t offset; /* of its clock */
	struct stamp_clock clock;
	uint64_t absences[2];
	int64_t absences_read; /* when the read was sent; 0 for never */
	uint64_t raised[2];    /* absences that all proxies know */
	bool cut[MODEL_SERVERS];
};

/* A write of an application to a member, or a pop or claim of it. */
struct model_write {
	int member, proxy;
	bool adds;
	int64_t began, ended; /* 0 if it was not acknowledged */
};

struct model_read {
	int64_t began, ended;
	unsigned members;
};

struct model_event {
	int64_t at;
	uint64_t number;
	void (*run)(struct model_world *w, struct model_event *event);
	struct model_call *call;
	int a, b;
};

enum { MODEL_EVENTS = 8192, MODEL_WRITES = 256, MODEL_ARENA = 8 << 20 };

struct model_world {
	uint64_t random, seed;
	enum model_mutation mutation;
	bool verbose, owned, alone, apart;
	enum model_faults faults;
	int faulty;
	int64_t now;
	uint64_t numbers, cas;
	struct model_event events[MODEL_EVENTS];
	int event_count;
	struct model_server servers[MODEL_SERVERS];
	struct model_proxy proxies[MODEL_PROXIES];
	unsigned database;
	int table_count;
	struct model_write writes[MODEL_WRITES];
	struct model_read reads[MODEL_WRITES];
	int write_count, read_count;
	unsigned claimed[MODEL_MEMBERS], popped[MODEL_MEMBERS], added[MODEL_MEMBERS], deletes;
	uint64_t answered, missing, errors, acknowledged, marks[MODEL_MARKS];
	bool queues; /* some calls are sent long after they were made */
	bool unsteady; /* the call that creates a copy may be late, or have failed for its proxy only */
	bool lossy; /* both copies may be lost */
	bool lost;  /* the set counted as missing although it was not deleted */
	int64_t cut_until;
	const char *violation;
	char detail[400];
	char *arena;
	size_t used;
};

extern const struct histories model_histories;

void model_fail(struct model_world *w, const char *what, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void model_trace(struct model_world *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
unsigned model_below(struct model_world *w, unsigned n);
void *model_alloc(struct model_world *w, size_t size);
struct slice model_keep(struct model_world *w, struct slice s);

/* --- the network (model_lan.c) --- */

void model_at(struct model_world *w, int64_t at,
	void (*run)(struct model_world *, struct model_event *), int a, int b);
void model_run(struct model_world *w);
/* Puts a call into a slot of the operation; its answer is there when the operation runs again. */
struct model_call *model_call(struct model_op *op, unsigned slot, int server, enum model_verb verb);
void model_kill(struct model_world *w, int server);
void model_hang(struct model_world *w, int server);
void model_up(struct model_world *w, int server);
void model_evict(struct model_world *w, int server);
void model_kill_proxy(struct model_world *w, int proxy);
/* Returns whether an append is on its way that was sent so long ago that it may be closed. */
bool model_has_late_append(const struct model_world *w);

/* --- the rules (model_rules.c) --- */

/* The set that a base, or the join of two, is; `table` is -1 if it has none. */
struct model_set {
	bool exists;
	int table;
	unsigned adds, removes; /* members, after those of the table */
};

bool model_has(struct slice base);
struct model_set model_fold(struct model_world *w, struct slice a, struct slice b);
unsigned model_members(const struct model_set *set, unsigned table);
struct slice model_join(
	struct model_world *w, struct slice a, struct slice b, uint64_t horizon, uint64_t fill);
bool model_believed(struct model_op *op, int server, struct slice base);
/* Returns whether a server may be believed alone that has no copy. */
bool model_miss_believed(struct model_op *op, int server);
bool model_whole(struct model_op *op);
/* A base that is gone, at this horizon. */
struct slice model_gone(struct model_world *w, uint64_t horizon, uint64_t fill);
/* A base of a table, or of these members if `table` is -1, and the log of another base. */
struct slice model_base(struct model_world *w, uint64_t horizon, uint64_t fill, int table,
	unsigned members, struct slice former);
struct slice model_group(
	struct model_world *w, uint64_t stamp, bool creates, int member, bool adds);
struct slice model_append(struct model_world *w, struct slice base, struct slice group);
uint64_t model_fill_of(struct slice base);
uint64_t model_horizon_of(struct slice base);
bool model_is_gone(struct slice base);
/* Notes all stamps of a base. */
void model_see(struct model_op *op, struct slice base);
uint64_t model_now(const struct model_op *op);
uint64_t model_stamp(struct model_op *op);

/* --- the programs (model_steps.c, model_programs.c) --- */

/* Starts a program; of a child, the parent waits for it. */
struct model_op *model_start(
	struct model_world *w, int proxy, struct model_op *parent, void (*run)(struct model_op *));
void model_resume(struct model_op *op);
void model_end(struct model_op *op, bool done);

/*
 * A program is one switch. WAIT returns until the calls, or the child, have ended; the next variables
 * are those of the operation only.
 */
#define PROGRAM(op) \
	switch ((op)->line) { \
	case 0:
#define WAIT_AT(op, number) \
	do { \
		(op)->line = (number) + 1; \
		return; \
	case (number) + 1:; \
	} while (0)
#define WAIT(op) WAIT_AT(op, __COUNTER__)
#define CHILD(op, run) \
	do { \
		model_start((op)->w, (op)->proxy, (op), (run)); \
		WAIT(op); \
	} while (0)
#define FINISH(op, result) \
	do { \
		model_end((op), (result)); \
		return; \
	} while (0)
#define END(op) }

/* Steps, which run as children. All leave `done`. */
void model_step_absences(struct model_op *op);   /* reads absences, unless the lease lasts */
void model_step_absent(struct model_op *op);     /* raises that of op->parent->server */
void model_step_lose(struct model_op *op);       /* makes the bases of the parent gone */
void model_step_get(struct model_op *op);        /* reads both bases */
void model_step_incomplete(struct model_op *op); /* called if no server has that table */
void model_step_table(struct model_op *op);      /* reads table op->parent->table */
void model_step_repair(struct model_op *op);     /* makes both copies equal, and closes them */
void model_step_create(struct model_op *op);     /* creates the set with the parent's word */

/* Programs. */
void model_do_word(struct model_op *op);
void model_do_read(struct model_op *op);
void model_do_load(struct model_op *op);
void model_do_take(struct model_op *op); /* a pop, or a claim */
void model_do_delete(struct model_op *op);
void model_do_repair(struct model_op *op);

int model_write(struct model_op *op, int member, bool adds);
void model_check(struct model_world *w);

#endif
