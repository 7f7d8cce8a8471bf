/*
 * A call on a set with two copies while it is in progress, or a repair. It is a sequence of steps:
 * each sends calls to one or both copies, and the next one starts when all are answered. A step
 * that several programs need ends by calling what its caller has left with pair_enter.
 *
 * The programs are in read.c, word.c, rewrite.c, both.c and repair.c; refill.c is a step.
 */
#ifndef COLLECTION_COPIES_PAIR_H
#define COLLECTION_COPIES_PAIR_H

#include <sys/queue.h>

#include "collection/copies/absences.h"
#include "collection/copies/join.h"
#include "collection/copies/options.h"
#include "collection/copies/repairs.h"
#include "protocol/failure.h"

struct pair;

typedef void pair_step(struct pair *pair);
typedef void pair_after(struct pair *pair, bool done);

enum {
	PAIR_TRIES = 4,
	PAIR_DEPTH = 6,
	PAIR_FIRST = 1, /* bits of copies */
	PAIR_SECOND = 2,
	PAIR_BOTH = 3
};

/* One of the two copies, as it was read, and the answer to the last call on it. */
struct pair_side {
	struct waiter waiter; /* with the name of the item */
	struct pair *pair;
	enum result_status status;
	struct buf value;
	bool has;         /* there is an item, and `copy` is its base */
	bool foreign;     /* the item is no base of a copy */
	struct copy copy; /* borrows `value` */
	uint64_t cas, connection, size;
	uint64_t number; /* of a counter */
	uint32_t flags;
	int64_t ttl;
	const char *server;
};

struct pair {
	LIST_ENTRY(pair) link;
	struct copies *copies;
	struct waiter *asker; /* NULL for a repair */
	struct call call;     /* with copies of its slices; the key is that of the first copy */
	struct pair_side sides[2];
	unsigned pending, depth; /* calls of the step; entries of `returns` */
	pair_step *step;         /* when nothing is pending */
	pair_after *returns[PAIR_DEPTH];
	struct waiter timer;
	struct absence_waiter absence;
	struct failure failure;
	/* Bits of the copies that have not answered; that stored; that were written. */
	unsigned failed, stored, written;
	unsigned away;        /* the copy whose server was absent */
	unsigned tries, here; /* `here`: the copy that decides */
	uint64_t stamp, began;
	/*
	 * Of both copies: env.now when they were read; their largest stamp; the horizon after a
	 * repair, 0 if it failed.
	 */
	uint64_t asked, largest, horizon;
	struct copy_join join;
	struct buf next; /* the base or group that is written */
	bool exists;     /* the join is a set that is not missing */
	bool checks;     /* looks for all parts on both servers before it writes a base */
	bool passes;     /* an item that is found is passed to the asker at once */
	size_t size;     /* of this struct, with the bytes */
	char bytes[];
};

/* The settings and state that all programs share. */
struct copies {
	struct copies_options options;
	struct absences *absences;
	struct stamp_clock clock;
	LIST_HEAD(, pair) pairs;
	struct copies_stats stats;
	uint64_t settled;  /* milliseconds: words that are older may be closed */
	uint64_t repaired; /* milliseconds after an absence in which sets are repaired */
	struct repairs *repairs;
	struct recalls *recalls;
	bool stopped;
	uint64_t connects; /* env.connects when `started` was looked at last */
	int64_t started[]; /* of each server; 0 if it is unknown */
};

/* Returns a pair for the call, whose key may be that of a part. */
struct pair *pair_create(struct copies *copies, const struct call *call, struct waiter *asker);

/* Frees the pair, and passes the result to the asker. */
void pair_end(struct pair *pair, const struct result *r);
/* The same for a result that is only a status, and for the first failure of a call. */
void pair_end_as(struct pair *pair, enum result_status status);
void pair_fail(struct pair *pair);
/* The same for the item of a copy, as it was read. */
void pair_answer(struct pair *pair, unsigned copy);
/* A write that may have been stored has an unknown outcome, whatever failed after it. */
void pair_fail_unknown(struct pair *pair);
/* Ends a write: it is done, or its outcome is unknown. */
pair_after pair_end_write;

/* Calls of a step. `copy` is 0 or 1; `key` and `server` are filled in. */
void pair_send(struct pair *pair, unsigned copy, struct call call);
/* Sends the call to both, and runs the next step when both are answered. */
void pair_send_both(struct pair *pair, struct call call, pair_step *next);
/* Runs the next step when all calls are answered. Sets `failed` and `stored` from them. */
void pair_wait(struct pair *pair, pair_step *next);
void pair_sleep(struct pair *pair, unsigned ms, pair_step *next);

