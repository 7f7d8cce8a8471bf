#include "client/bounds.h"

#include <assert.h>
#include <stdlib.h>

#include "util/alloc.h"

enum {
	RANKS = 48,
	/* A client with this many times its buffer of unsent replies does not read them. */
	SLOW_FACTOR = 16,
	STALL_MS = 2000,    /* It is slow if it has read nothing for this time. */
	WEIGH_LEAST = 4096, /* Bytes. Smaller changes are not shared with other threads. */
	/* Bytes by which a client may grow before its replies are written and counted. */
	GROWN = 256 << 10,
	TICK_MS = 200,
	HANDSHAKE_MS = 5000,
	RELIST_MS = 1000,         /* How often a busy client moves to the end of the list. */
	LINGER_MS = 2000,         /* How long a lingering client may continue to send. */
	LINGER_SETTLED_MS = 100,  /* The same for a client that sends nothing meanwhile. */
	LINGER_UNREAD_MS = 10000, /* Limit for its system to acknowledge all replies. */
	LOOK_AT = 64              /* Clients to examine for the one that has been idle longest. */
};

struct bounds {
	struct clients *clients;
	const struct bounds_ops *ops;
	struct client_list checked;
	struct loop_job tick;
	/* Lists of clients by the bytes that they hold, in powers of two; the first is empty. */
	struct client_list ranks[RANKS];
	uint64_t ranks_used; /* A bit for each list that is not empty. */
	struct loop_job reclaim;
	/* Bytes held by all clients; a text that several of them share counts for each. */
	size_t held;
	size_t counted;    /* The part of it that is in the daemon's total. */
	uint64_t stranger; /* Set by bounds_set_stranger. */
};

static uint64_t client_now(const struct client *c)
{
	return c->stream.loop->now;
}

/* --- memory --- */

static unsigned rank_of(size_t held)
{
	unsigned rank = held ? 63 - (unsigned)__builtin_clzll(held) : 0;

	return rank < RANKS ? rank : RANKS - 1;
}

static unsigned highest(const struct bounds *own)
{
	return own->ranks_used ? 63 - (unsigned)__builtin_clzll(own->ranks_used) : 0;
}

static void change_rank(struct client *c, size_t held)
{
	struct bounds *own = c->clients->bounds;
	unsigned before = rank_of(c->bounds.held), after = rank_of(held);

	if (before == after)
		return;
	if (before) {
		TAILQ_REMOVE(&own->ranks[before], c, bounds.rank);
		if (TAILQ_EMPTY(&own->ranks[before]))
			own->ranks_used &= ~(1ull << before);
	}
	if (after) {
		TAILQ_INSERT_TAIL(&own->ranks[after], c, bounds.rank);
		own->ranks_used |= 1ull << after;
	}
	atomic_store_explicit(&c->clients->highest, highest(own), memory_order_relaxed);
}

/*
 * A text that is queued for several clients of the worker counts once. The loop may count such
 * texts before the clients do, so the difference could be negative.
 */
static void publish_held(struct clients *all, size_t change)
{
	struct bounds *own = all->bounds;
	size_t again = all->loop->shared_again, before = own->counted, total;

	own->held += change;
	own->counted = own->held > again ? own->held - again : 0;
	change = own->counted - before;
	total = atomic_fetch_add_explicit(&all->total->bytes, change, memory_order_relaxed) +
		change;
	if (all->config->client_memory && total > all->config->client_memory)
		loop_later(all->loop, &own->reclaim);
}

static bool is_flooded(const struct client *c)
{
	return stream_waiting(&c->stream) + c->account.held >
		SLOW_FACTOR * client_config(c)->client_buffer;
}

void bounds_weigh(struct client *c)
{
	size_t held = bounds_memory(c), change = held - c->bounds.held;

	assert(stream_is_open(&c->stream));
	if (is_flooded(c))
		bounds_check(c);
	if (c->stream.dirty && held <= c->bounds.held + GROWN)
		return;
	if (change + WEIGH_LEAST <= 2 * (size_t)WEIGH_LEAST)
		return;
	change_rank(c, held);
	c->bounds.held = held;
	publish_held(c->clients, change);
}

struct client *bounds_largest(const struct clients *all)
{
	return TAILQ_FIRST(&all->bounds->ranks[highest(all->bounds)]);
}

