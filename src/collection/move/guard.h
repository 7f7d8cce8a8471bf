/*
 * Sends calls on keys that move, and protects them from marks: a server takes a mark (mark.h)
 * for an item. The result of a call, or a read that follows it, shows whether it has met one.
 */
#ifndef COLLECTION_MOVE_GUARD_H
#define COLLECTION_MOVE_GUARD_H

#include "collection/move/moved_call.h"
#include "collection/move/verbs.h"

/*
 * Sends the call to its new server. `judged` is called once with the result; if the call needs
 * no guard, it is not called: the result goes to the asker, and `c` is freed.
 */
void guard_send(struct moved_call *c, enum guard guard, moved_call_judged *judged);

/* Sends a call that reads to its new server. `judged` is called once. */
void guard_read(struct moved_call *c, moved_call_judged *judged);

/* Sends the call once more after VERDICT_AGAIN. */
void guard_repeat(struct moved_call *c);

/*
 * Whether the result of such a call is checked even with GUARD_NONE: it may be a mark, or miss a
 * part.
 */
bool guard_checks(const struct mover_world *world, const struct call *call);

/* Whether the result of a read of the call's key is a mark. */
bool guard_is_marked(const struct moved_call *c, const struct result *r, bool has_value);

/* Attempts of a call that other clients overtake, before it is sent without a comparison. */
enum { GUARD_COMPARES = 4 };

#endif
