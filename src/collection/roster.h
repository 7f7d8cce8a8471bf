/*
 * A roster: the members of a set as they are read, in one text, each parted from the next by one space. Made from a fold, and
 * from clean segments below it: those are copied, and only looked up in the fold, which has the last word.
 */
#ifndef COLLECTION_ROSTER_H
#define COLLECTION_ROSTER_H

#include "collection/text/fold.h"
#include "util/shared.h"

struct roster {
	struct buf text;       /* while it is made */
	struct shared *shared; /* from when on it was shared */
	size_t count;
	uint32_t *index; /* made when it is first needed: open addressing, where each member begins, plus one */
	size_t slots;
	uint64_t seed;
};

/* All zeroes is the empty roster. */
void roster_free(struct roster *r);

/* Adds the members of a clean segment, but for those that the fold mentions. False when the segment is not clean. */
bool roster_add_clean(struct roster *r, struct slice segment, const struct fold *over)
	__attribute__((warn_unused_result));

/* Adds the live members of a fold, and ends the making of the roster: nothing may be added behind. */
void roster_add_fold(struct roster *r, const struct fold *fold);

/* The text; borrowed. */
struct slice roster_text(const struct roster *r);

/* The same for whoever wants to keep it, and holds it for that. */
struct shared *roster_share(struct roster *r);

/* Makes the index when it is not there. */
bool roster_contains(struct roster *r, struct slice member);

/* Takes the next member off a roster's text. */
static inline struct slice roster_next(struct slice *text)
{
	return slice_token(text);
}

/* Bytes of memory that it holds. */
size_t roster_memory(const struct roster *r);

/*
 * Chooses `count` of the members, or all when there are no more, each as likely as any other, and appends them to `out`, each
 * with `before` in front and one space behind. Gives how many.
 */
size_t roster_sample(const struct roster *r, size_t count, uint64_t *random, const char *before, struct buf *out);

#endif
