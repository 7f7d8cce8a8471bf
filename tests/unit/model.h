/* A set as anyone would write it at first: a list that is searched from its start. What the fold is
 * compared with. */
#ifndef UNIT_MODEL_H
#define UNIT_MODEL_H

#include "collection/text/fold.h"

enum { MODEL_MAX = 4096 };

struct model {
	struct model_member {
		struct slice name;
		bool in;
	} members[MODEL_MAX]; /* in the order in which they were first named */
	size_t count, live;
};

/*
 * Reads a log by the words of the contract: tokens of a sign and 1 to 250 bytes, none of them 0x00
 * to 0x20 or 0x7f, each followed by one space. False for anything else. Its bytes are borrowed.
 */
bool model_log(struct model *m, struct slice log);

/* Whether a fold, and the log that it is encoded as, have the same members, in the order in which they were first named. */
bool model_agrees(const struct model *m, const struct fold *f);

#endif
