/*
 * The oplog encoding. The item under a collection's own key, its base, is
 *
 *     +z ... @set.1 @run @run ... +a -b +c ...
 *     +z ... @list @id @id ...    +a -b +c ...
 *
 * a log of what was put in front by others, the block of references, oldest first, and behind them the log of what was added
 * and removed since, each token ended by one space. Where there is no block all of it is one log. The mark at the start of
 * the block says what it refers to, and in which version of the form; the mark of version 1 of a list has no number.
 *
 * The log is the write-ahead log of a log-structured merge tree, and runs are its sorted runs. A run is a sequence of tables
 * (table.h), in the order of their members. A reference to a run is
 *
 *     @<id>.<tables>.<entries>.<removals>.<bytes>.<check>
 *
 * An id is a letter and eleven random ones or digits. `t`: the run is one table, the item <key>.<id>. `i`: that item is an
 * index (fences.h), which names the tables. The check, 16 hexadecimal digits, is that of the item's content (util/check.h).
 * The entries, the removals among them, and the bytes are those of all tables. Removals in the oldest run say nothing; there
 * are some only where all that was older came to nothing.
 *
 * A reference to a segment of a list is @l<eleven random>.<count>.<size>: an item <key>.<id> that is written once and never
 * changed, and holds additions. The count is of its items, the size is in KB. Behind it may stand a window, :<skip>:<keep>,
 * which is no part of the id: of the segment's items those count that follow the first `skip`, and of them `keep`.
 */
#ifndef COLLECTION_TEXT_OPLOG_H
#define COLLECTION_TEXT_OPLOG_H

#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/slice.h"

enum { OPLOG_ID_MAX = 28, OPLOG_ID = 12 };

enum oplog_kind { OPLOG_TABLE = 't', OPLOG_INDEX = 'i', OPLOG_LIST = 'l' };

/* The marks of blocks. */
#define OPLOG_LIST_MARK "@list "
#define OPLOG_SET_MARK "@set.1 "

enum oplog_form {
	OPLOG_GOOD,
	OPLOG_CORRUPT,
	OPLOG_NEWER,   /* of a later version: not to be read, nor rewritten */
	OPLOG_OUTDATED /* of version 0.1.0, which nobody reads any more */
};

struct oplog_base {
	enum oplog_form form; /* what follows counts only when it is OPLOG_GOOD */
	struct slice head;    /* what is before the block */
	struct slice block;   /* the mark and all reference tokens */
	struct slice refs;    /* all reference tokens */
	struct slice log;     /* what is behind them; not checked */
	size_t ref_count;
	bool is_list; /* it says so */
};

/* A reference to a segment of a list. */
struct oplog_ref {
	struct slice id; /* without the @ and the window */
	uint32_t kilobytes;
	uint32_t count;      /* of its items */
	uint32_t skip, keep; /* its window; all of them where there is none */
};

/* A reference to a run of a set. */
struct oplog_run {
	struct slice id;
	bool indexed;                              /* the item is an index, else the one table */
	uint64_t tables, entries, removals, bytes; /* each below 2^32 */
	uint64_t check;
};

/* True when this is the id, or the first part of one, of that kind. */
bool oplog_is_id(struct slice id, enum oplog_kind kind);

/*
 * Splits a base; false when it cannot be read, and `form` says why: its references are none, what is before them is no log, or
 * it is of another version. It borrows.
 */
bool oplog_split(struct slice base, struct oplog_base *out);

/* True when a token of the log begins with @, as in a base with a block. */
bool oplog_has_block(struct slice log);

/* Takes the first reference off the `refs` of a base, of a list or of a set; false when none is left. */
bool oplog_next_ref(struct slice *refs, struct oplog_ref *out);
bool oplog_next_run(struct slice *refs, struct oplog_run *out);

/* The part of a list segment's data that the window of its reference shows. */
struct slice oplog_window(struct slice data, const struct oplog_ref *ref);

/* Appends a reference token. */
void oplog_add_ref(struct buf *out, struct slice id, size_t count, size_t skip, size_t keep);
void oplog_add_run(struct buf *out, const struct oplog_run *run);

/* Writes a new id, or the first part of that of a list's segment. */
void oplog_new_id(enum oplog_kind kind, uint64_t *random, char id[OPLOG_ID]);

/* Appends the id of a list's segment of `bytes` bytes. */
void oplog_add_id(struct buf *out, const char group[OPLOG_ID], size_t number, size_t bytes);

/* Where to cut a log so that a piece of at most `max` bytes ends with a whole token; 0 when not even one fits. */
size_t oplog_cut(struct slice log, size_t max);

/* The same for a piece at the end of the log: gives its size. */
size_t oplog_cut_end(struct slice log, size_t max);

/* How many tokens a log has. */
size_t oplog_count(struct slice log);

#endif