static void bounds_on_reclaim(struct loop_job *job)
{
	struct bounds *own = (struct bounds *)((char *)job - offsetof(struct bounds, reclaim));

	own->ops->reclaim(own->clients);
}

/* --- places --- */

static void publish_oldest(struct clients *all)
{
	const struct client *first = TAILQ_FIRST(&all->all);
	uint64_t oldest = all->bounds->stranger;

	if (oldest == UINT64_MAX && first)
		oldest = BOUNDS_AUTHENTICATED | first->bounds.listed;
	atomic_store_explicit(&all->oldest, oldest, memory_order_relaxed);
}

void bounds_set_stranger(struct clients *all, uint64_t since)
{
	all->bounds->stranger = since;
	publish_oldest(all);
}

static void relist(struct client *c)
{
	TAILQ_REMOVE(&c->clients->all, c, link);
	TAILQ_INSERT_TAIL(&c->clients->all, c, link);
	c->bounds.listed = client_now(c);
	publish_oldest(c->clients);
}

/* Returns whether requests of the client are pending, and it reads its replies. */
static bool is_busy(const struct client *c)
{
	return (c->order.tasks > 0 || c->pauses & PAUSE_TURN) && stream_waiting(&c->stream) == 0;
}

struct client *bounds_first_idle(struct clients *all, uint64_t ms)
{
	struct client *c, *next, *found = NULL;
	unsigned looked_at = 0;

	for (c = TAILQ_FIRST(&all->all); c && looked_at < LOOK_AT; c = next, looked_at++) {
		next = TAILQ_NEXT(c, link);
		if (client_now(c) - c->bounds.listed < ms ||
			(found && c->bounds.listed > found->bounds.active))
			break;
		if (is_busy(c))
			relist(c);
		else if (client_now(c) - c->bounds.active < ms || c->state == CLIENT_LINGERING)
			continue;
		else if ((!found || c->bounds.active < found->bounds.active) &&
			!stream_is_ready(&c->stream))
			found = c;
	}
	return found;
}

/* --- time --- */

void bounds_active(struct client *c)
{
	c->bounds.active = client_now(c);
	if (c->bounds.active - c->bounds.listed >= RELIST_MS)
		relist(c);
}

void bounds_progress(struct client *c)
{
	c->bounds.progress = client_now(c);
}

uint64_t bounds_waited(const struct client *c)
{
	return client_now(c) - c->bounds.progress;
}

/* Returns the time limit of the client's TLS handshake or incomplete request; 0: no limit. */
static uint64_t time_to_finish(const struct client *c)
{
	uint64_t limit = client_config(c)->request_read_timeout;

	if (!stream_is_securing(&c->stream))
		return limit;
	return limit && limit < HANDSHAKE_MS ? limit : HANDSHAKE_MS;
}

void bounds_unfinished(struct client *c, bool is_unfinished, bool restart)
{
	if (!is_unfinished || time_to_finish(c) == 0) {
		c->bounds.begun = 0;
	} else if (restart || !c->bounds.begun) {
		c->bounds.begun = client_now(c);
		bounds_check(c);
	}
}

void bounds_linger(struct client *c)
{
	c->bounds.begun = client_now(c);
	bounds_check(c);
}

/* The client cannot be slow if its own output is empty. */
bool bounds_is_slow(const struct client *c)
{
	return stream_waiting(&c->stream) && is_flooded(c) && bounds_waited(c) >= STALL_MS;
}

bool bounds_is_unfinished(const struct client *c)
{
	uint64_t limit = time_to_finish(c);

	/* A client in the queue of handshakes is not the cause of the delay. */
	if (client_is_closing(c) || c->stream.handshake.waits)
		return false;
	return c->bounds.begun && limit && client_now(c) - c->bounds.begun >= limit;
}

static uint64_t time_to_linger(const struct client *c)
{
	if (c->input.is_silent)
		return LINGER_SETTLED_MS;
	/* Input is not read once the limit of skipped bytes is used up. */
	return c->input.skip.bytes ? LINGER_MS : 0;
}

bool bounds_has_lingered(const struct client *c)
{
	uint64_t time = client_now(c) - c->bounds.begun;

	if (c->state != CLIENT_LINGERING || time < time_to_linger(c))
		return false;
	/* At a shutdown, the worker closes all clients at its own timeout. */
	return (time >= LINGER_UNREAD_MS && !c->clients->draining) ||
		stream_has_delivered(&c->stream);
}

