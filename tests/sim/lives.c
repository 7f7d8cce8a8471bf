#include "lives.h"

#include "collection/lane/lane.h"
#include "lists.h"
#include "protocol/commands.h"
#include "world.h"

enum { NEAR = 2, MONTH = 60 * 60 * 24 * 30 };

static int64_t second(const struct world *w)
{
	return (int64_t)(world_now(w) / 1000);
}

/* --- keys and rules --- */

static int index_of(struct slice key)
{
	int list = lists_index(key);

	return list >= 0 ? SIM_KEYS + list : world_set(key);
}

static struct slice key_of(int i, char key[SIM_KEY_SIZE])
{
	key[0] = i < SIM_KEYS ? 's' : 'l';
	key[1] = (char)('0' + (i < SIM_KEYS ? i : i - SIM_KEYS));
	return slice_of(key, SIM_KEY_SIZE);
}

static struct memcached_item *find(struct world *w, int i)
{
	char key[SIM_KEY_SIZE];

	return world_find(w, key_of(i, key));
}

#define RULE(name, seconds) \
	{ \
		.prefix = { name, sizeof(name) - 1 }, .ttl = (seconds), .compact_waste = 0.5, \
		.delimiter = ',' \
	}

static const struct collection_rule rules[] = {
	RULE("s0", MONTH),
	RULE("s2", 2 * LIVES_LATE),
	RULE("l0", LIVES_LATE),
	RULE("l1", MONTH),
};

/* In a third of the histories, parts are on both servers. */
void lives_init(struct world *w, uint64_t seed)
{
	size_t n = 0;

	w->own_rules[n++] = (struct collection_rule)RULE("", 0);
	for (size_t i = 0; seed % 2 && i < sizeof(rules) / sizeof(*rules); i++)
		w->own_rules[n++] = rules[i];
	w->own_rules[n++] = lists_limit(seed);
	for (size_t i = 0; i < n; i++)
		w->own_rules[i].spread = 1 + (seed % 3 == 2);
	w->rules = (struct rules){ .collections = w->own_rules, .collection_count = n };
}

static int64_t rule_of(const struct world *w, struct slice key)
{
	return rules_collection(&w->rules, key)->ttl;
}

int64_t lives_choose_late(struct world *w)
{
	return LIVES_LATE + (int64_t)world_random(w, MONTH - LIVES_LATE);
}

int64_t lives_choose(struct world *w)
{
	int64_t late = lives_choose_late(w);

	switch (world_random(w, 4)) {
	case 0:
		return 0;
	case 1:
		return second(w) + MONTH + late;
	case 2:
		/* With time this becomes less than 30 days. */
		return second(w) + MONTH + (int64_t)world_random(w, 60);
	default:
		return late;
	}
}

/* --- the correct times --- */

static bool is_near(int64_t is, int64_t expires, int64_t drift)
{
	if (!is || !expires)
		return is == expires;
	return is >= expires - NEAR && is <= expires + NEAR + drift;
}

static void check(struct world *w, int i)
{
	const struct life *life = &w->lives[i];
	const struct memcached_item *item = find(w, i);

	if (!item)
		return;
	if (item->flags != life->flags)
		world_fail(w, "a base with other flags", "base %d has %u, not %u", i, item->flags,
			life->flags);
	if (is_near(item->expires, life->expires, life->drift))
		return;
	for (int p = 0; p < LIVES_PROXIES; p++) {
		if (life->by[p].corrects)
			return;
	}
	world_fail(w, "a base with another time to live",
		"base %d expires %lld, not %lld, drift %lld", i, (long long)item->expires,
		(long long)life->expires, (long long)life->drift);
}

static void set_end(struct life *life, int64_t expires, int64_t drift)
{
	life->expires = expires;
	life->drift = drift;
}

/* --- executed calls --- */

/* The server sets flags of a new base, as if a client had created it with them. */
static void made(struct world *w, struct life *life, struct memcached_item *item)
{
	item->flags = life->flags = (uint32_t)w->truth.tick + 1;
	set_end(life, item->expires, 0);
}

static bool is_as_rule_says(
	const struct world *w, const struct message *m, const struct memcached_item *item)
{
	int64_t ttl = rule_of(w, m->call.key);

	return item->expires == (ttl ? second(w) + ttl : 0) && item->flags == 0;
}

