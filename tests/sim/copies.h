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
#ifndef SIM_COPIES_H
#define SIM_COPIES_H

#include <stdbool.h>
#include <stdint.h>

#include "collection/copies/join.h"
#include "collection/copies/stamp.h"
#include "histories.h"

enum {
	COPIES_SERVERS = 4, /* the first two have the copies */
	COPIES_PROXIES = 3,
	COPIES_TABLES = 64,
	COPIES_MEMBERS = 3, /* the last one is only claimed */
	/* Milliseconds. */
	COPIES_TIMEOUT = 100,
	COPIES_SETTLED = 400,  /* S of the design: older words may be closed */
	COPIES_LEASE = 60,     /* how long a proxy uses absences that it has read */
	COPIES_AHEAD = 200,    /* how far ahead an absence is raised */
	COPIES_SKEW = 20,      /* of clocks that differ */
	COPIES_REPAIRED = 800, /* after an absence all sets are repaired that were written in it */
	COPIES_MARGIN = 100,   /* for clocks, when a set is loaded */
	COPIES_START = 1000000 /* of the history */
};

enum copies_mutation {
	COPIES_NONE,
#define MUTATION(name, ...) COPIES_##name,
#include "copies.def"
	COPIES_MUTATIONS
};

enum copies_mark {
#define MARK(name, ...) MARK_##name,
#include "copies.def"
	COPIES_MARKS
};

enum copies_faults {
	FAULTS_NONE,
	FAULTS_ONE,
	FAULTS_ANY,
	FAULTS_SIDES,
	FAULTS_EVICT,
	FAULTS_KINDS
};

enum copies_verb {
	COPIES_SLEEP,
	COPIES_APPEND,
	COPIES_GET,
	COPIES_ADD,
	COPIES_CAS,
	COPIES_SET,
	COPIES_DELETE, /* with a cas id, unless that is 0 */
	COPIES_ADD_TABLE,
	COPIES_GET_TABLE,
	COPIES_DELETE_TABLE,
	COPIES_RAISE, /* the absence of a server */
	COPIES_READ_ABSENCES
};

/* FAIL: there is no answer, and the outcome is unknown. EXISTS also of a CAS that was lost. */
enum copies_status { COPIES_PENDING, COPIES_FAIL, COPIES_OK, COPIES_MISS, COPIES_EXISTS };

struct copies_answer {
	enum copies_status status;
	struct slice value; /* of a GET; no value if it was missing */
	uint64_t cas;
	unsigned table; /* members */
	uint64_t absences[2];
};

struct copies_op;

/* A call; those of an operation that are in flight together have different slots. */
struct copies_call {
	struct copies_op *op;
	unsigned slot, round;
	int server, proxy;
	enum copies_verb verb;
	struct slice value;
	uint64_t cas, number; /* a number: of a table, its members, an absence, milliseconds */
	int which;            /* a table, or the server of an absence */
	int64_t sent;
	bool late;
	struct copies_answer answer;
};

enum { COPIES_SLOTS = 4 };

/*
 * A running program of a proxy. Its function is called again where it waited, when the calls are
 * answered. A child runs for its parent, and leaves its result there.
 */
