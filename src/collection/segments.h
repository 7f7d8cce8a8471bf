/*
 * The segment items of one collection: writing new ones, and one call on each of those that a base refers to. Whoever asks is
 * told once, when all are answered.
 */
#ifndef COLLECTION_SEGMENTS_H
#define COLLECTION_SEGMENTS_H

#include "collection/host.h"
#include "collection/lane.h"
#include "collection/text/oplog.h"

struct segment {
	struct waiter waiter; /* its key is the segment's item */
	struct segments *owner;
	struct oplog_ref ref;
	struct buf data; /* GET: what it holds */
	bool missing;
};

/* One call on each segment. */
struct segments {
	struct lanes *lanes;
	struct buf refs, keys; /* copies, into which the segments point */
	struct segment *list;
	size_t count, asked, answered, missing;
	struct call call;
	bool failed;
	struct result failure; /* the first */
	struct buf failure_line;
	void (*done)(struct segments *segments); /* may destroy them */
	void *arg;
};

/* The segments that `refs` of a base name. */
struct segments *segments_create(struct lanes *lanes, struct slice key, struct slice refs);
void segments_destroy(struct segments *segments);

/* Makes the call on all, some at a time: GET, TOUCH or DELETE. `done` is called later, never within. There must be some. */
void segments_call(struct segments *segments, struct call call, void (*done)(struct segments *segments), void *arg);

/* Deletes the segments that `refs` name, in the background. */
void segments_forget(struct lanes *lanes, struct slice key, struct slice refs);

/* Gives the segments that `refs` name another time to live, in the background. */
void segments_touch(struct lanes *lanes, struct slice key, struct slice refs, int64_t exptime);

/* Writes segments of one group, or of a list. */
struct segment_writer {
	struct lanes *lanes;
	struct slice key; /* borrowed */
	enum oplog_kind kind;
	char group[OPLOG_GROUP];
	int64_t exptime;
	uint64_t started; /* when that was right, in milliseconds */
	struct buf refs;  /* of what was written */
	size_t count, pending;
	bool failed;
	struct result failure; /* the first; its line is borrowed from failure_line */
	struct buf failure_line;
	void (*answered)(struct segment_writer *writer); /* after each answer */
	void *arg;
};

void segment_writer_init(struct segment_writer *writer, struct lanes *lanes, struct slice key, enum oplog_kind kind,
	int64_t exptime, void (*answered)(struct segment_writer *writer), void *arg);
/* Nothing may be pending. */
void segment_writer_fini(struct segment_writer *writer);

/* Writes a log, cut into segments; gives the bytes it took, all of them or, with `whole` false, those of whole segments. */
size_t segment_writer_add(struct segment_writer *writer, struct slice log, bool whole);

/*
 * After the commit: gives the new segments the time to live `ttl` of the base, in the background, where that was touched while
 * they were written. Otherwise they are left alone: a touch that comes right behind the commit sees to them itself.
 */
void segment_writer_follow(const struct segment_writer *writer, int64_t ttl);

/* Remembers a failure past the life of its result. */
void segments_keep_failure(const struct result *r, bool *failed, struct result *failure, struct buf *line);

#endif
