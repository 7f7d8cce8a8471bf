#include "measure/meter.h"

#include <stdio.h>

#include "protocol/commands.h"
#include "util/clock.h"
#include "util/num.h"

const unsigned char meter_classes[COMMAND_COUNT] = {
#define COMMAND(id, name, grammar, start, order, counter, ...) [COMMAND_##id] = COUNT_cmd_##counter,
#define PROXY_COMMAND COMMAND
#include "protocol/commands.def"
#undef PROXY_COMMAND
#undef COMMAND
};

/* --- keys --- */

const unsigned char meter_keys[COMMAND_COUNT] = {
	[COMMAND_GET] = COUNT_keys_get,
	[COMMAND_GETS] = COUNT_keys_get,
	[COMMAND_GAT] = COUNT_keys_touch,
	[COMMAND_GATS] = COUNT_keys_touch,
	[COMMAND_TOUCH] = COUNT_keys_touch,
	[COMMAND_SET] = COUNT_keys_set,
	[COMMAND_ADD] = COUNT_keys_set,
	[COMMAND_REPLACE] = COUNT_keys_set,
	[COMMAND_APPEND] = COUNT_keys_set,
	[COMMAND_PREPEND] = COUNT_keys_set,
	[COMMAND_CAS] = COUNT_keys_set,
	[COMMAND_MS] = COUNT_keys_set,
};

void meter_count_meta(struct meter *m, const struct request *request)
{
	if (request->command->id == COMMAND_MG)
		meter_count(m,
			metaflags_has(&request->meta, 'T') ? COUNT_keys_touch : COUNT_keys_get, 1);
}

/* --- latencies --- */

static void count_latency(struct meter *m, const struct command *command, uint64_t took, uint64_t n)
{
	histogram_add(
		&m->latencies[command ? meter_class(command->id) : COUNT_cmd_refused], took, n);
}

void meter_flush(struct meter *m)
{
	count_latency(m, m->command, m->took, m->waiting);
	m->waiting = 0;
	m->began = UINT64_MAX;
}

static void meter_on_end_of_turn(struct loop_job *job)
{
	meter_turn((struct meter *)((char *)job - offsetof(struct meter, job)));
}

/* Slow tasks are not collected, so that each of them reaches this function. */
bool meter_other_done(struct meter *m, const struct task *task)
{
	uint64_t took = m->loop->now_us - task->began;

	if (meter_is_untimed(m, task)) {
		histogram_add_untimed(&m->latencies[meter_class(task->sent.command->id)]);
		return false;
	}
	if (took >= m->slow_us) {
		count_latency(m, task->sent.command, took, 1);
		return notes_have_room(&m->notes, m->loop->now_us);
	}
	meter_turn(m);
	m->command = task->sent.command;
	m->began = task->began;
	m->took = took;
	m->waiting = 1;
	loop_later(m->loop, &m->job);
	return false;
}

void meter_set_threshold(struct meter *m, uint64_t ms)
{
	m->slow_us = ms ? ms * 1000 : UINT64_MAX;
}

/* --- slow requests --- */

void meter_note_slow(
	struct meter *m, const struct task *task, const char *client, uint64_t on_client)
{
	struct slow_request r = { .command = task->sent.command ? task->sent.command->name.p : "" };
	struct slice keys = task->keys.list;

	r.time = clock_us(CLOCK_REALTIME) / 1000;
	r.took = m->loop->now_us - task->began;
	if (keys.n)
		escape_text(r.key, task->keys.count > 1 ? slice_token(&keys) : keys, SLOW_KEY);
	/* The reply being processed is the last one that the task was waiting for. */
	if (m->answer.server) {
		snprintf(r.server, sizeof(r.server), "%s", m->answer.server);
		r.on_server = num_least(m->loop->now_us - m->answer.since, r.took);
		r.waited = r.took - r.on_server;
	}
	snprintf(r.client, sizeof(r.client), "%s", client);
	r.on_client = num_least(on_client, r.took);
	notes_add_slow(&m->notes, &r);
}

/* --- creation and destruction --- */

void meter_init(struct meter *m, struct loop *loop, uint64_t random)
{
	m->loop = loop;
	m->began = UINT64_MAX;
	m->slow_us = UINT64_MAX;
	m->job.run = meter_on_end_of_turn;
	notes_init(&m->notes, random, loop->now);
	rule_counts_init(&m->rules);
}

void meter_fini(struct meter *m)
{
	loop_forget(m->loop, &m->job);
	notes_fini(&m->notes);
	rule_counts_fini(&m->rules);
}
