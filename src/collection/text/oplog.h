/*
 * The oplog encoding. The base, the item under a collection's own key, is
 *
 *     +z ... @set.3 @run @run ...  +a -b +c ...
 *     +z ... @list.3 @id @id ...   +a -b +c ...
 *
 * the head, a log that was prepended; the block of references, oldest first; and the log,
 * additions and removals since the block was written. Each token ends with one space. A base
 * without a block is one log. The mark that starts the block contains the type of its references
 * and the version of the form: 1, written `set.1` and `list`, or 3, which differs in the words that
 * parts may have (see oplog_is_narrow_word). A base keeps form 1 as long as it can, so that version
 * 1.0 reads it, too. Version 2 is that of lease.h.
 *
 * The log is the write-ahead log of a log-structured merge tree, and runs are its sorted runs. A
 * run is a sequence of tables (table.h) in the order of their members. A reference to a run is
 *
 *     @<id>.<tables>.<entries>.<removals>.<bytes>.<check>
 *     @<id>.<tables>.<entries>.<removals>.<bytes>.<dated>.<mean>.<check>
 *
 * An id is a letter and eleven random letters or digits: first a digit, then a letter, and a letter
 * at the end, so that few other keys end like one. The digit is the place of the part: 0 is the
 * server of the base, n the n-th one after it. `t`: the run is one table, the item <key>.<id>. `i`:
 * that item is an index (fences.h), which lists the tables. The check is that of the item's value
 * (util/check.h), 16 hexadecimal digits. Entries, removals among them, and bytes are totals of the
 * run's tables. The second form is that of a run with members that expire: their number, and the
 * mean of their dates. Removals in the oldest run have no effect; it has some only if all older
 * runs were merged to nothing.
 *
 * Words of the log of a set may have dates: see expiry.h. The log may also have dates at which the
 * base expires: see date.h. That of a list may have elements
 * that clients hold: see held.h.
 *
 * A reference to a segment of a list is
 *
 *     @s<eleven random>.<count>.<size>.<check>:<skip>:<keep>
 *
 * The id ends with the size. The segment <key>.<id> is written once, never changed, and holds
 * `count` additions; the size is in KB. The check is as above. The last part, a window, is
 * optional: it skips the first `skip` elements of the segment, and shows the next `keep`. Version
 * 0.1.0 wrote an `l` instead of the `s`, followed by any letters and digits, and no check.
 */
#ifndef COLLECTION_TEXT_OPLOG_H
#define COLLECTION_TEXT_OPLOG_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/element.h"
#include "util/buf.h"
#include "util/slice.h"

enum { OPLOG_ID_MAX = 28, OPLOG_ID = 12 };

/*
 * OLD_LIST: a segment of version 0.1.0, placed by its own key; all others by the key of the base.
 */
enum oplog_kind { OPLOG_TABLE = 't', OPLOG_INDEX = 'i', OPLOG_LIST = 's', OPLOG_OLD_LIST = 'l' };

/* The marks of form 1; those of a set have the same size in form 3. */
#define OPLOG_LIST_MARK "@list "
#define OPLOG_SET_MARK "@set.1 "
#define OPLOG_WIDE_SET_MARK "@set.3 "

enum oplog_form {
	OPLOG_GOOD,
	OPLOG_CORRUPT,
	OPLOG_NEWER,   /* a later version, which must not be read or rewritten */
	OPLOG_LOADING, /* a client is loading it: see lease.h. Fields except `refs` are valid */
	OPLOG_OUTDATED /* version 0.1.0, which is no longer supported */
};

struct oplog_base {
	enum oplog_form form; /* the other fields are valid only if OPLOG_GOOD */
	struct slice head;    /* the log before the block */
	struct slice block;   /* the mark and all references */
	struct slice refs;    /* all references */
	struct slice log;     /* the log after the block; not checked */
	size_t ref_count;
	bool is_list; /* by its mark */
	bool wide;    /* form 3: parts may have words that are not narrow */
};

/* The check of a segment's content, if its reference has one. */
struct oplog_check {
	bool known;
	uint64_t value;
};

/* A reference to a segment of a list. */
struct oplog_ref {
	struct slice id; /* without @, check and window */
	struct oplog_check check;
	uint32_t kilobytes;
	uint32_t count;      /* elements in the segment */
	uint32_t skip, keep; /* the window; the whole segment if it has none */
};

