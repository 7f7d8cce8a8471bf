#include "upstream/rejects.h"

#include <stdlib.h>

#include "util/alloc.h"

struct reject {
	struct waiter *waiter;
	enum result_status status;
};

static void run(struct loop_job *job)
{
	struct rejects *r = (struct rejects *)((char *)job - offsetof(struct rejects, job));
	struct reject *list = r->list;
	size_t count = r->count;

	r->list = NULL;
	r->count = r->capacity = 0;
	for (size_t i = 0; i < count; i++) {
		struct result result = { .status = list[i].status, .server = r->server };
		result.line = SLICE("ERROR");
		list[i].waiter->done(list[i].waiter, &result);
	}
	free(list);
}

void rejects_init(struct rejects *r, struct loop *loop, const char *server)
{
	*r = (struct rejects){ .loop = loop, .server = server, .job = { .run = run } };
}

void rejects_add(struct rejects *r, struct waiter *waiter, enum result_status status)
{
	if (r->count == r->capacity) {
		r->capacity = r->capacity ? r->capacity * 2 : 16;
		r->list = xrealloc(r->list, r->capacity * sizeof(*r->list));
	}
	r->list[r->count++] = (struct reject){ waiter, status };
	loop_later(r->loop, &r->job);
}

bool rejects_run(struct rejects *r)
{
	if (r->count == 0)
		return false;
	loop_forget(r->loop, &r->job);
	run(&r->job);
	return true;
}
