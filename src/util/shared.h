/* A text that several read and nobody changes any more, kept until the last of them is done with it. Of one thread alone. */
#ifndef UTIL_SHARED_H
#define UTIL_SHARED_H

#include "util/buf.h"

struct shared {
	size_t refs;
	struct buf text;
};

/* Takes what is in the buffer, which is empty then; the caller has the first reference. */
struct shared *shared_create(struct buf *text) __attribute__((returns_nonnull));

/* One more reference, and one less. NULL has none to drop. */
struct shared *shared_hold(struct shared *shared);
void shared_drop(struct shared *shared);

#endif
