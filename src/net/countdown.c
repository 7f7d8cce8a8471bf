#include "net/countdown.h"

#include <event2/event.h>

#include "net/loop.h"

/* If the whole host stood still, the peer needs a moment too. */
enum { AGAIN_MS = 20 };

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct countdown *c = arg;

	(void)fd;
	(void)what;
	c->runs = false;
	loop_enter(c->loop);
	c->over(c->arg);
}

void countdown_init(struct countdown *c, struct loop *loop, void (*over)(void *arg), void *arg)
{
	*c = (struct countdown){ .loop = loop, .over = over, .arg = arg };
	event_assign(&c->timer, loop->base, -1, 0, on_timer, c);
}

void countdown_start(struct countdown *c, uint64_t ms)
{
	struct timeval tv = { (time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000) };

	event_add(&c->timer, &tv);
	c->runs = true;
	c->again = false;
}

void countdown_again(struct countdown *c)
{
	countdown_start(c, AGAIN_MS);
	c->again = true;
}

void countdown_stop(struct countdown *c)
{
	event_del(&c->timer);
	c->runs = false;
}
