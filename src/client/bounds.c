#include "client/bounds.h"

#include <assert.h>
#include <event2/event.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "client/auth.h"
#include "client/peer.h"
#include "client/window.h"
#include "util/log.h"

enum {
	SLOW_FACTOR = 16,   /* a client that has so many times its buffer waiting does not read its replies */
	STALL_MS = 2000,    /* and it is closed if it has taken none for this time */
	WEIGH_LEAST = 4096, /* bytes; smaller changes are not shared with other threads */
	GIVE_BACK_PART = 4, /* memory is given back to the system when such a part of client_memory was reclaimed */
	GIVE_BACK_MOST = 16 << 20, /* or so many bytes, if they are less */
	KERNEL_PART = 4,           /* such a part of client_memory is what the kernel may hold for all clients */
	KERNEL_LEAST = 16 << 10,   /* bytes, for one of them */
	KERNEL_MOST = 256 << 10,
	TICK_MS = 200,
	RELIST_MS = 1000,     /* how often a busy client moves to the end of the list */
	IDLE_LEAST_MS = 1000, /* a client that was silent for less keeps its place */
	LINGER_MS = 2000,
	LINGER_SETTLED_MS = 100, /* of one that sends nothing meanwhile */
	LINGER_MOST = 16 << 20,
	LOOK_AT = 64 /* clients that are looked at for the one idle longest */
};

/* In limits.oldest: behind all clients that are not authenticated. */
static const uint64_t AUTHENTICATED = UINT64_C(1) << 63;

/* --- memory --- */

static unsigned rank_of(size_t held)
{
	unsigned rank = held ? 63 - (unsigned)__builtin_clzll(held) : 0;

	return rank < CLIENT_RANKS ? rank : CLIENT_RANKS - 1;
}

static unsigned highest(const struct worker *w)
{
	return w->limits.ranks_used ? 63 - (unsigned)__builtin_clzll(w->limits.ranks_used) : 0;
}

static void change_rank(struct client *c, size_t held)
{
	struct limits *l = &c->worker->limits;
	unsigned before = rank_of(c->limits.held), after = rank_of(held);

	if (before == after)
		return;
	if (before) {
		TAILQ_REMOVE(&l->ranks[before], c, limits.rank);
		if (TAILQ_EMPTY(&l->ranks[before]))
			l->ranks_used &= ~(1ull << before);
	}
	if (after) {
		TAILQ_INSERT_TAIL(&l->ranks[after], c, limits.rank);
		l->ranks_used |= 1ull << after;
	}
	atomic_store_explicit(&l->highest, highest(c->worker), memory_order_relaxed);
}

/*
 * A text that is queued for several clients of the worker counts once. What the loop knows of such texts may be newer than what its
 * clients were last weighed with, so the difference could be negative.
 */
static void publish(struct worker *w, size_t change)
{
	struct limits *l = &w->limits;
	struct daemon *d = w->daemon;
	size_t again = w->loop.shared_again, before = l->counted, total;

	l->held += change;
	l->counted = l->held > again ? l->held - again : 0;
	change = l->counted - before;
	total = atomic_fetch_add_explicit(&d->client_bytes, change, memory_order_relaxed) + change;
	if (worker_config(w)->client_memory && total > worker_config(w)->client_memory)
		loop_later(&w->loop, &l->reclaim);
}

static bool is_overdue(const struct client *c)
{
	return stream_waiting(&c->stream) + c->spilled > SLOW_FACTOR * client_config(c)->client_buffer;
}

static void attend(struct client *c)
{
	static const struct timeval tick = { 0, TICK_MS * 1000 };
	struct limits *l = &c->worker->limits;

	if (c->is_attended)
		return;
	c->is_attended = true;
	TAILQ_INSERT_TAIL(&l->attended, c, limits.attended);
	if (!event_pending(&l->tick, EV_TIMEOUT, NULL))
		event_add(&l->tick, &tick);
}