struct copies_op {
	void (*run)(struct copies_op *op);
	struct copies_world *w;
	struct copies_op *parent;
	int proxy, line, tries;
	unsigned life; /* of its proxy */
	unsigned round, left, needed;
	struct copies_answer answers[COPIES_SLOTS];
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

struct copies_server {
	enum { COPIES_UP, COPIES_DEAD, COPIES_HUNG } state;
	struct slice base; /* `p` is NULL if it is missing */
	uint64_t cas;
	bool has_table[COPIES_TABLES];
	unsigned tables[COPIES_TABLES];
	uint64_t absences[2];
	struct copies_call *inbox[256];
	int waiting;
};

struct copies_proxy {
	unsigned life;
	int64_t offset; /* of its clock */
	struct stamp_clock clock;
	uint64_t absences[2];
	int64_t absences_read; /* when the read was sent; 0 for never */
	uint64_t raised[2];    /* absences that all proxies know */
	bool cut[COPIES_SERVERS];
};

/* A write of an application to a member, or a pop or claim of it. */
struct copies_write {
	int member, proxy;
	bool adds;
	int64_t began, ended; /* 0 if it was not acknowledged */
};

struct copies_read {
	int64_t began, ended;
	unsigned members;
};

struct copies_event {
	int64_t at;
	uint64_t number;
	void (*run)(struct copies_world *w, struct copies_event *event);
	struct copies_call *call;
	int a, b;
};

enum { COPIES_EVENTS = 8192, COPIES_WRITES = 256, COPIES_ARENA = 8 << 20 };

struct copies_world {
	uint64_t random, seed;
	enum copies_mutation mutation;
	bool verbose, owned, alone, apart;
	enum copies_faults faults;
	int faulty;
	int64_t now;
	uint64_t numbers, cas;
	struct copies_event events[COPIES_EVENTS];
	int event_count;
	struct copies_server servers[COPIES_SERVERS];
	struct copies_proxy proxies[COPIES_PROXIES];
	unsigned database;
	int table_count;
	struct copies_write writes[COPIES_WRITES];
	struct copies_read reads[COPIES_WRITES];
	int write_count, read_count;
	unsigned claimed[COPIES_MEMBERS], popped[COPIES_MEMBERS], added[COPIES_MEMBERS], deletes;
	uint64_t answered, missing, errors, acknowledged, marks[COPIES_MARKS];
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

extern const struct histories copies_histories;

void copies_fail(struct copies_world *w, const char *what, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void copies_trace(struct copies_world *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
unsigned copies_below(struct copies_world *w, unsigned n);
void *copies_alloc(struct copies_world *w, size_t size);
struct slice copies_keep(struct copies_world *w, struct slice s);

/* --- the network (copies_lan.c) --- */

void copies_at(struct copies_world *w, int64_t at,
	void (*run)(struct copies_world *, struct copies_event *), int a, int b);
void copies_run(struct copies_world *w);
/* Puts a call into a slot of the operation; its answer is there when the operation runs again. */
struct copies_call *copies_call(
	struct copies_op *op, unsigned slot, int server, enum copies_verb verb);
void copies_kill(struct copies_world *w, int server);
void copies_hang(struct copies_world *w, int server);
void copies_up(struct copies_world *w, int server);
void copies_evict(struct copies_world *w, int server);
void copies_kill_proxy(struct copies_world *w, int proxy);
/* Returns whether an append is on its way that was sent so long ago that it may be closed. */
bool copies_has_late_append(const struct copies_world *w);

/* --- the rules (copies_rules.c) --- */

/* The set that a base, or the join of two, is; `table` is -1 if it has none. */
struct copies_set {
	bool exists;
	int table;
	unsigned adds, removes; /* members, after those of the table */
};

bool copies_has(struct slice base);
struct copies_set copies_fold(struct copies_world *w, struct slice a, struct slice b);
unsigned copies_members(const struct copies_set *set, unsigned table);
struct slice copies_join(
	struct copies_world *w, struct slice a, struct slice b, uint64_t horizon, uint64_t fill);
bool copies_believed(struct copies_op *op, int server, struct slice base);
/* Returns whether a server may be believed alone that has no copy. */
bool copies_miss_believed(struct copies_op *op, int server);
bool copies_whole(struct copies_op *op);
/* A base that is gone, at this horizon. */
struct slice copies_gone(struct copies_world *w, uint64_t horizon, uint64_t fill);
/* A base of a table, or of these members if `table` is -1, and the log of another base. */
struct slice copies_base(struct copies_world *w, uint64_t horizon, uint64_t fill, int table,
	unsigned members, struct slice former);
struct slice copies_group(
	struct copies_world *w, uint64_t stamp, bool creates, int member, bool adds);
struct slice copies_append(struct copies_world *w, struct slice base, struct slice group);
uint64_t copies_fill_of(struct slice base);
uint64_t copies_horizon_of(struct slice base);
bool copies_is_gone(struct slice base);
/* Notes all stamps of a base. */
void copies_see(struct copies_op *op, struct slice base);
uint64_t copies_now(const struct copies_op *op);
uint64_t copies_stamp(struct copies_op *op);

/* --- the programs (copies_steps.c, copies_programs.c) --- */

/* Starts a program; of a child, the parent waits for it. */
struct copies_op *copies_start(struct copies_world *w, int proxy, struct copies_op *parent,
	void (*run)(struct copies_op *));
void copies_resume(struct copies_op *op);
void copies_end(struct copies_op *op, bool done);

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
		copies_start((op)->w, (op)->proxy, (op), (run)); \
		WAIT(op); \
	} while (0)
#define FINISH(op, result) \
	do { \
		copies_end((op), (result)); \
		return; \
	} while (0)
#define END(op) }

/* Steps, which run as children. All leave `done`. */
void copies_step_absences(struct copies_op *op);   /* reads absences, unless the lease lasts */
void copies_step_absent(struct copies_op *op);     /* raises that of op->parent->server */
void copies_step_lose(struct copies_op *op);       /* makes the bases of the parent gone */
void copies_step_get(struct copies_op *op);        /* reads both bases */
void copies_step_incomplete(struct copies_op *op); /* called if no server has that table */
void copies_step_table(struct copies_op *op);      /* reads table op->parent->table */
void copies_step_repair(struct copies_op *op);     /* makes both copies equal, and closes them */
void copies_step_create(struct copies_op *op);     /* creates the set with the parent's word */

/* Programs. */
void copies_do_word(struct copies_op *op);
void copies_do_read(struct copies_op *op);
void copies_do_load(struct copies_op *op);
void copies_do_take(struct copies_op *op); /* a pop, or a claim */
void copies_do_delete(struct copies_op *op);
void copies_do_repair(struct copies_op *op);

int copies_write(struct copies_op *op, int member, bool adds);
void copies_check(struct copies_world *w);

#endif