static void created(
	struct world *w, const struct message *m, struct life *life, struct memcached_item *item)
{
	if (!is_as_rule_says(w, m, item))
		world_fail(w, "a base is not created as its rule says", "%.*s expires %lld",
			(int)m->call.key.n, m->call.key.p, (long long)item->expires);
	made(w, life, item);
}

static bool may_be_sset(const struct world *w, int i)
{
	const struct sim_op *op;

	TAILQ_FOREACH(op, &w->ops, link) {
		if (op->command == COMMAND_SSET && op->key == i)
			return true;
	}
	return false;
}

enum { SLOW = 10 };

/* A read ahead is treated as if it were read now. */
static void take_ahead(struct world *w, struct rewriter *by)
{
	if (by->ahead)
		by->read = second(w);
	by->ahead = false;
}

/* If no task waits for the CAS, it is not corrected. */
static void rewritten(
	struct world *w, const struct message *m, int i, const struct memcached_item *before)
{
	struct life *life = &w->lives[i];
	struct memcached_item *item = find(w, i);
	struct rewriter *by = m->proxy ? &life->by[m->proxy->index] : NULL;

	if (!item)
		return;
	if (may_be_sset(w, i) && is_as_rule_says(w, m, item)) {
		made(w, life, item);
	} else if (!by) {
		set_end(life, item->expires, 0);
	} else {
		take_ahead(w, by);
		by->corrects = true;
		by->broke = by->mixed = by->doubts = false;
		by->wrote = second(w);
		by->exact = m->call.exptime > MONTH;
		by->known = by->looked;
		by->before = before->expires;
		by->gave = by->gave_last = item->expires;
		by->drift = life->drift;
		life->drift += second(w) - by->read;
		/*
		 * Timeouts do not let a rewrite take that long. Otherwise a short touch meanwhile
		 * would be undetectable.
		 */
		if (second(w) - by->read > SLOW)
			set_end(life, item->expires, life->drift);
	}
}

/*
 * If clocks differ, proxies that correct a date at the same time may each mistake the correction
 * of the other for such a difference. The date is then off by more than NEAR.
 */
static bool is_mutual(const struct world *w, int64_t right, int64_t expires, int64_t drift)
{
	return w->skewed && right && is_near(expires + NEAR, right, drift + 2 * NEAR);
}

/*
 * Returns whether a time to live that another client has set looks to the proxy like its own.
 * memcached returns only the remaining seconds, so unless it has the server's clock, the proxy
 * must treat any end as its own that the time in flight can explain.
 */
static bool looks_own(const struct world *w, const struct rewriter *by, int64_t expires)
{
	int64_t since = by->exact ? 0 : second(w) - by->wrote;

	return is_near(expires, by->gave, since) || is_near(expires, by->gave_last, since);
}

/*
 * A correction overrides the time that another client has set since the CAS. Then another
 * correction follows, unless that time equals the proxy's previous one. If it is near, another one
 * may follow.
 */
static bool must_follow(const struct world *w, struct rewriter *by, const struct life *life,
	int64_t expires, int64_t drift)
{
	if (!by->corrects || !is_near(expires, by->before, drift))
		return false;
	by->doubts = looks_own(w, by, life->expires);
	by->instead = life->expires;
	if (by->doubts)
		return false;
	by->before = life->expires;
	by->gave_last = expires;
	return true;
}

/*
 * A correction set the right end, give or take NEAR. If the end that it replaced was neither that
 * nor an earlier one of the proxy, the proxy has detected a touch and may correct once more. Until
 * its next command on the base, that may override any touch.
 */
static bool may_follow(
	struct rewriter *by, const struct life *life, int64_t replaced, int64_t expires)
{
	if (replaced == expires || replaced == by->gave || replaced == by->gave_last)
		return false;
	by->before = life->expires;
	by->gave_last = expires;
	return true;
}

/*
 * Two proxies that correct at the same time: each may mistake the time of the other for the touch
 * of a client.
 */
static void mix(struct life *life, struct rewriter *by)
{
	for (int p = 0; p < LIVES_PROXIES; p++) {
		struct rewriter *other = &life->by[p];
		if (other != by && other->corrects)
			other->mixed = by->mixed = true;
	}
}

/* The proxy may detect the time that its correction has overridden, and restore it. */
static void override(struct life *life, struct rewriter *by, int64_t drift)
{
	by->doubts = true;
	by->instead = life->expires;
	set_end(life, by->before, drift);
}

