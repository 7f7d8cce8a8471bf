#include "collection/rewrite/ahead.h"

#include <stdlib.h>

#include "collection/list_request.h"
#include "collection/ttl.h"
#include "util/alloc.h"

/*
 * FRESH: the time for which a base is used, in milliseconds. A touch by a client that does not use
 * setlistd changes neither the base nor its CAS id.
 */
enum { PLACES = 64, FRESH = 10 * 1000, PAUSE_MAX = 64, GAP_MAX = 1000, GAP_UNKNOWN = GAP_MAX + 1 };

/* State of a key that was rewritten. */
struct ahead {
	uint64_t hash; /* of the key; an empty slot has 0 and no key */
	struct buf key;
	bool known;
	struct buf value;   /* the base, if it is known */
	struct result read; /* the reply about it, without slices */
	uint64_t since;     /* a moment before it was read */
	unsigned appends;   /* number of appends since the last rewrite */
	unsigned gap;       /* number of appends between the last two rewrites */
	unsigned pause;     /* the next useless read makes 2 * pause + 1 rewrites go without */
	unsigned wait;      /* number of rewrites that still go without */
};

/* A hash table without chains: a key overwrites the previous one in its slot. */
struct aheads {
	struct ahead places[PLACES];
	size_t memory; /* of keys and values */
};

struct aheads *aheads_create(void)
{
	return xcalloc(1, sizeof(struct aheads));
}

void aheads_destroy(struct aheads *aheads)
{
	for (size_t i = 0; aheads && i < PLACES; i++) {
		buf_free(&aheads->places[i].key);
		buf_free(&aheads->places[i].value);
	}
	free(aheads);
}

size_t aheads_memory(const struct aheads *aheads)
{
	return aheads->memory;
}

static struct ahead *place_of_lane(const struct lane *lane)
{
	return &lane->lanes->aheads->places[lane->hash % PLACES];
}

static struct ahead *find_ahead(const struct lane *lane)
{
	struct ahead *a = place_of_lane(lane);

	return a->hash == lane->hash && slice_equal(buf_slice(&a->key), lane->waiter.key) ? a
											  : NULL;
}

static void set_bytes(struct aheads *aheads, struct buf *b, struct slice s)
{
	aheads->memory -= b->cap;
	buf_consume(b, buf_size(b));
	buf_add_slice(b, s);
	aheads->memory += b->cap;
}

static struct ahead *make(const struct lane *lane)
{
	struct aheads *aheads = lane->lanes->aheads;
	struct ahead *a = place_of_lane(lane);

	set_bytes(aheads, &a->key, lane->waiter.key);
	aheads->memory -= a->value.cap;
	buf_free(&a->value);
	*a = (struct ahead){ .hash = lane->hash, .key = a->key, .gap = GAP_UNKNOWN };
	return a;
}

/*
 * Returns the maximum size of a base to keep: all of them together may take a fixed part of
 * the memory for views. A CAS of a base with two copies reads them anyway.
 */
static size_t most(const struct lane *lane)
{
	enum { MOST = 32 * 1024, PART = 16 };
	size_t share = lane_env(lane)->options->cache / PART / PLACES;

	if (lane->rule->copies > 1)
		return 0;
	return share < MOST ? share : MOST;
}

static void forget_read(struct lane *lane, struct ahead *a)
{
	a->known = false;
	lane_forget_behind(lane);
}

void ahead_forget(struct lane *lane)
{
	struct ahead *a = find_ahead(lane);

	if (a)
		forget_read(lane, a);
}

/* --- the read after a write --- */

/* Computes the reply as it would be now. Returns false if it is too old. */
static bool as_of_now(const struct lane *lane, const struct ahead *a, struct result *r)
{
	enum { SECOND = 1000 };
	uint64_t age = lane_env(lane)->now - a->since;
	int64_t exptime;

	*r = a->read;
	r->value = buf_slice(&a->value);
	if (r->ttl >= 0)
		r->ttl = r->ttl > (int64_t)(age / SECOND) ? r->ttl - (int64_t)(age / SECOND) : 0;
	return age <= FRESH && ttl_exptime(lane_env(lane), r->ttl, &exptime);
}

