/*
 * A naive implementation of a set, with which the fold is compared: a list that is searched from
 * its start.
 */
#ifndef UNIT_MODEL_H
#define UNIT_MODEL_H

#include "collection/text/fold.h"

enum { MODEL_MAX = 4096 };

struct model {
	struct model_member {
		struct slice name;
		bool in;
		uint32_t date; /* of a member that is in; 0 for none */
	} members[MODEL_MAX];  /* in the order in which they first occurred */
	size_t count, live;
};

/*
 * Parses a log by the rules of the contract: tokens of a sign and a word of 1 to 2000 bytes, each
 * followed by one space. An addition may have a date before the space: 0x02 and ten digits. Returns
 * false for anything else. Its bytes are borrowed.
 */
bool model_log(struct model *m, struct slice log);

/* Removes the members whose date is `now` or earlier. */
void model_expire(struct model *m, int64_t now);

/*
 * Returns whether a fold, and its encodings as a log, have the same members with the same dates, in
 * the order in which they first occurred.
 */
bool model_agrees(const struct model *m, const struct fold *f);

#endif
