#include "collection/fresh/fresh.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "collection/move/verbs.h"
#include "util/alloc.h"
#include "util/hash.h"

enum {
	BUCKETS = 1 << 14,
	/* A result is kept if it is at most this part of the limit. */
	LARGEST_PART = 16,
	/* Results that are delivered between two looks at other I/O. */
	RESULTS_AT_ONCE = 64,
	/* Outdated results that are freed when another one is kept. */
	FREED_AT_ONCE = 4
};

/* A read from memory whose result was not delivered yet. */
struct hit {
	STAILQ_ENTRY(hit) link;
	struct waiter *waiter;
	struct entry *entry;
};

STAILQ_HEAD(hit_queue, hit);

/* A call in flight, or its result in memory. */
struct entry {
	struct entry *next; /* in the same bucket */
	TAILQ_ENTRY(entry) age;
	struct fresh *fresh;
	struct waiter waiter; /* of the call; its key is the copy below */
	struct waiter *first; /* of the read that made the call */
	struct hit_queue shared;
	uint64_t hash;
	uint64_t since; /* milliseconds: when the call was made */
	uint64_t until; /* no read after this time may use it */
	uint64_t slot, flushes;
	size_t references; /* by the table, by the call in flight, and by hits */
	size_t size;       /* bytes of the result if it counts in fresh_stats, else 0 */
	unsigned want;
	bool found;           /* it is in the table */
	bool known;           /* the result is in memory */
	struct result result; /* with a copy of its slices */
	char *bytes;
	char key[];
};

/* A write in progress. */
struct fresh_write {
	struct waiter waiter;
	struct waiter *writer;
	struct fresh *fresh;
	atomic_uint_fast64_t *slot;
	struct entry *entry; /* the stored item, if it will be kept in memory; else NULL */
};

struct fresh {
	struct fresh_options options;
	struct entry *buckets[BUCKETS];
	TAILQ_HEAD(, entry) ages; /* the known entries of the table, in order of their results */
	struct hit_queue hits;
	struct waiter soon;
	bool scheduled;
};

/* --- entries --- */

static void release_entry(struct entry *e)
{
	if (--e->references)
		return;
	assert(!e->found && STAILQ_EMPTY(&e->shared));
	free(e->bytes);
	free(e);
}

/* Removes the entry from the table. */
static void drop_entry(struct entry *e)
{
	struct entry **at = &e->fresh->buckets[e->hash % BUCKETS];

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	e->found = false;
	if (e->size) {
		TAILQ_REMOVE(&e->fresh->ages, e, age);
		e->fresh->options.stats->bytes -= e->size;
	}
	e->size = 0;
	release_entry(e);
}

static struct entry *find_result(const struct fresh *f, struct slice key, uint64_t hash)
{
	struct entry *e = f->buckets[hash % BUCKETS];

	while (e && (e->hash != hash || !slice_equal(e->waiter.key, key)))
		e = e->next;
	return e;
}

/* Returns an entry with one reference. */
static struct entry *new_entry(struct fresh *f, struct slice key, uint64_t hash, unsigned want)
{
	struct entry *e = xcalloc(1, sizeof(*e) + key.n);

	e->fresh = f;
	e->hash = hash;
	e->since = f->options.clock(f->options.env);
	e->want = want;
	e->references = 1;
	e->waiter.key = slice_of(e->key, key.n);
	memcpy(e->key, key.p, key.n);
	STAILQ_INIT(&e->shared);
	return e;
}

/* Adds the entry to the table, replacing any other one of the key. */
static void add_result(struct entry *e)
{
	struct entry *other = find_result(e->fresh, e->waiter.key, e->hash);
	struct entry **at = &e->fresh->buckets[e->hash % BUCKETS];

	if (other)
		drop_entry(other);
	e->next = *at;
	*at = e;
	e->found = true;
	e->references++;
}

/* Copies the result, as its slices are only borrowed. */
static void copy_result(struct entry *e, const struct result *r)
{
	e->known = true;
	e->result = result_bare(r);
	e->result.recalled = true;
	e->bytes = xmalloc(r->value.n + r->line.n + 1);
	e->result.value = slice_of(e->bytes, r->value.n);
	e->result.line = slice_of(slice_write(e->bytes, r->value), r->line.n);
	slice_write(e->bytes + r->value.n, r->line);
}

static size_t size_of_entry(const struct entry *e, const struct result *r)
{
	return sizeof(*e) + e->waiter.key.n + r->value.n;
}

static bool is_unwritten(const struct entry *e)
{
	const struct fresh_slots *slots = e->fresh->options.slots;

	return atomic_load(&slots->at[e->hash % FRESH_SLOTS]) == e->slot &&
		atomic_load(&slots->flushes) == e->flushes;
}

/* Frees some of the oldest results, and more until there is room for `size` bytes. */
static void make_room_for(struct fresh *f, size_t size)
{
	uint64_t now = f->options.clock(f->options.env);
	struct entry *e;

	for (size_t i = 0; (e = TAILQ_FIRST(&f->ages)); i++) {
		bool is_outdated = e->until <= now && i < FREED_AT_ONCE;
		if (!is_outdated && f->options.stats->bytes + size <= f->options.limit)
			return;
		drop_entry(e);
	}
}