static size_t memory_of(const struct client *c)
{
	return stream_memory(&c->stream) + c->asked + c->spilled;
}

void limits_weigh(struct client *c, size_t more)
{
	size_t held = memory_of(c) + more, change = held - c->limits.held;

	assert(stream_is_open(&c->stream));
	if (is_overdue(c))
		attend(c);
	if (change + WEIGH_LEAST <= 2 * (size_t)WEIGH_LEAST)
		return;
	change_rank(c, held);
	c->limits.held = held;
	publish(c->worker, change);
}

/* Closes a client that has gone beyond a limit. */
static void close_for(struct client *c, enum counter counter, const char *why)
{
	char name[CLIENT_PEER];

	client_peer(c, name);
	log_warn("client %s: closed: %s; it holds %zu bytes", name, why, memory_of(c));
	worker_count(c->worker, counter, 1);
	/* Else the kernel keeps for minutes what it was given for a client that takes nothing. */
	if (stream_waiting(&c->stream))
		stream_reset_on_close(&c->stream);
	client_close(c);
}

/* The client that has the highest rank for the longest time. One that reads its replies soon changes rank. */
static struct client *largest(const struct worker *w)
{
	return TAILQ_FIRST(&w->limits.ranks[highest(w)]);
}

static struct worker *worker_of_largest(struct worker *own)
{
	const struct daemon *d = own->daemon;
	unsigned most = atomic_load_explicit(&own->limits.highest, memory_order_relaxed), other;
	struct worker *found = own;

	for (size_t i = 0; i < d->threads; i++) {
		other = atomic_load_explicit(&d->workers[i]->limits.highest, memory_order_relaxed);
		if (other > most) {
			most = other;
			found = d->workers[i];
		}
	}
	return found;
}

/* What one thread frees, another does not reuse. So that the process takes little more than is counted, it goes to the system. */
static void give_back(struct worker *w)
{
	size_t part = worker_config(w)->client_memory / GIVE_BACK_PART;

	if (w->limits.reclaimed < (part < GIVE_BACK_MOST ? part : GIVE_BACK_MOST))
		return;
	w->limits.reclaimed = 0;
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}

void limits_reclaim(struct worker *w)
{
	struct daemon *d = w->daemon;
	struct worker *whose;
	struct client *c;

	atomic_store(&w->limits.asked_to_reclaim, false);
	/* A reload may have removed the limit meanwhile. */
	if (worker_config(w)->client_memory == 0)
		return;
	while (atomic_load_explicit(&d->client_bytes, memory_order_relaxed) > worker_config(w)->client_memory) {
		whose = worker_of_largest(w);
		if (whose != w) {
			if (!atomic_exchange(&whose->limits.asked_to_reclaim, true))
				worker_send(whose, (struct mail){ WORKER_RECLAIM, -1, NULL });
			return;
		}
		c = largest(w);
		if (!c)
			return;
		w->limits.reclaimed += c->limits.held;
		close_for(c, COUNT_closed_memory_clients, "all clients hold more than client_memory, and it most");
	}
	give_back(w);
}

static void on_reclaim(struct loop_job *job)
{
	limits_reclaim((struct worker *)((char *)job - offsetof(struct worker, limits.reclaim)));
}

/* --- time --- */

/* If nothing waits for the client itself, there is nothing that it could take: its replies wait for an earlier one. */
static bool is_slow(const struct client *c)
{
	return stream_waiting(&c->stream) && is_overdue(c) && c->worker->loop.now - c->limits.progress >= STALL_MS;
}

void limits_waits(struct client *c)
{
	c->limits.progress = c->worker->loop.now;
}

/* Tells the other threads. */
static void tell_oldest(struct worker *w)
{
	const struct client *stranger = client_auth_oldest(w), *c = TAILQ_FIRST(&w->clients);
	uint64_t oldest = stranger ? stranger->auth->since : c ? AUTHENTICATED | c->limits.listed : UINT64_MAX;

	atomic_store_explicit(&w->limits.oldest, oldest, memory_order_relaxed);
}

