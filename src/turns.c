#include "turns.h"

#include <assert.h>
#include <event2/event.h>
#include <stdlib.h>

#include "util/alloc.h"

struct turn {
	struct waiter *waiter;
	uint64_t due; /* in the loop's milliseconds */
};

/* A timer that is due at once comes behind all sockets that are ready. */
static void set_timer(struct turns *turns)
{
	uint64_t first = UINT64_MAX, ms;
	struct timeval tv;

	for (size_t i = 0; i < turns->count; i++)
		first = turns->list[i].due < first ? turns->list[i].due : first;
	if (turns->count == 0)
		return;
	ms = first > turns->loop->now ? first - turns->loop->now : 0;
	tv = (struct timeval){ (time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000) };
	event_add(&turns->event, &tv);
}

static void run(struct turns *turns, uint64_t now)
{
	static const struct result nothing;
	struct turn *list = turns->list;
	size_t count = turns->count;

	turns->list = NULL;
	turns->count = turns->capacity = 0;
	for (size_t i = 0; i < count; i++) {
		if (list[i].due <= now)
			list[i].waiter->done(list[i].waiter, &nothing);
		else
			turns_add(turns, list[i].waiter, (unsigned)(list[i].due - now));
	}
	free(list);
	set_timer(turns);
}

static void on_time(evutil_socket_t fd, short what, void *arg)
{
	struct turns *turns = arg;

	(void)fd;
	(void)what;
	loop_enter(turns->loop);
	run(turns, turns->loop->now);
}

void turns_init(struct turns *turns, struct loop *loop)
{
	*turns = (struct turns){ .loop = loop };
	event_assign(&turns->event, loop->base, -1, 0, on_time, turns);
}

void turns_fini(struct turns *turns)
{
	assert(turns->count == 0);
	event_del(&turns->event);
	free(turns->list);
}

void turns_add(struct turns *turns, struct waiter *waiter, unsigned ms)
{
	if (turns->count == turns->capacity) {
		turns->capacity = turns->capacity ? turns->capacity * 2 : 4;
		turns->list = xrealloc(turns->list, turns->capacity * sizeof(*turns->list));
	}
	turns->list[turns->count++] = (struct turn){ waiter, turns->loop->now + ms };
	set_timer(turns);
}

void turns_end(struct turns *turns)
{
	run(turns, UINT64_MAX);
}
