/*
 * The items of a collection beside its base: the segments of a list, the indexes and tables of a set. Calls on many of them,
 * of which whoever asks is told once, when all are answered; and the writing of the segments of a list.
 */
#ifndef COLLECTION_SEGMENTS_H
#define COLLECTION_SEGMENTS_H

#include "collection/env.h"
#include "collection/lane/lane.h"
#include "collection/text/oplog.h"
#include "protocol/failure.h"

struct segment {
	struct waiter waiter; /* its key is the item's */
	struct segments *owner;
	struct slice id;
	struct buf data; /* GET: what it holds */
	bool missing;
};

/* One call on each segment. */
struct segments {
	struct lanes *lanes;
	struct buf ids, keys; /* copies, into which the segments point */
	struct segment *list;
	size_t count, asked, answered, missing;
	struct call call;
	struct failure failure;
	void (*done)(struct segments *segments); /* may destroy them */
	void *arg;
};

/* The items of a collection with these ids, each followed by a space. */
struct segments *segments_create(struct lanes *lanes, struct slice key, struct slice ids);
void segments_destroy(struct segments *segments);

/* Makes the call on all, some at a time: GET, TOUCH or DELETE. `done` is called later, never within. There must be some. */
void segments_call(struct segments *segments, struct call call, void (*done)(struct segments *segments), void *arg);

/*
 * Makes the call on all items that the references of a base lead to; indexes are read for that. What `done` is given may have
 * failed, or miss some, because an index did. There must be references.
 */
void segments_call_all(struct lanes *lanes, struct slice key, struct slice refs, struct call call,
	void (*done)(struct segments *segments), void *arg);

/* Deletes these items, or all that the references lead to, in the background. */
void segments_forget(struct lanes *lanes, struct slice key, struct slice ids);
void segments_forget_all(struct lanes *lanes, struct slice key, struct slice refs);

/* Gives them another time to live, in the background. */
void segments_touch(struct lanes *lanes, struct slice key, struct slice ids, int64_t exptime);
void segments_touch_all(struct lanes *lanes, struct slice key, struct slice refs, int64_t exptime);

/* Appends the ids that references of a list name, or those that references of a set name themselves. */
void segments_ids(struct slice refs, struct buf *out);

/* Sends the write of an item <key>.<id>; `answered` gets the outcome, and the waiter is gone then. */
struct item_write {
	struct waiter waiter;
	struct lanes *lanes;
	void (*answered)(void *arg, const struct result *failure); /* NULL when it was written; not to be kept */
	void *arg;
	size_t size;
	char key[];
};
void segments_write(struct lanes *lanes, struct slice key, struct slice id, struct slice data, int64_t exptime,
	void (*answered)(void *arg, const struct result *failure), void *arg);

/* What items that got `exptime` when the clock said `started` have left by now, compared with `ttl`: true where it differs. */
bool segments_ttl_differs(const struct lanes *lanes, int64_t exptime, uint64_t started, int64_t ttl);

/* Writes segments of a list. */
struct segment_writer {
	struct lanes *lanes;
	struct slice key; /* borrowed */
	int64_t exptime;
	uint64_t started; /* when that was right, in milliseconds */
	struct buf refs;  /* of what was written */
	size_t pending;
	struct failure failure;
	void (*answered)(struct segment_writer *writer); /* after each answer */
	void *arg;
};

void segment_writer_init(struct segment_writer *writer, struct lanes *lanes, struct slice key, int64_t exptime,
	void (*answered)(struct segment_writer *writer), void *arg);
/* Nothing may be pending. */
void segment_writer_fini(struct segment_writer *writer);

/* Writes a log, cut into segments. */
void segment_writer_add(struct segment_writer *writer, struct slice log);

/*
 * After the commit: gives the new segments the time to live `ttl` of the base, in the background, where that was touched while
 * they were written. Otherwise they are left alone: a touch that comes right behind the commit sees to them itself.
 */
void segment_writer_follow(const struct segment_writer *writer, int64_t ttl);

#endif