/* The same for the time that this overrides in turn. */
static void give_back(struct life *life, struct rewriter *by, int64_t expires)
{
	by->doubts = true;
	by->instead = life->expires;
	set_end(life, expires, 0);
}

/* Whether a rewrite under way has kept that end, given it, or overridden it. */
static bool is_known(const struct life *life, int64_t expires, int64_t drift)
{
	for (int p = 0; p < LIVES_PROXIES; p++) {
		const struct rewriter *by = &life->by[p];
		if (by->mixed &&
			(is_near(expires, by->before, drift) || is_near(expires, by->gave, drift) ||
				is_near(expires, by->gave_last, drift) ||
				(by->doubts && is_near(expires, by->instead, drift))))
			return true;
	}
	return false;
}

static void corrected(struct world *w, const struct message *m, struct life *life,
	const struct memcached_item *before, const struct memcached_item *item)
{
	struct rewriter *by = m->proxy ? &life->by[m->proxy->index] : NULL;
	int64_t drift;

	if (!by) {
		set_end(life, item->expires, 0);
		return;
	}
	mix(life, by);
	drift = by->drift + second(w) - (m->call.exptime > MONTH ? by->read : by->known);
	if (by->corrects && is_near(item->expires, life->expires, drift)) {
		life->drift = drift;
		if (may_follow(by, life, before->expires, item->expires))
			return;
	} else if (must_follow(w, by, life, item->expires, drift))
		return;
	else if (by->mixed && is_known(life, item->expires, drift))
		w->undone++, give_back(life, by, item->expires);
	else if (by->corrects && is_near(item->expires, by->before, drift))
		w->undone++, set_end(life, by->before, drift);
	else if (by->corrects && m->call.exptime > MONTH &&
		(is_mutual(w, life->expires, item->expires, drift) ||
			is_mutual(w, by->before, item->expires, drift)))
		set_end(life, item->expires, 0);
	else if (by->broke && is_near(item->expires, by->before, drift))
		override(life, by, drift);
	else if (by->doubts && is_near(item->expires, by->instead, drift))
		give_back(life, by, item->expires);
	by->corrects = by->broke = false;
}

static void touched(struct world *w, const struct message *m, struct life *life,
	const struct memcached_item *item)
{
	uint64_t *last = &life->touched[w->past[note(m)->asked].client];
	struct sim_op *op;

	set_end(life, item->expires, 0);
	if (!m->proxy || !note(m)->asked)
		return;
	if (note(m)->asked < *last && !note(m)->unclear)
		world_fail(w, "touches of a client in another order",
			"%.*s: command %llu behind %llu", (int)m->call.key.n, m->call.key.p,
			(unsigned long long)note(m)->asked, (unsigned long long)*last);
	if (!note(m)->unclear)
		*last = note(m)->asked;
	TAILQ_FOREACH(op, &w->ops, link) {
		if (op->number == note(m)->asked)
			op->touched = true;
	}
}

static void read_by(struct world *w, const struct message *m, struct rewriter *by)
{
	const unsigned whole = WANT_CAS | WANT_TTL;

	if (m->call.want & WANT_TTL)
		by->looked = second(w);
	if ((m->call.want & whole) != whole)
		return;
	by->ahead = note(m)->behind;
	if (note(m)->behind)
		return;
	by->read = second(w);
	by->corrects = by->broke = false;
}

bool lives_read_ahead(const struct world *w, const struct message *m)
{
	int i = index_of(m->call.key);

	return i >= 0 && m->proxy && w->lives[i].by[m->proxy->index].ahead;
}

/* It waited for the end of the rewrite before it. */
static void appended(const struct message *m, struct life *life)
{
	if (m->proxy)
		life->by[m->proxy->index].corrects = life->by[m->proxy->index].broke = false;
}

void lives_executed(struct world *w, const struct message *m, const struct memcached_item *before)
{
	int i = index_of(m->call.key);
	struct life *life = &w->lives[i < 0 ? 0 : i];
	struct memcached_item *item = i < 0 ? NULL : find(w, i);
	bool done = m->result.status == RESULT_DONE;

	/* This mutation lets a touch happen between the last read of a rewrite and its CAS. */
	if (!item || w->mutation == MUTATION_STALE_CAS)
		return;
	if (m->call.verb == CALL_GET && m->proxy)
		read_by(w, m, &life->by[m->proxy->index]);
	else if (m->call.verb == CALL_ADD && done)
		created(w, m, life, item);
	else if (m->call.verb == CALL_CAS && done)
		rewritten(w, m, i, before);
	else if (m->call.verb == CALL_TOUCH && !note(m)->asked && done)
		corrected(w, m, life, before, item);
	else if (m->call.verb == CALL_GAT || m->call.verb == CALL_TOUCH)
		touched(w, m, life, item);
	else if (m->call.verb == CALL_APPEND || m->call.verb == CALL_PREPEND)
		appended(m, life);
	check(w, i);
}

