/*
 * The parts of a collection, items <key>.<id> in addition to its base: the segments of a
 * list, the indexes and tables of a set. Makes calls on many parts with one callback,
 * and writes new parts.
 */
#ifndef COLLECTION_REWRITE_PARTS_H
#define COLLECTION_REWRITE_PARTS_H

#include "collection/env.h"
#include "collection/lane/lane.h"
#include "collection/text/oplog.h"
#include "protocol/failure.h"

struct part {
	struct waiter waiter; /* waiter.key is the part's key */
	struct parts *owner;
	struct slice id;
	struct oplog_check check; /* check of its value, if the reference to it has one */
	struct buf data;          /* GET: the value */
	uint64_t connection;      /* connection of the reply */
	bool missing;
};

/*
 * One call on each part. `missing` counts the misses, and the values that do not match the
 * check of their reference.
 *
 * A missing part may be missing only here: a setlistd with another list of servers looks for
 * it on a different server. That is impossible if the part is on the server of the base, and
 * this server reports the miss on the same connection on which it returned the base.
 * `missing_on` is this connection.
 */
struct parts {
	struct lanes *lanes;
	struct buf ids, keys; /* copies, to which the parts point */
	struct part *list;
	size_t count, asked, answered, missing;
	uint64_t missing_on; /* 0: no part is missing, or only parts that are on other servers */
	struct call call;
	struct failure failure;
	void (*done)(struct parts *parts); /* may destroy `parts` */
	void *arg;
};

/*
 * Return an object for the parts with these ids, each followed by a space; or for the segments
 * that the references of a list point to, with their checks. Slices are copied. The caller
 * destroys the object.
 */
struct parts *parts_create(struct lanes *lanes, struct slice key, struct slice ids);
struct parts *parts_create_of_list(struct lanes *lanes, struct slice key, struct slice refs);
void parts_destroy(struct parts *parts);

/*
 * Returns the connection as missing_on does, for a part that is missing or does not match the
 * check of its reference.
 */
uint64_t part_missing_on(const struct part *part);

/* Returns the key of the collection. Borrowed; requires at least one part. */
struct slice parts_key(const struct parts *parts);

/*
 * Returns the account that pays for the calls on parts: that of the first operation of the
 * batch, which must not end before the calls. NULL if it has none.
 */
static inline struct account *lane_account(const struct lane *lane)
{
	return lane_first(lane) ? lane_first(lane)->account : NULL;
}

/*
 * Sends `call` (GET, TOUCH or DELETE) for each part, in the turns of call.account, with a
 * limited number of calls in flight. `done` is called once, never within this function.
 * Requires at least one part.
 */
void parts_call(
	struct parts *parts, struct call call, void (*done)(struct parts *parts), void *arg);

/*
 * Sends `call` for all parts that the references of a base lead to; reads the indexes of runs
 * to find their tables. Requires at least one reference. `done` owns its argument. If an index
 * could not be read, `failure` or `missing` is set.
 */
void parts_call_all(struct lanes *lanes, struct slice key, struct slice refs, struct call call,
	void (*done)(struct parts *parts), void *arg);

/* Deletes these parts, or all that the references lead to, in the background. */
void parts_forget(struct lanes *lanes, struct slice key, struct slice ids);
void parts_forget_all(struct lanes *lanes, struct slice key, struct slice refs);

/*
 * Touches all parts that the references lead to, so that they outlive a base with `exptime`.
 * Works like parts_call_all.
 */
void parts_touch_all(struct lanes *lanes, struct slice key, struct slice refs, int64_t exptime,
	struct account *account, void (*done)(struct parts *parts), void *arg);

/* Writes the parts of one collection. */
struct part_writer {
	struct lanes *lanes;
	struct slice key; /* borrowed */
	int64_t exptime;  /* of the base */
	uint64_t started; /* env.now when exptime was computed */
	unsigned behind;  /* for oplog_new_id */
	bool wide;        /* a part needs a base of form 3; set by the caller */
	struct buf ids;   /* ids of all parts written, each followed by a space */
	size_t pending;
	struct failure failure;
	void (*answered)(void *arg); /* called after each reply */
	void *arg;
};

void part_writer_init(struct part_writer *w, struct lanes *lanes, struct slice key, int64_t exptime,
	void (*answered)(void *arg), void *arg);
/* Requires pending to be 0. */
void part_writer_fini(struct part_writer *w);

/*
 * Writes a part by ADD. Slices are borrowed until the return. A base may refer to the part
 * once pending is 0.
 */
void part_writer_add(struct part_writer *w, struct slice id, struct slice data);

/*
 * Called after the commit, with the time to live `ttl` of the base. If the base was touched
 * while the parts were written, touches the parts in the background. Otherwise does nothing: a
 * later touch of the base finds them.
 */
void part_writer_follow(const struct part_writer *w, int64_t ttl);

/* Deletes all parts written, in the background. No base may refer to them. */
void part_writer_forget(const struct part_writer *w);

#endif