void limits_authenticated(struct client *c)
{
	tell_oldest(c->worker);
}

static void relist(struct client *c)
{
	struct worker *w = c->worker;

	TAILQ_REMOVE(&w->clients, c, link);
	TAILQ_INSERT_TAIL(&w->clients, c, link);
	c->limits.listed = w->loop.now;
	tell_oldest(w);
}

void limits_active(struct client *c)
{
	struct client_limits *l = &c->limits;

	l->active = c->worker->loop.now;
	if (l->active - l->listed >= RELIST_MS)
		relist(c);
}

void limits_unfinished(struct client *c, bool is_unfinished, bool restart)
{
	struct client_limits *l = &c->limits;

	if (!is_unfinished || client_config(c)->request_read_timeout == 0) {
		l->begun = 0;
	} else if (restart || !l->begun) {
		l->begun = c->worker->loop.now;
		attend(c);
	}
}

void limits_linger(struct client *c)
{
	c->limits.begun = c->worker->loop.now;
	c->skip = LINGER_MOST;
	attend(c);
}

/* Its requests are not answered yet, and it takes what is. */
static bool is_busy(const struct client *c)
{
	return (c->order.tasks > 0 || c->turn.waits) && stream_waiting(&c->stream) == 0;
}

/* The first stand in the order in which they last sent something, to a second or so. */
static struct client *first_idle(struct worker *w, uint64_t ms)
{
	struct client *c, *next, *found = NULL;
	unsigned looked_at = 0;

	for (c = TAILQ_FIRST(&w->clients); c && looked_at < LOOK_AT; c = next, looked_at++) {
		next = client_next(c);
		if (w->loop.now - c->limits.listed < ms || (found && c->limits.listed > found->limits.active))
			break;
		if (is_busy(c))
			relist(c);
		else if (w->loop.now - c->limits.active < ms || c->lingering)
			continue;
		else if ((!found || c->limits.active < found->limits.active) && !stream_is_ready(&c->stream))
			found = c;
	}
	return found;
}

bool limits_has_stranger(const struct worker *w)
{
	return limits_oldest(w) < AUTHENTICATED;
}

bool limits_replace(struct worker *w)
{
	struct client *c = client_auth_oldest(w);

	if (c && w->loop.now - c->auth->since >= IDLE_LEAST_MS) {
		close_for(c, COUNT_replaced_clients, "it was not authenticated, and another needs its place");
		return true;
	}
	c = worker_config(w)->replace_idle ? first_idle(w, IDLE_LEAST_MS) : NULL;
	if (c)
		close_for(c, COUNT_replaced_clients, "it was idle longest, and another needs its place");
	return c;
}

uint64_t limits_oldest(const struct worker *w)
{
	return atomic_load_explicit(&w->limits.oldest, memory_order_relaxed);
}

static bool is_unfinished(const struct client *c)
{
	uint64_t limit = client_config(c)->request_read_timeout;

	return !c->lingering && !c->closing && c->limits.begun && limit &&
		c->worker->loop.now - c->limits.begun >= limit;
}

static void give_up(struct client *c)
{
	if (is_slow(c)) {
		close_for(c, COUNT_closed_slow_clients, "it does not read its replies");
	} else if (is_unfinished(c)) {
		client_log(c, "closed: its request was not complete in time");
		worker_count(c->worker, COUNT_closed_unfinished_clients, 1);
		client_refuse(c, "CLIENT_ERROR request not complete in time");
	} else {
		client_auth_give_up(c);
	}
}

