#include "worker/poll.h"

#include <stdlib.h>

#include "measure/meter.h"
#include "util/alloc.h"
#include "worker/daemon.h"
#include "worker/generation.h"

struct poll_part {
	struct waiter waiter;
	struct poll *poll;
};

bool poll_is_due(const struct poll *p)
{
	struct daemon *d = p->daemon;
	uint64_t at;

	if (p->is_late)
		return false;
	pthread_mutex_lock(&d->lock);
	at = d->meters[0]->sums.at;
	pthread_mutex_unlock(&d->lock);
	/* Another worker may have asked a moment later than this turn began. */
	return !at || (p->loop->now > at && p->loop->now - at >= POLL_MS);
}

/* All that have answered until now count, and the clients that wait get their replies. */
static void publish(struct poll *p)
{
	struct clients_wait *wait;

	p->sums.at = p->loop->now;
	pthread_mutex_lock(&p->daemon->lock);
	p->daemon->meters[0]->sums = p->sums;
	pthread_mutex_unlock(&p->daemon->lock);
	loop_forget(p->loop, &p->patience);
	while ((wait = STAILQ_FIRST(&p->waiting))) {
		STAILQ_REMOVE_HEAD(&p->waiting, link);
		wait->done(wait);
	}
}

static void answered(struct waiter *waiter, const struct result *r)
{
	struct poll *p = ((struct poll_part *)waiter)->poll;

	if (r->status == RESULT_TEXT)
		sums_add(&p->sums, r->line);
	if (--p->pending) {
		if (p->is_late)
			publish(p);
		return;
	}
	generation_leave(p->generation);
	free(p->parts);
	p->parts = NULL;
	p->is_late = false;
	publish(p);
}

static void on_patience(struct loop_job *job)
{
	struct poll *p = (struct poll *)((char *)job - offsetof(struct poll, patience));

	p->is_late = true;
	publish(p);
}

static void ask(struct poll *p, struct generation *g)
{
	int count = servers_count(g->servers);

	p->generation = g;
	generation_enter(g);
	p->sums = (struct sums){ 0 };
	p->pending = (size_t)count;
	p->parts = xcalloc(p->pending, sizeof(*p->parts));
	for (int i = 0; i < count; i++) {
		p->parts[i] = (struct poll_part){ { answered, { "", 0 } }, p };
		servers_call(g->servers, &(struct call){ .verb = CALL_STATS, .server = i }, &p->parts[i].waiter);
	}
	loop_after(p->loop, &p->patience, POLL_PATIENCE_MS);
}

void poll_wait(struct poll *p, struct generation *g, struct clients_wait *wait)
{
	STAILQ_INSERT_TAIL(&p->waiting, wait, link);
	if (!p->parts)
		ask(p, g);
}

void poll_init(struct poll *p, struct daemon *daemon, struct loop *loop)
{
	*p = (struct poll){ .daemon = daemon, .loop = loop, .patience = { .run = on_patience } };
	STAILQ_INIT(&p->waiting);
}
