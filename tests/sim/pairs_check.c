/* What each history of pairs.h must show. */
#include "collection/copies/copy.h"
#include "pairs.h"

/*
 * Writes within this time may be in either order: those of clocks that differ; and in a set that was
 * lost by both servers, and created again while one of them was unreachable.
 */
static int64_t tolerance(const struct pairs *w)
{
	if (w->owned && w->lossy)
		return PAIRS_SETTLED / 2 + 2 * PAIRS_SKEW;
	return w->apart ? 2 * PAIRS_SKEW : 0;
}

/* Whether a set may have been lost. */
static bool may_be_lost(const struct pairs *w)
{
	if (w->faults == PAIRS_FAULTS_NONE || w->faults == PAIRS_FAULTS_TURNS ||
		(w->faults == PAIRS_FAULTS_ONE && !w->unsteady && !w->moves))
		return false;
	/*
	 * While a set moves, a server that fails makes two absent: the one that has it, and the one
	 * that had it.
	 */
	return w->lossy || w->overlaps || pairs_incomplete(w);
}

/* --- sets and members that expire --- */

static bool is_of(const struct pairs_life *life, int key, int member)
{
	return life->key == key && (life->member < 0 || life->member == member);
}

static int64_t earliest(const struct pairs_life *life)
{
	return life->began + life->seconds * 1000 - PAIRS_SLACK;
}

static int64_t latest(const struct pairs_life *life)
{
	return life->ended + life->seconds * 1000 + PAIRS_SLACK;
}

/*
 * Returns whether a set may be expiring: then one copy may have expired before the other one was
 * read or touched, and that is alone.
 */
bool pairs_is_expiring(const struct pairs *w)
{
	int64_t now = pairs_now(w);

	for (int i = 0; i < w->life_count; i++) {
		const struct pairs_life *life = &w->lives[i];
		if (life->member < 0 && life->seconds && earliest(life) <= now &&
			(!life->ended || latest(life) + PAIRS_SETTLED >= now))
			return true;
	}
	return false;
}

/*
 * Returns whether nothing else can have changed the life of the set or member: no other write of a
 * member, and no other touch, or deletion, of the set.
 */
static bool is_alone(const struct pairs *w, const struct pairs_life *life, int member)
{
	int64_t until = latest(life);

	for (int i = 0; i < w->life_count; i++) {
		const struct pairs_life *o = &w->lives[i];
		if (o == life || !is_of(o, life->key, member) || o->began > until)
			continue;
		if (!o->ended || o->ended >= life->began - tolerance(w) ||
			(o->seconds && earliest(o) < until && latest(o) > life->began))
			return false;
	}
	for (int i = w->heads[life->key][member]; i >= 0; i = w->writes[i].next) {
		const struct pairs_write *o = &w->writes[i];
		if (o->began > until || o->began == INT64_MAX || o->began == life->began)
			continue;
		if (life->member >= 0 && (!o->ended || o->ended >= life->began - tolerance(w)))
			return false;
		/* It may have created one copy again that was evicted meanwhile. */
		if (o->adds && o->began <= life->began && (!o->ended || o->ended >= life->ended))
			return false;
		/* A removal may have been a deletion, and later words have created the set again. */
		if (!o->adds && (!o->ended || o->ended >= life->began - tolerance(w)))
			return false;
	}
	return true;
}

static void expire(struct pairs *w, const struct pairs_life *life, int member)
{
	bool certain = life->ended && !may_be_lost(w) && is_alone(w, life, member);
	int i = w->write_count++;

	w->writes[i] = (struct pairs_write){ .key = life->key,
		.member = member,
		.proxy = -1,
		.next = w->heads[life->key][member],
		.began = earliest(life) > life->began ? earliest(life) : life->began,
		.ended = certain ? latest(life) : 0 };
	w->heads[life->key][member] = i;
	w->marks[PAIRS_MARK_expired] += certain && w->writes[i].ended < pairs_now(w);
}

/* An expiry is a write that removes members, at about its time. */
static void add_expiries(struct pairs *w)
{
	for (int i = 0; i < w->life_count && w->owned; i++) {
		const struct pairs_life *life = &w->lives[i];
		if (!life->seconds)
			continue;
		for (int m = 0; m < PAIRS_MEMBERS && w->write_count < PAIRS_WRITES; m++) {
			if (is_of(life, life->key, m))
				expire(w, life, m);
		}
	}
}

/* --- reads --- */

/* Returns whether a later acknowledged write of the other value ended before the read began. */
static bool is_contradicted(
	const struct pairs *w, const struct pairs_write *o, const struct pairs_read *read)
{
	int64_t e = tolerance(w);

	if (!o->ended)
		return false;
	for (int i = w->heads[o->key][o->member]; i >= 0; i = w->writes[i].next) {
		const struct pairs_write *q = &w->writes[i];
		/* The stamps of one proxy grow. */
		int64_t order = (q->proxy == o->proxy || o->resets) && !w->lossy ? 0 : e;
		if (q->adds != o->adds && q->ended && q->began > o->ended + order &&
			q->began != INT64_MAX && q->ended < read->began - e)
			return true;
	}
	return false;
}

/* Returns whether a read may return this value of a member. */
static bool is_explained(
	const struct pairs *w, const struct pairs_read *read, int member, bool value)
{
	bool added = false;

	for (int i = w->heads[read->key][member]; i >= 0; i = w->writes[i].next) {
		const struct pairs_write *o = &w->writes[i];
		if (o->began == INT64_MAX)
			continue;
		added |= o->adds && o->ended && o->ended < read->began - tolerance(w);
		if (o->adds == value && o->began <= read->ended && !is_contradicted(w, o, read))
			return true;
	}
	/* At first there are no members; and none after the set was lost. */
	return !value && (!added || (w->owned && may_be_lost(w)));
}

