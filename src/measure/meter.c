#include "measure/meter.h"

#include <stdio.h>
#include <time.h>

void meter_init(struct meter *m, struct loop *loop, uint64_t random)
{
	m->loop = loop;
	latency_init(&m->latency, loop);
	hotkeys_init(&m->hotkeys, random, loop->now);
	largest_init(&m->largest);
	slow_init(&m->slow);
}

void meter_fini(struct meter *m)
{
	loop_forget(m->loop, &m->latency.job);
	hotkeys_fini(&m->hotkeys);
	largest_fini(&m->largest);
	slow_fini(&m->slow);
}

void meter_set_threshold(struct meter *m, uint64_t ms)
{
	latency_set_threshold(&m->latency, ms);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The reply that is read now was the last one that the task waited for. */
static void tell_server(const struct meter *m, struct slow_request *r)
{
	if (!m->answer.server)
		return;
	snprintf(r->server, sizeof(r->server), "%s", m->answer.server);
	r->on_server = least(m->loop->now_us - m->answer.since, r->took);
	r->waited = r->took - r->on_server;
}

void meter_note_slow(struct meter *m, const struct task *task, const char *client, uint64_t on_client)
{
	struct slow_request r = { .command = task->command ? task->command->name.p : "" };
	struct slice keys = task->keys;
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	r.time = (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
	r.took = m->loop->now_us - task->began;
	if (keys.n)
		escape_text(r.key, task->key_count > 1 ? slice_token(&keys) : keys, SLOW_KEY);
	tell_server(m, &r);
	snprintf(r.client, sizeof(r.client), "%s", client);
	r.on_client = least(on_client, r.took);
	slow_add(&m->slow, &r);
}
