/* A constant text with a reference count. All references belong to one thread. */
#ifndef UTIL_SHARED_H
#define UTIL_SHARED_H

#include "util/buf.h"

struct shared {
	size_t refs;
	size_t streams; /* of these, how many are of streams that are to write it */
	struct buf text;
};

/* Takes the content of `text`, which is empty afterwards. Gives the first reference to the caller. */
struct shared *shared_create(struct buf *text) __attribute__((returns_nonnull));

/* Adds a reference, and gives `shared`; drops one, and frees the text with the last. Dropping NULL does nothing. */
struct shared *shared_hold(struct shared *shared);
void shared_drop(struct shared *shared);

#endif