static void check_members(struct pairs *w, const struct pairs_read *read)
{
	for (int m = 0; m < PAIRS_MEMBERS; m++) {
		bool value = read->in & UINT64_C(1) << m;
		if (read->known & UINT64_C(1) << m && !is_explained(w, read, m, value))
			pairs_fail(w, "a wrong read", "m%d is%s a member of s%d, from %lld to %lld",
				10 + m, value ? "" : " not", read->key,
				(long long)pairs_since(w, read->began),
				(long long)pairs_since(w, read->ended));
	}
}

/* Members that are certainly in the set, and all that may be. */
static void check_count(struct pairs *w, const struct pairs_read *read)
{
	int least = 0, most = 0;

	for (int m = 0; m < PAIRS_MEMBERS; m++) {
		least += !is_explained(w, read, m, false);
		most += is_explained(w, read, m, true);
	}
	if (read->count < least || read->count > most)
		pairs_fail(w, "a wrong count", "%d members of s%d, of %d to %d, from %lld to %lld",
			read->count, read->key, least, most, (long long)pairs_since(w, read->began),
			(long long)pairs_since(w, read->ended));
}

void pairs_check_reads(struct pairs *w)
{
	add_expiries(w);
	for (int i = 0; i < w->read_count && !w->violation; i++) {
		check_members(w, &w->reads[i]);
		if (w->reads[i].count >= 0 && !w->violation)
			check_count(w, &w->reads[i]);
	}
}

/* --- what is taken once --- */

/*
 * A member is popped no more often than it was added, where a word that is sent again with a new stamp
 * adds it again; and claimed once for each time that the set may have become another one.
 */
static unsigned removals(const struct pairs *w, int key, int member)
{
	unsigned count = 0;

	for (int i = w->heads[key][member]; i >= 0; i = w->writes[i].next)
		count += !w->writes[i].adds && w->writes[i].began != INT64_MAX;
	return count;
}

void pairs_check_taken(struct pairs *w)
{
	enum { TRIES = 4 };
	bool hidden = w->faults == PAIRS_FAULTS_SIDES ||
		(w->faults == PAIRS_FAULTS_ONE && w->faulty == pairs_server_of(w, 0, 0)) ||
		w->faults == PAIRS_FAULTS_EVICT;

	if (may_be_lost(w))
		return;
	for (int key = 0; key < PAIRS_KEYS; key++) {
		for (int m = 0; m < PAIRS_MEMBERS; m++) {
			if (w->claimed[key][m] > 1 + removals(w, key, m) + TRIES * w->resets[key])
				pairs_fail(w, "claimed twice", "m%d of s%d, %u times", 10 + m, key,
					w->claimed[key][m]);
			/*
			 * While the first server is unreachable, another proxy may pop the same
			 * member there.
			 */
			if (!hidden && !w->resets[key] &&
				w->popped[key][m] > w->added[key][m].count)
				pairs_fail(w, "popped twice", "m%d of s%d, %u times of %u", 10 + m,
					key, w->popped[key][m], w->added[key][m].count);
		}
	}
}

/* --- the end --- */

static bool is_gone(const struct memcached_item *item)
{
	struct copy copy;

	return copy_parse(buf_slice(&item->value), &copy) && copy.gone;
}

static void check_key(struct pairs *w, int key)
{
	const struct memcached_item *a = pairs_item(w, key, 0), *b = pairs_item(w, key, 1);

	/* One that is gone may expire before the other. */
	if ((!a && !b) || ((!a || is_gone(a)) && (!b || is_gone(b))))
		return;
	if (!a || !b || !slice_equal(buf_slice(&a->value), buf_slice(&b->value)))
		pairs_fail(w, "the copies differ at the end", "s%d: %.*s and %.*s", key,
			a ? (int)buf_size(&a->value) : 0, a ? a->value.data + a->value.start : "",
			b ? (int)buf_size(&b->value) : 0, b ? b->value.data + b->value.start : "");
	else if (!a->expires != !b->expires || a->flags != b->flags)
		pairs_fail(w, "the copies differ at the end", "s%d: expire at %lld and %lld", key,
			(long long)a->expires, (long long)b->expires);
}

/* A part that both servers have is the same. */
static void check_part(struct pairs *w, const struct memcached_item *item)
{
	struct slice key = buf_slice(&item->key);
	struct pairs_name name = pairs_name(key);
	const struct memcached_item *twin;
	struct buf other = BUF_EMPTY;

	if (name.key < 0 || !name.is_part || name.copy == 1)
		return;
	buf_add_slice(&other, pairs_base_key(name.key, 1));
	buf_add_slice(&other, slice_skip(key, pairs_base_key(name.key, 0).n));
	for (int server = 0; server < PAIRS_SERVERS; server++) {
		twin = memcached_find(&w->lan.servers[server], buf_slice(&other), lan_ms(&w->lan));
		if (twin && !slice_equal(buf_slice(&twin->value), buf_slice(&item->value)))
			pairs_fail(w, "the copies of a part differ", "%.*s", (int)key.n, key.p);
	}
	buf_free(&other);
}

void pairs_check_equal(struct pairs *w)
{
	for (int server = 0; server < PAIRS_SERVERS; server++) {
		for (size_t i = 0; i < MEMCACHED_ITEMS; i++) {
			if (w->lan.servers[server].items[i].used)
				check_part(w, &w->lan.servers[server].items[i]);
		}
	}
	for (int key = 0; key < PAIRS_KEYS && !w->violation; key++)
		check_key(w, key);
}
