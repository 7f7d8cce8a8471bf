/* A set as anyone would write it at first: a list that is searched from its start. What the fold is
 * compared with. */
#ifndef UNIT_MODEL_H
#define UNIT_MODEL_H

#include "util/buf.h"
#include "util/slice.h"

enum { MODEL_MAX = 4096 };

struct model {
	struct model_member {
		struct slice name;
		bool in;
	} members[MODEL_MAX]; /* in the order in which they were first named */
	size_t count, live;
};

/* Says that `member` is in, or is out; its bytes are borrowed. */
void model_put(struct model *m, struct slice member, bool in);

/*
 * Reads a log by the words of the contract: tokens of a sign and 1 to 250 bytes, none of them 0x00
 * to 0x20 or 0x7f, each followed by one space. False for anything else.
 */
bool model_log(struct model *m, struct slice log);

/* The members, joined by one space. */
void model_join(const struct model *m, struct buf *out);

#endif
