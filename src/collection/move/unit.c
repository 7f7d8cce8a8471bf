#include "collection/move/unit.h"

#include <stdlib.h>

#include "util/alloc.h"

struct moved_call *moved_call_keep(struct moves *moves, const struct call *call, struct waiter *asker)
{
	struct moved_call *c = xmalloc(sizeof(*c) + call->key.n + call->value.n + call->line.n);
	char *p = c->bytes;

	*c = (struct moved_call){ .moves = moves, .call = *call, .asker = asker };
	c->call.key.p = p;
	p = slice_write(p, call->key);
	c->call.value.p = p;
	p = slice_write(p, call->value);
	c->call.line.p = p;
	slice_write(p, call->line);
	return c;
}

void moved_call_refuse(struct moved_call *c, const struct result *why)
{
	struct result r = *why;
	struct waiter *asker = c->asker;
	struct failure failure = c->failure;

	if (r.status != RESULT_REFUSED)
		r.status = RESULT_UNAVAILABLE;
	free(c);
	asker->done(asker, &r);
	failure_free(&failure);
}

void unit_refuse(struct unit *u, const struct result *why)
{
	struct moved_calls calls = STAILQ_HEAD_INITIALIZER(calls);
	struct moved_call *c;

	STAILQ_CONCAT(&calls, &u->reads);
	STAILQ_CONCAT(&calls, &u->calls);
	while ((c = STAILQ_FIRST(&calls))) {
		STAILQ_REMOVE_HEAD(&calls, link);
		moved_call_refuse(c, why);
	}
}
