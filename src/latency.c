#include "latency.h"

#include <stddef.h>

static void on_end_of_turn(struct loop_job *job)
{
	latency_flush((struct latency *)((char *)job - offsetof(struct latency, job)));
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

void latency_flush(struct latency *l)
{
	if (l->waiting)
		histogram_add(&l->classes[l->class], l->took, l->waiting);
	l->waiting = 0;
	l->began = UINT64_MAX;
}

void latency_turn_to(struct latency *l, unsigned class, uint64_t began)
{
	latency_flush(l);
	l->class = class;
	l->began = began;
	l->took = l->loop->now_us - began;
	l->is_slow = l->took >= l->slow;
	loop_later(l->loop, &l->job);
}