static void check(struct client *c)
{
	bool was_late = c->limits.is_late;

	if (c->lingering && c->worker->loop.now - c->limits.begun >= (c->settled ? LINGER_SETTLED_MS : LINGER_MS)) {
		client_close(c);
		return;
	}
	/* After a standstill of the process the tick may come before what the client has sent or taken meanwhile. */
	c->limits.is_late = is_slow(c) || is_unfinished(c) || client_auth_is_late(c);
	if (was_late && c->limits.is_late)
		give_up(c);
}

static bool is_to_be_attended(const struct client *c)
{
	return c->limits.begun || c->lingering || c->auth || is_overdue(c);
}

static void no_longer_attend(struct client *c)
{
	if (c->is_attended)
		TAILQ_REMOVE(&c->worker->limits.attended, c, limits.attended);
	c->is_attended = false;
}

static void close_idle(struct worker *w)
{
	uint64_t timeout = worker_config(w)->idle_timeout;
	struct client *c;

	while (timeout && (c = first_idle(w, timeout))) {
		client_log(c, "closed: it was idle");
		worker_count(w, COUNT_closed_idle_clients, 1);
		client_close(c);
	}
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval tick = { 0, TICK_MS * 1000 };
	struct worker *w = arg;
	struct client *c, *next;

	(void)fd;
	(void)what;
	loop_enter(&w->loop);
	for (c = TAILQ_FIRST(&w->limits.attended); c; c = next) {
		next = TAILQ_NEXT(c, limits.attended);
		check(c);
		if (stream_is_open(&c->stream) && !is_to_be_attended(c))
			no_longer_attend(c);
	}
	close_idle(w);
	if (!TAILQ_EMPTY(&w->limits.attended) || (worker_config(w)->idle_timeout && !TAILQ_EMPTY(&w->clients)))
		event_add(&w->limits.tick, &tick);
}

/* --- the beginning and the end --- */

static void start_tick(struct worker *w)
{
	static const struct timeval tick = { 0, TICK_MS * 1000 };

	if (worker_config(w)->idle_timeout && !event_pending(&w->limits.tick, EV_TIMEOUT, NULL))
		event_add(&w->limits.tick, &tick);
}

void limits_renew(struct worker *w)
{
	start_tick(w);
	if (worker_config(w)->client_memory)
		loop_later(&w->loop, &w->limits.reclaim);
}

/*
 * Without this the kernel takes up to 4 MB for each client. Those that do not read would use up the memory of TCP, which is one for
 * the machine, and then all its sockets wait.
 */
static void bound_kernel(struct client *c)
{
	size_t limit = client_config(c)->client_memory;
	size_t share = limit / KERNEL_PART / ((size_t)atomic_load(&c->worker->daemon->connections) + 1);

	if (!limit || share > KERNEL_MOST)
		share = KERNEL_MOST;
	stream_bound_kernel(&c->stream, share < KERNEL_LEAST ? KERNEL_LEAST : (int)share);
}

void limits_open(struct client *c)
{
	struct worker *w = c->worker;

	bound_kernel(c);
	c->limits.progress = c->limits.active = c->limits.listed = w->loop.now;
	tell_oldest(w);
	if (c->auth)
		attend(c);
	window_open(c);
	start_tick(w);
}

void limits_close(struct client *c)
{
	change_rank(c, 0);
	if (c->limits.held)
		publish(c->worker, -c->limits.held);
	c->limits.held = 0;
	no_longer_attend(c);
	tell_oldest(c->worker);
}

void limits_init(struct worker *w)
{
	TAILQ_INIT(&w->limits.attended);
	TAILQ_INIT(&w->limits.strangers);
	for (int i = 0; i < CLIENT_RANKS; i++)
		TAILQ_INIT(&w->limits.ranks[i]);
	w->limits.reclaim.run = on_reclaim;
	tell_oldest(w);
	event_assign(&w->limits.tick, w->loop.base, -1, 0, on_tick, w);
}

void limits_fini(struct worker *w)
{
	event_del(&w->limits.tick);
}
