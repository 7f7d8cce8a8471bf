/*
 * Readers of the other encodings than oplog, written from their documentation: the items of a collection, and their members.
 * They use none of the code under test. form.c also has what each encoding does not promise, with the reason.
 */
#ifndef SIM_FORM_H
#define SIM_FORM_H

#include "collection/rules.h"
#include "truth.h"

struct world;

enum form_state {
	FORM_MISSING, /* there is none */
	FORM_LOST,    /* a part of it is gone, and that can be seen */
	FORM_WRONG,   /* bytes that are not of the encoding */
	FORM_WHOLE
};

/*
 * Checks that are switched off for an encoding, and why. All other checks hold for each encoding. form.c has the table.
 *
 * PARTS       The server evicts an item of removals: nothing shows that there was one, and what it removed is in again. Then a pop
 *             may hand out a member that a compaction is just dropping.
 * SSET_RACES  An sset is one call, but another's command that is under way may have written its part before that.
 * FLICKER     A write that met a flip is repeated: until it is acknowledged it may be in effect, then not, and then again.
 * LATE        A write that met a compaction, or a new list, is repeated: until it is acknowledged it may take effect with a call
 *             of another proxy.
 */
enum form_exempt { EXEMPT_PARTS = 1, EXEMPT_SSET_RACES = 2, EXEMPT_FLICKER = 4, EXEMPT_LATE = 8 };

struct form {
	const char *name;
	struct collection_rule rule;
	enum form_state (*read)(struct world *w, int key, uint64_t *members);
	unsigned exempt;
};

/* NULL when no encoding has this name. */
const struct form *form_named(const char *name);

/* The collection that an item is a part of, or -1. */
int form_key(const struct form *form, struct slice item);

#endif