/* Records whether a read was useful. */
static void count_use(struct ahead *a, bool used)
{
	if (used) {
		a->pause /= 2;
	} else {
		a->pause = a->pause < PAUSE_MAX ? 2 * a->pause + 1 : a->pause;
		a->wait = a->pause;
	}
}

/*
 * Keeps the reply `r` and `base`, which was read after a->since. Returns false if no rewrite
 * could begin with it.
 */
static bool keep_read(struct lane *lane, struct ahead *a, const struct result *r, struct slice base)
{
	struct result now;

	a->read = result_bare(r);
	a->read.server = "server";
	a->known = r->status == RESULT_HIT && r->cas && base.n <= most(lane) &&
		as_of_now(lane, a, &now);
	if (a->known)
		set_bytes(lane->lanes->aheads, &a->value, base);
	return a->known;
}

static void ahead_on_read(struct lane *lane, const struct result *r)
{
	struct ahead *a = find_ahead(lane);

	if (a && !keep_read(lane, a, r, r->value))
		count_use(a, false);
}

static bool is_rewrite(const struct op *op)
{
	return op->kind == OP_POP || op->kind == OP_CLAIM ||
		(op->kind == OP_LIST && list_verb_writes(op->list->verb));
}

/*
 * Returns whether the next write of the key is expected to be a rewrite, from the queued
 * operations or, if there are none, from the last time.
 */
static bool expects_rewrite(const struct lane *lane, const struct ahead *a)
{
	enum { LOOKS = 16 };
	const struct client_queue *client;
	const struct op *op;
	int n = 0;

	TAILQ_FOREACH(client, &lane->queue.clients, link) {
		STAILQ_FOREACH(op, &client->ops, link) {
			if (is_rewrite(op))
				return true;
			if (n++ == LOOKS)
				break;
			if (op->kind != OP_READ && op->kind != OP_LIST && op->kind != OP_CALL)
				return false;
		}
	}
	return a->appends == a->gap;
}

static bool may_read_ahead(const struct lane *lane, const struct ahead *a)
{
	return !a->wait && !lane->reads_behind && expects_rewrite(lane, a);
}

static void read_ahead(struct lane *lane, struct ahead *a)
{
	if (!may_read_ahead(lane, a))
		return;
	a->since = lane_env(lane)->now;
	lane_read_behind(lane, ahead_on_read);
}

void ahead_rewrites(struct lane *lane)
{
	struct ahead *a = find_ahead(lane);

	if (most(lane) == 0)
		return;
	if (!a) {
		(void)make(lane);
		return;
	}
	forget_read(lane, a);
	if (lane->attempts == 0) {
		a->gap = a->appends;
		a->appends = 0;
		a->wait -= a->wait > 0;
	}
	read_ahead(lane, a);
}

void ahead_appends(struct lane *lane)
{
	struct ahead *a = find_ahead(lane);

	if (!a)
		return;
	forget_read(lane, a);
	a->appends += a->appends < GAP_MAX;
	read_ahead(lane, a);
}

void ahead_saw(struct lane *lane, const struct result *r, struct slice base)
{
	struct ahead *a = find_ahead(lane);

	if (!a || a->known || r->recalled || !may_read_ahead(lane, a))
		return;
	a->since = lane_env(lane)->now;
	(void)keep_read(lane, a, r, base);
}

/* --- the rewrite --- */

bool ahead_has(const struct lane *lane)
{
	const struct ahead *a = find_ahead(lane);
	struct result r;

	return a &&
		((lane->reads_behind && lane->behind_read) || (a->known && as_of_now(lane, a, &r)));
}

void ahead_give(struct lane *lane, lane_step *step)
{
	struct ahead *a = find_ahead(lane);
	struct result r;

	if (lane_await_behind(lane, step))
		return;
	(void)as_of_now(lane, a, &r);
	a->known = false;
	step(lane, &r);
}

void ahead_ended(struct lane *lane, enum result_status status, bool tried)
{
	struct ahead *a = find_ahead(lane);

	if (a && tried && status <= RESULT_EXISTS)
		count_use(a, status == RESULT_DONE);
}

bool ahead_reads(struct lane *lane, lane_step *step)
{
	return lane_await_behind(lane, step);
}