/* --- the commands of calls --- */

static bool names(const struct sim_op *op, struct slice key)
{
	int list = lists_index(key);

	if (op->many)
		return true;
	return list >= 0 ? op->list && op->list->list == list
			 : !op->list && op->key == index_of(key);
}

static bool may_send(const struct sim_op *op, const struct call *call)
{
	switch (call->verb) {
	case CALL_DELETE:
		return op->command == COMMAND_DELETE;
	case CALL_GAT:
		if (op->command == COMMAND_GAT && op->exptime == call->exptime)
			return true;
		return op->command == COMMAND_TOUCH && op->exptime == call->exptime;
	default:
		return false;
	}
}

/* Returns whether it follows a write of the same proxy with an unknown outcome. */
static bool is_behind(struct world *w, const struct message *m)
{
	const struct message *last =
		m->call.verb == CALL_GET ? lan_last_call(&w->lan, m->proxy, m->call.key) : NULL;

	return last && !last->executed && !last->answered &&
		(last->call.verb == CALL_CAS || last->call.verb == CALL_APPEND ||
			last->call.verb == CALL_PREPEND);
}

/* Returns the client whose operation a lane carries out with this call; NULL if it is not known. */
static const struct account *sender(const struct message *m)
{
	const struct lanes *lanes = m->proxy->host.lanes;

	for (size_t i = 0; i < lanes->bucket_count; i++) {
		for (const struct lane *lane = lanes->buckets[i]; lane; lane = lane->next) {
			if (&lane->waiter == m->waiter)
				return lane_first(lane) ? lane_first(lane)->account : NULL;
		}
	}
	return NULL;
}

static bool is_from(const struct sim_op *op, const struct account *client)
{
	return !client || client == &op->account ||
		client == &op->world->clients[op->client].account;
}

void lives_sent(struct world *w, struct message *m)
{
	const struct account *client;
	struct sim_op *op;

	if (index_of(m->call.key) < 0)
		return;
	note(m)->behind = is_behind(w, m);
	if (m->call.verb != CALL_GAT && m->call.verb != CALL_DELETE)
		return;
	client = sender(m);
	TAILQ_FOREACH(op, &w->ops, link) {
		if (op->proxy != m->proxy || !names(op, m->call.key) || !is_from(op, client) ||
			!may_send(op, &m->call))
			continue;
		note(m)->asked = op->number;
		if (op->command == COMMAND_TOUCH && op->touches) {
			note(m)->unclear = true;
			continue;
		}
		op->touches = true;
		return;
	}
}

void lives_reply(const struct sim_op *op)
{
	if (op->world->mutation != MUTATION_STALE_CAS && op->command == COMMAND_TOUCH &&
		check_says(op, "TOUCHED") && !op->touched)
		world_fail(op->world, "a touch is acknowledged, but not done", "client %d",
			op->client);
}

/* --- ends --- */

static void stop_correcting(struct world *w, int i, struct rewriter *by)
{
	struct life *life = &w->lives[i];
	const struct memcached_item *item = find(w, i);

	if (by->corrects && item && !is_near(item->expires, life->expires, life->drift))
		set_end(life, item->expires, 0);
	by->broke |= by->corrects;
	by->corrects = false;
}

void lives_break(struct world *w, const struct lan_proxy *p, int server)
{
	char key[SIM_KEY_SIZE];

	for (int i = 0; i < LIVES; i++) {
		if (world_server(key_of(i, key)) == server)
			stop_correcting(w, i, &w->lives[i].by[p->index]);
	}
}

void lives_end(struct world *w)
{
	for (int i = 0; i < LIVES && w->mutation != MUTATION_STALE_CAS; i++) {
		for (int p = 0; p < LIVES_PROXIES; p++)
			w->lives[i].by[p].corrects = false;
		check(w, i);
	}
}
