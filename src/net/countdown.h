/*
 * A timer that says when a peer has had its time.
 *
 * If the process was stopped, or a turn was long, libevent may run a timer before it looks at sockets, and what the peer has sent
 * meanwhile is unread. So an owner that finds its peer overdue asks for countdown_again before it gives the peer up. When the timer
 * fires again, the loop has looked.
 */
#ifndef NET_COUNTDOWN_H
#define NET_COUNTDOWN_H

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>

struct loop;

struct countdown {
	struct event timer;
	struct loop *loop;
	void (*over)(void *arg);
	void *arg;
	bool runs;
	bool again; /* it was last started by countdown_again */
};

/* `over` is called once after each start. Borrows the loop. */
void countdown_init(struct countdown *countdown, struct loop *loop, void (*over)(void *arg), void *arg);

/* Starts it, also if it runs. */
void countdown_start(struct countdown *countdown, uint64_t ms);

/* Starts it for a few milliseconds more. */
void countdown_again(struct countdown *countdown);

void countdown_stop(struct countdown *countdown);

#endif
