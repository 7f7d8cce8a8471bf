#include "client_measure.h"

#include <stdio.h>
#include <time.h>

#include "client.h"
#include "client_peer.h"
#include "generation.h"

static struct worker *worker_of(const struct task *task)
{
	return ((struct generation *)task->host)->worker;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Replies of the client have waited for it since its last progress, which is known to a millisecond. */
static uint64_t waits_for_client(const struct client *c)
{
	uint64_t ms = c->worker->loop.now - c->limits.progress;

	return stream_waiting(&c->stream) && ms > 1 ? (ms - 1) * 1000 : 0;
}

/* The reply that is read now was the last one that the task waited for. */
static void tell_server(const struct task *task, const struct pipeline_answer *answer, struct slow_request *r)
{
	const struct loop *loop = &worker_of(task)->loop;

	if (!answer->server)
		return;
	snprintf(r->server, sizeof(r->server), "%s", answer->server);
	r->on_server = least(loop->now_us - answer->since, r->took);
	r->waited = r->took - r->on_server;
}

void client_measure_slow(const struct task *task)
{
	struct worker *w = worker_of(task);
	struct client *c = task->owner;
	struct slow_request r = { .command = task->command ? task->command->name.p : "" };
	struct slice keys = task->keys;
	struct timespec ts;

	if (!slow_has_room(&w->slow, w->loop.now_us))
		return;
	clock_gettime(CLOCK_REALTIME, &ts);
	r.time = (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
	r.took = w->loop.now_us - task->began;
	if (keys.n)
		escape_text(r.key, task->key_count > 1 ? slice_token(&keys) : keys, SLOW_KEY);
	tell_server(task, &w->answer, &r);
	if (c) {
		client_peer(c, r.client);
		r.on_client = least(waits_for_client(c), r.took);
	}
	slow_add(&w->slow, &r);
}

void client_measure_keys(const struct task *task, size_t bytes)
{
	struct worker *w = worker_of(task);

	hotkeys_sample(&w->hotkeys, task->keys, task->key_count, bytes + task->taken, w->loop.now);
}
