#include "measure/latency.h"

#include <stddef.h>

static void on_end_of_turn(struct loop_job *job)
{
	latency_turn((struct latency *)((char *)job - offsetof(struct latency, job)));
}

void latency_init(struct latency *l, struct loop *loop)
{
	l->loop = loop;
	l->began = UINT64_MAX;
	l->slow = UINT64_MAX;
	l->job.run = on_end_of_turn;
}

void latency_set_threshold(struct latency *l, uint64_t ms)
{
	l->slow = ms ? ms * 1000 : UINT64_MAX;
}

static void count(struct latency *l, const struct command *command, uint64_t took, uint64_t n)
{
	histogram_add(&l->classes[command ? latency_class(command->id) : COUNT_cmd_refused], took, n);
}

void latency_flush(struct latency *l)
{
	count(l, l->command, l->took, l->waiting);
	l->waiting = 0;
	l->began = UINT64_MAX;
}

/* Slow ones are not counted together, so that each comes here. */
bool latency_count_other(struct latency *l, const struct command *command, uint64_t began)
{
	uint64_t took = l->loop->now_us - began;

	if (took >= l->slow) {
		count(l, command, took, 1);
		return true;
	}
	latency_turn(l);
	l->command = command;
	l->began = began;
	l->took = took;
	l->waiting = 1;
	loop_later(l->loop, &l->job);
	return false;
}
