#include "worker/poll.h"

#include <stdlib.h>

#include "measure/collect.h"
#include "measure/meter.h"
#include "util/alloc.h"
#include "util/num.h"
#include "worker/daemon.h"
#include "worker/generation.h"

enum { REPLIES = 16 /* in a turn */ };

struct poll_part {
	struct waiter waiter;
	struct poll *poll;
};

bool poll_is_due(const struct poll *p)
{
	struct sums newest;

	if (p->is_late)
		return false;
	collect_sums(p->daemon, &newest);
	/* The sums of another worker may be newer than the start of this turn. */
	return !newest.at || (p->loop->now > newest.at && p->loop->now - newest.at >= POLL_MS);
}

/*
 * A reply has several kilobytes, and thousands may be due. So only some of them are sent in one
 * turn.
 */
static void poll_on_replies(struct loop_job *job)
{
	struct poll *p = (struct poll *)((char *)job - offsetof(struct poll, replies));
	struct clients_wait *wait;

	for (int i = 0; i < REPLIES && (wait = STAILQ_FIRST(&p->waiting)); i++) {
		STAILQ_REMOVE_HEAD(&p->waiting, link);
		wait->done(wait);
	}
	if (!STAILQ_EMPTY(&p->waiting) && !loop_is_queued(job))
		loop_after(p->loop, job, 0);
}

/* Publishes the sums of the servers that have answered, and replies to all pending clients. */
static void publish_sums(struct poll *p)
{
	p->sums.at = p->asked;
	pthread_mutex_lock(&p->daemon->lock);
	p->meter->sums = p->sums;
	pthread_mutex_unlock(&p->daemon->lock);
	loop_forget(p->loop, &p->patience);
	poll_on_replies(&p->replies);
}

/*
 * Adds the statistics of a server: lines "STAT <name> <value>". Other lines and names are
 * ignored.
 */
static void add_sums(struct sums *sums, struct slice stats)
{
	static const struct slice names[SUMS] = {
#define SUM(name) [SUM_##name] = { #name, sizeof(#name) - 1 },
#include "measure/facts.def"
	};

	while (stats.n) {
		struct slice line = slice_cut(&stats, '\n'), word = slice_token(&line),
			     name = slice_token(&line);
		struct slice number = slice_cut(&line, '\r');
		uint64_t value;

		(void)word;
		for (enum sum i = 0; i < SUMS; i++) {
			if (slice_equal(name, names[i]) &&
				num_parse_u64(slice_token(&number), &value))
				sums->values[i] += value;
		}
	}
}

static void poll_on_answer(struct waiter *waiter, const struct result *r)
{
	struct poll *p = ((struct poll_part *)waiter)->poll;

	if (r->status == RESULT_TEXT)
		add_sums(&p->sums, r->line);
	if (--p->pending) {
		if (p->is_late)
			publish_sums(p);
		return;
	}
	generation_leave(p->generation);
	free(p->parts);
	p->parts = NULL;
	p->is_late = false;
	publish_sums(p);
}

static void poll_on_patience(struct loop_job *job)
{
	struct poll *p = (struct poll *)((char *)job - offsetof(struct poll, patience));

	p->is_late = true;
	publish_sums(p);
}

static void ask_servers(struct poll *p, struct generation *g)
{
	int count = servers_count(g->servers);

	p->generation = g;
	p->asked = p->loop->now;
	generation_enter(g);
	p->sums = (struct sums){ 0 };
	p->pending = (size_t)count;
	p->parts = xcalloc(p->pending, sizeof(*p->parts));
	for (int i = 0; i < count; i++) {
		p->parts[i] = (struct poll_part){ { poll_on_answer, { "", 0 } }, p };
		servers_call(g->servers, &(struct call){ .verb = CALL_STATS, .server = i },
			&p->parts[i].waiter);
	}
	loop_after(p->loop, &p->patience, POLL_PATIENCE_MS);
}

void poll_wait(struct poll *p, struct generation *g, struct clients_wait *wait)
{
	STAILQ_INSERT_TAIL(&p->waiting, wait, link);
	if (!p->parts)
		ask_servers(p, g);
}

void poll_init(struct poll *p, struct daemon *daemon, struct meter *meter, struct loop *loop)
{
	*p = (struct poll){
		.daemon = daemon,
		.meter = meter,
		.loop = loop,
		.patience = { .run = poll_on_patience },
		.replies = { .run = poll_on_replies },
	};
	STAILQ_INIT(&p->waiting);
}