void pair_enter(struct pair *pair, pair_after *after);
void pair_leave(struct pair *pair, bool done);

/* Unix time, and the next stamp, by the corrected clock. */
uint64_t pair_now(const struct pair *pair);
uint64_t pair_stamp(struct pair *pair);
/*
 * Whether an answer is so late after pair->stamp, a quarter of `settled`, that the word or the base
 * of that stamp may be void.
 */
bool pair_is_late(const struct pair *pair);

/* --- steps --- */

/* Makes sure that all absences are known. */
void pair_know(struct pair *pair, pair_after *after);
/* Raises the absence of the server of a copy. */
void pair_absent(struct pair *pair, unsigned copy, pair_after *after);
/* Reads both copies. Sets `failed`. */
void pair_get(struct pair *pair, pair_after *after);
/* The same once all absences are known. If they cannot be, the call fails. Sets `began`. */
void pair_look(struct pair *pair, pair_after *after);
/* Takes over the answer about a copy from its side. */
void pair_take(struct pair *pair, unsigned copy, const struct result *r);

/* Returns the absence of the server of a copy, as it is known: see absences.h. */
uint64_t pair_absence(const struct pair *pair, unsigned copy);
/*
 * Whether any server was absent after a copy that was read was closed: it may lack parts, which are
 * on more servers than the bases.
 */
bool pair_may_lack_parts(const struct pair *pair);
bool pair_believed(const struct pair *pair, unsigned copy);
bool pair_is_whole(const struct pair *pair);
/* Whether the copies that were read are enough to decide what the set is. */
bool pair_suffices(const struct pair *pair);

/*
 * Joins two bases, of which one may be NULL, into pair->join.out: see copy_join_begin. Sets
 * `exists`. It fails if a base is malformed.
 */
void pair_join(struct pair *pair, const struct copy *a, const struct copy *b, uint64_t horizon,
	uint64_t fill, pair_after *after);
/* The same of the copies that were read. Requires that there is one. */
void pair_join_sides(struct pair *pair, uint64_t horizon, uint64_t fill, pair_after *after);

/*
 * Finds out whether words that were stored with pair->stamp count. If they were stored late, both
 * copies are read: as long as neither is closed up to that stamp, the words count.
 */
void pair_count(struct pair *pair, pair_after *after);

/*
 * After a join of the copies that were read: whether the set has expired. Its date has passed, and
 * one of the copies is missing; the other one was created or refilled while it was touched. If both
 * are there, the touch has failed.
 */
bool pair_has_expired(const struct pair *pair);

/*
 * Whether a copy has a date that has passed, but does not expire: the word of a touch was so late
 * that it met a set that had expired and was created again.
 */
bool pair_outlives_date(const struct pair *pair, unsigned copy, struct slice base);

/* Writes a base to a copy by CAS, or by ADD if it has none. */
void pair_store(
	struct pair *pair, unsigned copy, struct slice base, uint32_t flags, int64_t exptime);
/* The same with the flags of the set. The exptime is the date of the base, if it has one. */
void pair_write(struct pair *pair, unsigned copy, struct slice base, int64_t exptime);

/* Tokens of the copies that were read: see result.cas and result.connection. */
uint64_t pair_token(const struct pair *pair);
uint64_t pair_second_token(const struct pair *pair);

/* --- programs --- */

void read_start(struct pair *pair);     /* GET */
void word_start(struct pair *pair);     /* APPEND */
void word_create(struct pair *pair);    /* ADD of words */
void rewrite_start(struct pair *pair);  /* CAS, or another ADD */
void rewrite_delete(struct pair *pair); /* DELETE, and a touch with a time in the past */
void both_touch(struct pair *pair);     /* TOUCH, GAT */
void counter_start(struct pair *pair);  /* all calls on counters and events */
void both_part(struct pair *pair);      /* all calls on parts */

/* Part of word_create: adds the words to a set that is gone, of which a copy was read. */
void rewrite_gone(struct pair *pair);

/*
 * Makes both copies equal, and closes them: then `horizon` is that of both. If call.role.settled,
 * also closes one that may be believed while the other server is unreachable.
 */
void pair_repair(struct pair *pair, pair_after *after);

/* Makes both copies of a counter equal, unless it is being counted. */
void counter_repair(struct pair *pair, pair_after *after);

#endif
