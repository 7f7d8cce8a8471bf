/*
 * The base of a set with two copies, on one of its two servers:
 *
 *     @set.1 @run @run ... +a -b  ~o<H> ~f<F> ~g  ~s<stamp> +c -d ~e  ~c<stamp> +e ~e ...
 *
 * The closed part precedes ~o. It is the base of a set with one copy, so its references are found
 * as in any other base. H, the horizon, and F are stamps. Everything up to H is in the closed part.
 * Groups of later words follow ~o, one for each append. The copies receive them in different
 * orders, so their order in the base means nothing: of two words for a member, the one with the
 * larger stamp counts, and of two with the same stamp the removal. Within a group the last word for
 * a member counts. A word up to H is void.
 *
 * F is the time at which the base was put where there was none: words that were acknowledged before
 * may be missing. ~f is omitted if there is none.
 *
 * ~g: the set was missing at H: it was deleted, or lost and not loaded again. Words after H are
 * kept, for the client that loads it. A group of ~c, words that may create a set, makes it a set of
 * the words after H. A base with ~g has no closed part.
 *
 * Words after ~o that are in no group, because another client appended them, have the stamp that
 * follows the largest one to their left. A base without ~o had one copy so far: all that precedes
 * its first group is closed, at the horizon 0.
 *
 * To versions without copies such a base is malformed, because of ~o or the first ~s or ~c.
 *
 * The date of the base (text/date.h) may be in the closed part or in a group, and is a word.
 */
#ifndef COLLECTION_COPIES_COPY_H
#define COLLECTION_COPIES_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/slice.h"

struct copy {
	uint64_t horizon,
		fill; /* 0 if there is none; without a horizon neither `fill` nor `gone` */
	bool gone;
	struct slice closed; /* the base of a set with one copy; not checked */
	struct slice log;    /* groups, and words in none; not checked */
};

/* Parses a base; `out` borrows it. Returns false if it is malformed. */
bool copy_parse(struct slice base, struct copy *out) __attribute__((warn_unused_result));

/*
 * copy_add_closed appends the closed part. More words of it may follow, and then copy_end_closed,
 * which appends the tokens between it and the log: none if there is no horizon.
 */
void copy_add_closed(struct buf *out, const struct copy *copy);
void copy_end_closed(struct buf *out, const struct copy *copy);

/* copy_start_group appends the start of a group, and copy_end_group its end. */
void copy_start_group(struct buf *out, uint64_t stamp, bool creates);
void copy_end_group(struct buf *out);

/*
 * Appends a group: the words of one append, tokens as in a log. It `creates` the set if that is
 * gone.
 */
void copy_add_group(struct buf *out, uint64_t stamp, bool creates, struct slice words);

/* Whether the closed part may refer to parts. */
static inline bool copy_may_have_parts(const struct copy *copy)
{
	return copy->closed.n && *copy->closed.p == '@';
}

/* A word of a log, or the start of a group, which has no token. */
struct copy_word {
	uint64_t stamp;
	bool starts;        /* a group, or words that are in none */
	bool creates;       /* the group may create the set */
	struct slice token; /* with its sign, without the space; a date begins with ~ */
};

/* Reads the words of a log. All zeroes, except for `rest` and `largest`, is its start. */
struct copy_reader {
	struct slice rest;
	uint64_t stamp;   /* of the group; 0 outside groups */
	uint64_t largest; /* so far; at first the horizon */
	bool is_stray;    /* the last word was in no group, and has the stamp `largest` */
};

enum copy_read { COPY_WORD, COPY_END, COPY_MALFORMED };

/* Reads the next word. At COPY_MALFORMED the log must not be used. */
enum copy_read copy_next(struct copy_reader *reader, struct copy_word *out);

/* Returns the largest stamp in a base, which may be its horizon. */
uint64_t copy_last_stamp(const struct copy *copy);

/*
 * Returns the part of a token that identifies its member: of words with a date at which they
 * expire, the part before that.
 */
struct slice copy_member(struct slice token);

/*
 * Returns whether a copy has all acknowledged words, so that a read needs no other one. `absence`
 * is the largest stamp up to which a word may have been acknowledged without its server.
 */
bool copy_is_believed(const struct copy *copy, uint64_t absence);

/*
 * Returns whether each acknowledged word is in at least one of the two copies. NULL is a copy that
 * its server reported as missing. If the pair is not whole, the set counts as missing. `absences`
 * are for the servers of `a` and `b`, as above.
 */
bool copy_pair_is_whole(
	const struct copy *a, const struct copy *b, const uint64_t absences[static 2]);

#endif
