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
	} members[MODEL_MAX]; /* in the order in which they first occurred */
	size_t count, live;
};

/*
 * Parses a log by the rules of the contract: tokens of a sign and 1 to 250 bytes, none of them
 * 0x00 to 0x20 or 0x7f, each followed by one space. Returns false for anything else. Its bytes are
 * borrowed.
 */
bool model_log(struct model *m, struct slice log);

/*
 * Returns whether a fold, and its encoding as a log, have the same members, in the order in which
 * they first occurred.
 */
bool model_agrees(const struct model *m, const struct fold *f);

#endif
