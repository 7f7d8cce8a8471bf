/*
 * The items of a collection beside its base: the segments of a list, the indexes and tables of a set. Calls on many of
 * them with one callback, and writing of such items. In this file a segment is any of these items, <key>.<id>.
 */
#ifndef COLLECTION_SEGMENTS_H
#define COLLECTION_SEGMENTS_H

#include "collection/env.h"
#include "collection/lane/lane.h"
#include "collection/text/oplog.h"
#include "protocol/failure.h"

struct segment {
	struct waiter waiter; /* waiter.key is the item's key */
	struct segments *owner;
	struct slice id;
	struct buf data; /* GET: the item's value */
	bool missing;
};

/* One call on each segment. `missing` counts the misses. */
struct segments {
	struct lanes *lanes;
	struct buf ids, keys; /* copies; the segments point into them */
	struct segment *list;
	size_t count, asked, answered, missing;
	struct call call;
	struct failure failure;
	void (*done)(struct segments *segments); /* may destroy `segments` */
	void *arg;
};

/*
 * Gives an object for the items with these ids, each followed by a space. Both slices are copied. The caller destroys
 * it.
 */
struct segments *segments_create(struct lanes *lanes, struct slice key, struct slice ids);
void segments_destroy(struct segments *segments);

/*
 * Sends `call` (GET, TOUCH or DELETE) for each segment, a limited number at a time. `done` is called once, never within
 * this function. Requires at least one segment.
 */
void segments_call(struct segments *segments, struct call call, void (*done)(struct segments *segments), void *arg);

/*
 * Sends `call` for all items that the references of a base lead to; reads the indexes of runs to find tables. Requires
 * at least one reference. `done` owns its argument. If an index could not be read, `failure` or `missing` says so.
 */
void segments_call_all(struct lanes *lanes, struct slice key, struct slice refs, struct call call,
	void (*done)(struct segments *segments), void *arg);

/* Deletes these items, or all that the references lead to, in the background. */
void segments_forget(struct lanes *lanes, struct slice key, struct slice ids);
void segments_forget_all(struct lanes *lanes, struct slice key, struct slice refs);

/* Touches them with another exptime, in the background. */
void segments_touch(struct lanes *lanes, struct slice key, struct slice ids, int64_t exptime);
void segments_touch_all(struct lanes *lanes, struct slice key, struct slice refs, int64_t exptime);

/* Appends the ids in `refs`, each followed by a space: of segments, or of runs without the tables of their indexes. */
void segments_ids(struct slice refs, struct buf *out);

/*
 * Writes an item <key>.<id> by ADD; slices are borrowed until the return. `answered` gets NULL, or the failure,
 * borrowed. The item_write is freed then.
 */
struct item_write {
	struct waiter waiter;
	struct lanes *lanes;
	void (*answered)(void *arg, const struct result *failure);
	void *arg;
	size_t size;
	char key[];
};
void segments_write(struct lanes *lanes, struct slice key, struct slice id, struct slice data, int64_t exptime,
	void (*answered)(void *arg, const struct result *failure), void *arg);

/*
 * Whether items that got `exptime` at `started` (env.now, milliseconds) now have a time to live that differs from `ttl`
 * by more than 2 seconds.
 */
bool segments_ttl_differs(const struct lanes *lanes, int64_t exptime, uint64_t started, int64_t ttl);

/* Writes the segments of a list. */
struct segment_writer {
	struct lanes *lanes;
	struct slice key; /* borrowed */
	int64_t exptime;
	uint64_t started; /* env.now when exptime was computed */
	struct buf refs;  /* references to the segments, in order */
	size_t pending;
	struct failure failure;
	void (*answered)(struct segment_writer *writer); /* after each answer */
	void *arg;
};

void segment_writer_init(struct segment_writer *writer, struct lanes *lanes, struct slice key, int64_t exptime,
	void (*answered)(struct segment_writer *writer), void *arg);
/* Requires pending to be 0. */
void segment_writer_fini(struct segment_writer *writer);

/* Cuts a log into segments, adds their references and sends their writes. The log is borrowed until the return. */
void segment_writer_add(struct segment_writer *writer, struct slice log);

/*
 * Called after the commit, with the time to live `ttl` of the base. If the base was touched while the segments were
 * written, touches them in the background. Otherwise it does nothing: a later touch of the base finds them.
 */
void segment_writer_follow(const struct segment_writer *writer, int64_t ttl);

#endif