/* A reference to a run of a set. */
struct oplog_run {
	struct slice id;
	bool indexed; /* the item is an index; else it is the only table */
	uint64_t tables, entries, removals, bytes; /* each below 2^32 */
	uint64_t dated, mean;                      /* below 2^32; 0 without members that expire */
	uint64_t check;
};

/* Returns whether `id` is an id of this kind, or the fixed-size first part of one. */
bool oplog_is_id(struct slice id, enum oplog_kind kind);

/*
 * Splits a base; `out` borrows it. Returns false, with the reason in out->form, if head or
 * references are malformed, or the version is not supported. The last log is not checked.
 */
bool oplog_split(struct slice base, struct oplog_base *out);

/* Returns the end of the addition or removal at `p`, after its space; NULL if it is malformed. */
static inline const char *oplog_token_end(const char *p, const char *end)
{
	const char *word = p + 1;

	if (*p != '+' && *p != '-')
		return NULL;
	p = element_word_end(word, end);
	return !p || p == end || p - word > ELEMENT_WORD_MAX ? NULL : p + 1;
}

/* The same for a token of a set, whose word may have a date. */
const char *oplog_dated_token_end(const char *p, const char *end);

/*
 * Returns whether the word is one of form 1: at most 250 bytes, and no escapes or control
 * bytes. oplog_is_narrow does so for all words of a well-formed log.
 */
static inline bool oplog_is_narrow_word(struct slice word)
{
	enum { NARROW_MAX = 250 };

	return word.n <= NARROW_MAX && word_end(word.p, word.p + word.n) == word.p + word.n;
}
bool oplog_is_narrow(struct slice log);

/* Appends the mark of a block. A part with a word that is not narrow needs form 3. */
void oplog_add_mark(struct buf *out, bool is_list, bool wide);

/* Returns whether a token begins with @, which means that there is a block. */
bool oplog_has_block(struct slice log);

/* Remove the first reference from oplog_base.refs. False if there is none, or it is malformed. */
bool oplog_next_ref(struct slice *refs, struct oplog_ref *out);
bool oplog_next_run(struct slice *refs, struct oplog_run *out);

/* Returns whether two references to runs are equal in every number. */
bool oplog_same_run(const struct oplog_run *a, const struct oplog_run *b);

/* Returns whether about half of a run that mostly has members that expire has done so at `now`. */
static inline bool oplog_is_spent(const struct oplog_run *run, int64_t now)
{
	enum { PART = 4 };

	return run->dated && run->dated >= run->entries / PART && (int64_t)run->mean <= now;
}

/* Returns whether `data` can be the content of the segment. */
bool oplog_matches(struct oplog_check check, struct slice data);

/* Returns the part of a segment's log that its reference's window shows. */
struct slice oplog_window(struct slice data, const struct oplog_ref *ref);

/* Append a reference to a segment, or to a run. */
void oplog_add_ref(struct buf *out, const struct oplog_ref *ref);
void oplog_add_run(struct buf *out, const struct oplog_run *run);

/* Writes a new random id with a place from 0 to `behind`; of a segment's id, the first part. */
void oplog_new_id(enum oplog_kind kind, unsigned behind, uint64_t *random, char id[OPLOG_ID]);

/* Appends the id of a list's segment with `number` elements in `bytes` bytes. */
void oplog_add_id(struct buf *out, const char group[OPLOG_ID], size_t number, size_t bytes);

/*
 * Returns the size of the longest prefix of whole tokens with at most `max` bytes, or of the
 * first token if it is larger.
 */
size_t oplog_cut(struct slice log, size_t max);

/* The same as oplog_cut for the end of the log. */
size_t oplog_cut_end(struct slice log, size_t max);

/* Returns the end of the date or held element at `p`, as oplog_token_end does. */
const char *oplog_extra_end(const char *p, const char *end);

/*
 * Returns whether a log consists only of well-formed tokens, whose words may have dates, of dates
 * of the base, and of held elements.
 */
bool oplog_is_log(struct slice log);

/* Returns the number of tokens in a log. */
size_t oplog_count(struct slice log);

/* Returns whether references of a base lead to a part twice. No writer creates such a base. */
bool oplog_refs_repeat(const struct oplog_base *base);

#endif
