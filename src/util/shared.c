#include "util/shared.h"

#include <stdlib.h>

#include "util/alloc.h"

struct shared *shared_create(struct buf *text)
{
	struct shared *shared = xmalloc(sizeof(*shared));

	*shared = (struct shared){ .refs = 1, .text = *text };
	*text = BUF_EMPTY;
	return shared;
}

struct shared *shared_hold(struct shared *shared)
{
	shared->refs++;
	return shared;
}

void shared_drop(struct shared *shared)
{
	if (!shared || --shared->refs > 0)
		return;
	buf_free(&shared->text);
	free(shared);
}
