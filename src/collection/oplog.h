/*
 * The oplog encoding. The item under a collection's own key, its base, is
 *
 *     +z ... @list @id @id ... +a -b +c ...
 *
 * a log of what was added at the head, the block of references to segments, oldest first, and behind them the log of what was
 * added and removed since, each token ended by one space. Where there is no block all of it is one log. The word @list stands
 * at the start of the block of what is a list: there an item that is said again is there twice. A segment is an item <key>.<id>
 * that is written once and never changed, and holds such a log without references.
 *
 * An id is a letter, eleven random ones, a number and a size: `c` for clean: its group, the segments with the same random
 * part, were written by one rewrite of all there was, name no member twice and remove none. `d` for delta: what was added and
 * removed later, to be folded over what is older. The number counts within the group; the size is in KB. `l` for a part of a
 * list, only additions: the number is how many. Behind its reference may stand a window, :<skip>:<keep>, which is no part of
 * the id: of the segment's items those count that follow the first `skip`, and of them `keep`.
 */
#ifndef COLLECTION_OPLOG_H
#define COLLECTION_OPLOG_H

#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/slice.h"

enum { OPLOG_ID_MAX = 28, OPLOG_GROUP = 12 };

enum oplog_kind { OPLOG_CLEAN = 'c', OPLOG_DELTA = 'd', OPLOG_LIST = 'l' };

/* What makes a base that of a list. */
#define OPLOG_LIST_MARK "@list "

struct oplog_base {
	struct slice head; /* what is before the block */
	struct slice refs; /* all reference tokens */
	struct slice log;  /* what is behind them; not checked */
	size_t ref_count;
	bool is_list; /* it says so */
};

struct oplog_ref {
	struct slice id;    /* without the @ and the window */
	struct slice group; /* its first OPLOG_GROUP bytes */
	enum oplog_kind kind;
	bool clean;
	uint32_t kilobytes;
	uint32_t count;      /* of the items of a list's segment */
	uint32_t skip, keep; /* its window; all of them where there is none */
};

/* Splits a base; false when its references are none, or what is before them is no log. */
bool oplog_split(struct slice base, struct oplog_base *out);

/* True when a token of the log begins with @, as in a base with a block. */
bool oplog_has_block(struct slice log);

/* Takes the first reference off `refs`, which came from oplog_split; false when none is left. */
bool oplog_next_ref(struct slice *refs, struct oplog_ref *out);

/* The part of a segment's data that the window of its reference shows. */
struct slice oplog_window(struct slice data, const struct oplog_ref *ref);

/* Appends a reference token. */
void oplog_add_ref(struct buf *out, struct slice id, size_t count, size_t skip, size_t keep);

/* Writes a new group's name to `group`. */
void oplog_new_group(enum oplog_kind kind, uint64_t *random, char group[OPLOG_GROUP]);

/* Appends the id of a segment of `bytes` bytes. */
void oplog_add_id(struct buf *out, const char group[OPLOG_GROUP], size_t number, size_t bytes);

/* Where to cut a log so that a piece of at most `max` bytes ends with a whole token; 0 when not even one fits. */
size_t oplog_cut(struct slice log, size_t max);

/* The same for a piece at the end of the log: gives its size. */
size_t oplog_cut_end(struct slice log, size_t max);

/* How many tokens a log has. */
size_t oplog_count(struct slice log);

#endif
