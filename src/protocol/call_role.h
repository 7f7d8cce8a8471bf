/*
 * What a call is to the set or counter that it is about. Only the layer that keeps two copies of
 * them uses this: see collection/copies/copies.h.
 */
#ifndef PROTOCOL_CALL_ROLE_H
#define PROTOCOL_CALL_ROLE_H

#include <stdbool.h>
#include <stdint.h>

/* What a CAS or ADD of the base of a set does to the set that was read. */
enum call_change {
	CHANGE_ALL,     /* replaces it; with a negative exptime, removes it */
	CHANGE_WORDS,   /* adds words behind it; an ADD creates the set by them */
	CHANGE_SETTLED, /* rewrites what a GET with `settled` has returned, and keeps later words */
	CHANGE_REFS,    /* changes the references, and keeps the log */
	CHANGE_EMPTY    /* removes all members that were read */
};

/* Small, because calls are copied often. */
struct call_role {
	uint8_t change : 3; /* CAS, ADD: enum call_change */
	bool claims : 1;    /* CHANGE_WORDS: the words must not be stored twice */
	bool creates : 1;   /* APPEND: the words may create the set */
	bool settled : 1;   /* GET: see CHANGE_SETTLED */
	bool copied : 1;    /* the item is a counter or an event with two copies */
	/*
	 * GET, STATS: a write of the same key follows, and no other call may be sent in between. If
	 * the write is delayed, so is this call.
	 */
	bool leads : 1;
	uint32_t words : 24; /* CHANGE_WORDS: bytes of new words at the end of the value */
};

#endif