bool bounds_is_gone(const struct client *c)
{
	return c->state != CLIENT_LINGERING && !c->stream.reading && stream_is_broken(&c->stream);
}

/* Also asks the socket of a client whose last input was not read. */
static bool has_sent_all(const struct client *c)
{
	return c->account.waiting && c->state == CLIENT_OPEN &&
		(c->input.has_ended || stream_has_ended(&c->stream));
}

void bounds_end(const struct clients *all, size_t most, void (*close)(struct client *c))
{
	struct client *c, *next;
	size_t count = 0;

	TAILQ_FOREACH(c, &all->bounds->checked, bounds.checked)
		count += has_sent_all(c);
	for (c = TAILQ_FIRST(&all->bounds->checked); c && count > most; c = next) {
		next = TAILQ_NEXT(c, bounds.checked);
		if (has_sent_all(c)) {
			close(c);
			count--;
		}
	}
}

bool bounds_is_late(struct client *c, bool is_late)
{
	bool was_late = c->bounds.is_late;

	c->bounds.is_late = is_late;
	return was_late && is_late;
}

/* --- the timer --- */

static void start_tick(struct bounds *own)
{
	if (!loop_is_queued(&own->tick))
		loop_after(own->clients->loop, &own->tick, TICK_MS);
}

void bounds_check(struct client *c)
{
	if (c->bounds.is_checked)
		return;
	c->bounds.is_checked = true;
	TAILQ_INSERT_TAIL(&c->clients->bounds->checked, c, bounds.checked);
	start_tick(c->clients->bounds);
}

static void no_longer_check(struct client *c)
{
	if (c->bounds.is_checked)
		TAILQ_REMOVE(&c->clients->bounds->checked, c, bounds.checked);
	c->bounds.is_checked = false;
}

static bool is_to_be_checked(const struct client *c)
{
	return c->bounds.begun || c->state == CLIENT_LINGERING || c->auth || is_flooded(c) ||
		!c->stream.reading;
}

static void bounds_on_tick(struct loop_job *job)
{
	struct bounds *own = (struct bounds *)((char *)job - offsetof(struct bounds, tick));
	struct clients *all = own->clients;
	struct client *c, *next;

	for (c = TAILQ_FIRST(&own->checked); c; c = next) {
		next = TAILQ_NEXT(c, bounds.checked);
		own->ops->check(c);
		if (stream_is_open(&c->stream) && !is_to_be_checked(c))
			no_longer_check(c);
	}
	own->ops->tick(all);
	if (!TAILQ_EMPTY(&own->checked) || (all->config->idle_timeout && !TAILQ_EMPTY(&all->all)))
		start_tick(own);
}

/* --- open and close --- */

void bounds_open(struct client *c)
{
	struct clients *all = c->clients;

	c->bounds.progress = c->bounds.active = c->bounds.listed = client_now(c);
	TAILQ_INSERT_TAIL(&all->all, c, link);
	publish_oldest(all);
	if (all->config->idle_timeout)
		start_tick(all->bounds);
}

void bounds_close(struct client *c)
{
	TAILQ_REMOVE(&c->clients->all, c, link);
	change_rank(c, 0);
	if (c->bounds.held) {
		publish_held(c->clients, -c->bounds.held);
		c->clients->gone += c->bounds.held;
		start_tick(c->clients->bounds);
	}
	c->bounds.held = 0;
	no_longer_check(c);
	publish_oldest(c->clients);
}

void bounds_renew(struct clients *all)
{
	if (all->config->idle_timeout)
		start_tick(all->bounds);
	if (all->config->client_memory)
		loop_later(all->loop, &all->bounds->reclaim);
}

void bounds_init(struct clients *all, const struct bounds_ops *ops)
{
	struct bounds *own = xcalloc(1, sizeof(*own));

	all->bounds = own;
	own->clients = all;
	own->ops = ops;
	TAILQ_INIT(&own->checked);
	for (int i = 0; i < RANKS; i++)
		TAILQ_INIT(&own->ranks[i]);
	own->reclaim.run = bounds_on_reclaim;
	own->tick.run = bounds_on_tick;
	bounds_set_stranger(all, UINT64_MAX);
}

void bounds_fini(struct clients *all)
{
	free(all->bounds);
}
