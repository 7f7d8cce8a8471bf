/*
 * Readers of the encodings other than oplog, written from their documentation: the items of a
 * collection, and their members. They share no code with the code under test. form.c also lists
 * the guarantees that each encoding lacks, with the reasons.
 */
#ifndef SIM_FORM_H
#define SIM_FORM_H

#include "collection/rules.h"
#include "truth.h"

struct world;

enum form_state {
	FORM_MISSING, /* it is missing */
	FORM_LOST,    /* a part of it is missing, which can be detected */
	FORM_WRONG,   /* bytes that violate the encoding */
	FORM_WHOLE
};

/*
 * Checks that are switched off for an encoding, and why. All other checks apply to each encoding.
 * form.c has the table.
 *
 * PARTS       The server evicts an item of removals: this cannot be detected, and the removed
 *             members reappear. Then a pop may return a member that a compaction is just dropping.
 * SSET_RACES  An sset is one call, but another command that is in flight may have written its part
 *             before it.
 * FLICKER     A write that met a flip is repeated: until it is acknowledged it may be in effect,
 *             then not, and then again.
 * LATE        A write that met a compaction, or a new list, is repeated: until it is acknowledged
 *             it may take effect by a call of another proxy.
 */
enum form_exempt { EXEMPT_PARTS = 1, EXEMPT_SSET_RACES = 2, EXEMPT_FLICKER = 4, EXEMPT_LATE = 8 };

struct form {
	const char *name;
	struct collection_rule rule;
	enum form_state (*read)(struct world *w, int key, uint64_t *members);
	unsigned exempt;
};

/* Returns NULL if no encoding has this name. */
const struct form *form_named(const char *name);

/* Returns the collection that an item is a part of, or -1. */
int form_key(const struct form *form, struct slice item);

#endif