/* Keeps the result of an entry of the table in memory, or drops the entry. */
static void keep_result(struct entry *e, const struct result *r)
{
	struct fresh *f = e->fresh;
	size_t size = size_of_entry(e, r);
	bool is_state = r->status == RESULT_HIT || r->status == RESULT_MISS;

	if (!is_state || !is_unwritten(e) || size > f->options.limit / LARGEST_PART) {
		drop_entry(e);
		return;
	}
	make_room_for(f, size);
	if (!e->known)
		copy_result(e, r);
	e->size = size;
	f->options.stats->bytes += size;
	TAILQ_INSERT_TAIL(&f->ages, e, age);
}

/* --- hits --- */

static void schedule_hits(struct fresh *f, bool later)
{
	f->scheduled = true;
	f->options.soon(f->options.env, &f->soon, later);
}

static uint64_t seconds_since(const struct entry *e)
{
	return (e->fresh->options.clock(e->fresh->options.env) - e->since) / 1000;
}

static void deliver_hit(struct fresh *f, struct hit *hit)
{
	struct entry *e = hit->entry;
	struct waiter *waiter = hit->waiter;
	struct result r = e->result;

	if (e->want & WANT_TTL && r.ttl > 0) {
		uint64_t age = seconds_since(e);
		r.ttl = (uint64_t)r.ttl > age ? r.ttl - (int64_t)age : 0;
	}
	pool_put(f->options.env->pool, hit, sizeof(*hit));
	waiter->done(waiter, &r);
	release_entry(e);
}

/* A waiter may make further reads, which are answered here, too, or in a later turn. */
static void fresh_on_soon(struct waiter *waiter, const struct result *r)
{
	struct fresh *f = (struct fresh *)((char *)waiter - offsetof(struct fresh, soon));
	struct hit *hit;

	(void)r;
	for (size_t i = 0; (hit = STAILQ_FIRST(&f->hits)); i++) {
		if (i == RESULTS_AT_ONCE || env_is_over(f->options.env, 1)) {
			schedule_hits(f, true);
			return;
		}
		STAILQ_REMOVE_HEAD(&f->hits, link);
		deliver_hit(f, hit);
	}
	f->scheduled = false;
}

static void answer_from(struct entry *e, struct waiter *waiter)
{
	struct fresh *f = e->fresh;
	struct hit *hit = pool_get(f->options.env->pool, sizeof(*hit));

	*hit = (struct hit){ .waiter = waiter, .entry = e };
	e->references++;
	if (e->known) {
		f->options.stats->hits++;
		STAILQ_INSERT_TAIL(&f->hits, hit, link);
		if (!f->scheduled)
			schedule_hits(f, false);
	} else {
		f->options.stats->shared++;
		STAILQ_INSERT_TAIL(&e->shared, hit, link);
	}
}

/* --- reads --- */

static void fresh_on_read(struct waiter *waiter, const struct result *r)
{
	struct entry *e = (struct entry *)((char *)waiter - offsetof(struct entry, waiter));
	struct waiter *first = e->first;
	struct fresh *f = e->fresh;

	if (!STAILQ_EMPTY(&e->shared)) {
		copy_result(e, r);
		STAILQ_CONCAT(&f->hits, &e->shared);
		if (!f->scheduled)
			schedule_hits(f, false);
	}
	if (e->found)
		keep_result(e, r);
	release_entry(e);
	first->done(first, r);
}

static bool is_young(const struct entry *e)
{
	const struct fresh_options *o = &e->fresh->options;

	return (o->not_before && o->not_before(o->env) < e->until) || o->clock(o->env) < e->until;
}

/* Returns whether a read that wants these fields may return the result of the entry. */
static bool may_answer(const struct entry *e, unsigned want)
{
	const struct result *r = &e->result;
	bool expires = e->known && r->status == RESULT_HIT && e->want & WANT_TTL && r->ttl >= 0;

	return !(want & ~e->want) && is_unwritten(e) && is_young(e) &&
		!(expires && seconds_since(e) >= (uint64_t)r->ttl);
}

static void send_read(
	struct fresh *f, const struct call *call, struct waiter *waiter, struct entry *e)
{
	struct call copy = *call;

	f->options.stats->misses++;
	e->first = waiter;
	e->waiter.done = fresh_on_read;
	add_result(e);
	copy.key = e->waiter.key;
	f->options.call(f->options.env, &copy, &e->waiter);
}

