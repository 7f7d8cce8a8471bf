#include "deferred.h"

#include <assert.h>
#include <event2/event.h>
#include <stdlib.h>

#include "util/alloc.h"

struct deferred_call {
	struct waiter *waiter;
	uint64_t due; /* as loop.now */
};

/* libevent runs a timer that is due after all sockets that are ready. */
static void set_timer(struct deferred *deferred)
{
	uint64_t now = deferred->loop->now, ms = deferred->first > now ? deferred->first - now : 0;
	struct timeval tv = { (time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000) };

	event_add(&deferred->event, &tv);
}

/* Gives true if it is the earliest. */
static bool add(struct deferred *deferred, struct deferred_call call)
{
	if (deferred->count == deferred->capacity) {
		deferred->capacity = deferred->capacity ? deferred->capacity * 2 : 4;
		deferred->list = xrealloc(deferred->list, deferred->capacity * sizeof(*deferred->list));
	}
	deferred->list[deferred->count++] = call;
	if (call.due >= deferred->first)
		return false;
	deferred->first = call.due;
	return true;
}

static void run(struct deferred *deferred, uint64_t now)
{
	static const struct result nothing;
	struct deferred_call *list = deferred->list;
	size_t count = deferred->count;

	deferred->list = NULL;
	deferred->count = deferred->capacity = 0;
	deferred->first = UINT64_MAX;
	for (size_t i = 0; i < count; i++) {
		if (list[i].due <= now)
			list[i].waiter->done(list[i].waiter, &nothing);
		else
			(void)add(deferred, list[i]);
	}
	free(list);
	if (deferred->count)
		set_timer(deferred);
}

static void on_time(evutil_socket_t fd, short what, void *arg)
{
	struct deferred *deferred = arg;

	(void)fd;
	(void)what;
	loop_enter(deferred->loop);
	run(deferred, deferred->loop->now);
}

void deferred_init(struct deferred *deferred, struct loop *loop)
{
	*deferred = (struct deferred){ .loop = loop, .first = UINT64_MAX };
	event_assign(&deferred->event, loop->base, -1, 0, on_time, deferred);
}

void deferred_fini(struct deferred *deferred)
{
	assert(deferred->count == 0);
	event_del(&deferred->event);
	free(deferred->list);
}

void deferred_add(struct deferred *deferred, struct waiter *waiter, unsigned ms)
{
	if (add(deferred, (struct deferred_call){ waiter, deferred->loop->now + ms }))
		set_timer(deferred);
}

void deferred_run_all(struct deferred *deferred)
{
	run(deferred, UINT64_MAX);
}