static void read_fresh(struct fresh *f, const struct call *call, struct waiter *waiter, uint64_t ms)
{
	struct fresh_slots *slots = f->options.slots;
	uint64_t hash = hash_key(call->key, slots->seed);
	uint64_t slot = atomic_load(&slots->at[hash % FRESH_SLOTS]);
	uint64_t flushes = atomic_load(&slots->flushes);
	struct entry *e = find_result(f, call->key, hash);

	if (fresh_slot_is_written(slot) || fresh_slot_is_written(flushes) ||
		(f->options.usable && !f->options.usable(f->options.env))) {
		f->options.stats->misses++;
		f->options.call(f->options.env, call, waiter);
	} else if (e && may_answer(e, call->want)) {
		answer_from(e, waiter);
	} else {
		e = new_entry(f, call->key, hash, call->want);
		e->until = e->since + ms;
		e->slot = slot;
		e->flushes = flushes;
		send_read(f, call, waiter, e);
	}
}

/* --- writes --- */

static void fresh_on_written(struct waiter *waiter, const struct result *r)
{
	struct fresh_write *w = (struct fresh_write *)waiter;
	struct waiter *writer = w->writer;
	struct entry *e = w->entry;

	if (e && fresh_slot_end_alone(w->slot, e->slot, &e->slot) && r->status == RESULT_DONE) {
		add_result(e);
		keep_result(e, &e->result);
	} else if (!e) {
		fresh_slot_end(w->slot);
	}
	if (e)
		release_entry(e);
	pool_put(w->fresh->options.env->pool, w, sizeof(*w));
	writer->done(writer, r);
}

/*
 * Returns whether the item is the value of the call after its success, for as long as reads may
 * return it.
 */
static bool is_kept(const struct fresh *f, const struct call *call, uint64_t ms)
{
	bool stores_whole = call->verb == CALL_SET || call->verb == CALL_ADD ||
		call->verb == CALL_REPLACE || call->verb == CALL_CAS;
	bool stays = call->exptime == 0 ||
		(call->exptime > (int64_t)(ms / 1000 + 1) && call->exptime <= 30 * 24 * 3600);

	return stores_whole && stays && !(call->want & WANT_ENCODED) &&
		call->value.n < f->options.limit / LARGEST_PART;
}

/* Returns an entry with what a call stores. */
static struct entry *entry_of_write(
	struct fresh *f, const struct call *call, uint64_t hash, uint64_t ms)
{
	struct entry *e = new_entry(f, call->key, hash, WANT_VALUE);

	e->until = e->since + ms;
	e->flushes = atomic_load(&f->options.slots->flushes);
	copy_result(e,
		&(struct result){
			.status = RESULT_HIT, .value = call->value, .flags = call->flags });
	return e;
}

static struct fresh_write *new_write(
	struct fresh *f, atomic_uint_fast64_t *slot, struct waiter *writer)
{
	struct fresh_write *w = pool_get(f->options.env->pool, sizeof(*w));

	*w = (struct fresh_write){
		.waiter = { fresh_on_written, writer->key },
		.writer = writer,
		.fresh = f,
		.slot = slot,
	};
	return w;
}

static void write_fresh(
	struct fresh *f, const struct call *call, struct waiter *waiter, uint64_t ms, bool plain)
{
	uint64_t hash = hash_key(call->key, f->options.slots->seed);
	struct fresh_write *w = new_write(f, &f->options.slots->at[hash % FRESH_SLOTS], waiter);
	uint64_t before;

	if (plain && is_kept(f, call, ms) &&
		(!f->options.usable || f->options.usable(f->options.env)))
		w->entry = entry_of_write(f, call, hash, ms);
	before = fresh_slot_begin(w->slot);
	if (w->entry)
		w->entry->slot = before;
	f->options.call(f->options.env, call, &w->waiter);
}

static void fresh_flush(struct fresh *f, const struct call *call, struct waiter *waiter)
{
	struct fresh_write *w = new_write(f, &f->options.slots->flushes, waiter);

	(void)fresh_slot_begin(w->slot);
	f->options.call(f->options.env, call, &w->waiter);
}

/* --- entry --- */

void fresh_call(struct fresh *f, const struct call *call, struct waiter *waiter)
{
	bool has_key = call->server == CALL_ANY_SERVER, plain;
	uint64_t ms = has_key ? rules_fresh_for(f->options.env->rules, call->key, &plain) : 0;

	if (call->verb == CALL_FLUSH_ALL)
		fresh_flush(f, call, waiter);
	else if (ms && !verb_only_reads(call))
		write_fresh(f, call, waiter, ms, plain);
	else if (ms && call->verb == CALL_GET && call->only_reads == READS_ONLY &&
		!(call->want & WANT_ENCODED))
		read_fresh(f, call, waiter, ms);
	else
		f->options.call(f->options.env, call, waiter);
}

struct fresh *fresh_create(const struct fresh_options *options)
{
	struct fresh *f = xcalloc(1, sizeof(*f));

	f->options = *options;
	TAILQ_INIT(&f->ages);
	STAILQ_INIT(&f->hits);
	f->soon.done = fresh_on_soon;
	return f;
}

void fresh_destroy(struct fresh *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < BUCKETS; i++) {
		while (f->buckets[i])
			drop_entry(f->buckets[i]);
	}
	assert(STAILQ_EMPTY(&f->hits));
	free(f);
}
