#include "lives.h"

#include "collection/lane/lane.h"
#include "lists.h"
#include "protocol/commands.h"
#include "world.h"

enum { NEAR = 1, SLOW = 60, MONTH = 60 * 60 * 24 * 30 };

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

/* --- the dates of bases --- */

/* The server's clock. */
static int64_t server_second(const struct world *w, struct slice key)
{
	return (int64_t)((world_now(w) + w->lan.servers[world_server(key)].ahead) / 1000);
}

/*
 * Stores the last date in a base, and returns how many it has. Shares no code with the code under
 * test.
 */
static int dates_in(struct slice base, int64_t *last)
{
	int count = 0;

	for (size_t i = 0; i + 2 < base.n; i++) {
		if ((i && base.p[i - 1] != ' ') || base.p[i] != '~' || base.p[i + 1] != 't')
			continue;
		*last = 0;
		for (i += 2; i < base.n && base.p[i] != ' '; i++)
			*last = *last * 10 + base.p[i] - '0';
		count++;
	}
	return count;
}

void lives_add_undated(struct slice base, struct buf *out)
{
	struct slice token;

	while ((token = slice_token(&base)).n) {
		if (!slice_starts(token, SLICE("~t")))
			buf_add_word(out, token);
	}
}

static int dates_of(const struct memcached_item *item, int64_t *last)
{
	return dates_in(buf_slice(&item->value), last);
}

static bool is_near(int64_t is, int64_t expires)
{
	return !is || !expires ? is == expires : is >= expires - NEAR && is <= expires + NEAR;
}

static bool is_settled(const struct memcached_item *item)
{
	int64_t date;

	return !dates_of(item, &date) || is_near(item->expires, date);
}

bool lives_has_expired(const struct world *w, const struct message *m)
{
	return m->call.verb == CALL_CAS && m->call.exptime > MONTH &&
		m->call.exptime <= server_second(w, m->call.key);
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
	if (!life->open && item->expires != life->expires)
		world_fail(w, "a base with another time to live", "base %d expires %lld, not %lld",
			i, (long long)item->expires, (long long)life->expires);
	if (!life->open && !is_settled(item))
		world_fail(w, "a base that does not expire at its date", "base %d expires %lld", i,
			(long long)item->expires);
}

/*
 * A mutation lets a touch happen between the last read of a rewrite and its CAS; others set clocks
 * wrong for members, and so for bases too.
 */
static bool is_off(const struct world *w)
{
	return w->mutation == MUTATION_STALE_CAS || w->mutation == MUTATION_EARLY_EXPIRY ||
		w->mutation == MUTATION_LATE_EXPIRY;
}

/* --- executed calls --- */

/* The server sets flags of a new base, as if a client had created it with them. */
static void made(struct world *w, struct life *life, struct memcached_item *item)
{
	item->flags = life->flags = (uint32_t)w->truth.tick + 1;
	life->expires = item->expires;
	life->open = false;
	life->made = w->truth.tick;
}

static bool is_as_rule_says(
	const struct world *w, const struct message *m, const struct memcached_item *item)
{
	int64_t ttl = rule_of(w, m->call.key), date;

	return item->expires == (ttl ? server_second(w, m->call.key) + ttl : 0) &&
		item->flags == 0 && !dates_of(item, &date);
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

/* Whether the CAS touches an empty base, whose value stays empty. */
static bool is_touch(const struct message *m, const struct memcached_item *before)
{
	return note(m)->asked && m->call.value.n == 0 && buf_size(&before->value) == 0;
}

/*
 * Returns whether a rewrite may give a base without a date this end: the seconds left when it was
 * read, counted from the moment at which the proxy had the reply.
 */
static bool may_convert(const struct world *w, const struct message *m, const struct life *life,
	const struct memcached_item *before, int64_t expires)
{
	int64_t late = m->proxy ? second(w) - life->read[m->proxy->index] : INT32_MAX;

	if (life->open)
		return true;
	return !before->expires
		? expires == 0
		: expires >= before->expires - NEAR && expires <= before->expires + NEAR + late;
}

/*
 * A rewrite sets the last date of the base that it was computed from. A touch appends a date, so
 * the base is still the same.
 */
static void rewritten(
	struct world *w, const struct message *m, int i, const struct memcached_item *before)
{
	struct life *life = &w->lives[i];
	struct memcached_item *item = find(w, i);
	int64_t old, date = 0;
	int count;

	if (!item || (may_be_sset(w, i) && is_as_rule_says(w, m, item))) {
		if (item)
			made(w, life, item);
		return;
	}
	count = dates_of(item, &date);
	if (dates_of(before, &old) && (!old || old > server_second(w, m->call.key))) {
		if (count != 1 || date != old || item->expires != old)
			world_fail(w, "a rewrite loses a date", "base %d expires %lld, not %lld", i,
				(long long)item->expires, (long long)old);
	} else if (!may_convert(w, m, life, before, item->expires) ||
		(count ? count > 1 || date != item->expires : item->expires)) {
		world_fail(w, "a rewrite sets another date", "base %d expires %lld, not %lld", i,
			(long long)item->expires, (long long)before->expires);
	}
	life->expires = item->expires;
	life->open = false;
}

static struct sim_op *asked_by(struct world *w, const struct message *m)
{
	struct sim_op *op;

	TAILQ_FOREACH(op, &w->ops, link) {
		if (op->number == note(m)->asked)
			return op;
	}
	return NULL;
}

/*
 * Whether a proxy has computed this date for a number of seconds: when it sent it. The touch of the
 * item counts from its execution.
 */
static bool is_right_date(int64_t date, int64_t expires)
{
	return date >= expires - SLOW && date <= expires + NEAR;
}

static void touched_for_client(
	struct world *w, const struct message *m, struct life *life, struct memcached_item *item)
{
	uint64_t *last = &life->touched[w->past[note(m)->asked].client];
	struct sim_op *op = asked_by(w, m);

	if (note(m)->asked < *last && !note(m)->unclear)
		world_fail(w, "touches of a client in another order",
			"%.*s: command %llu behind %llu", (int)m->call.key.n, m->call.key.p,
			(unsigned long long)note(m)->asked, (unsigned long long)*last);
	if (!note(m)->unclear)
		*last = note(m)->asked;
	if (!op)
		return;
	if (op->command == COMMAND_TOUCH && m->call.verb == CALL_GAT && m->call.exptime &&
		m->call.exptime <= MONTH && life->given[m->proxy->index] > 0 &&
		!is_right_date(life->given[m->proxy->index], item->expires))
		world_fail(w, "a touch appends another date", "%.*s expires %lld, not %lld",
			(int)m->call.key.n, m->call.key.p, (long long)life->given[m->proxy->index],
			(long long)item->expires);
	op->touched = true;
	op->touched_empty = buf_size(&item->value) == 0;
	op->ends = item->expires;
}

static bool was_appended(const struct life *life, int64_t date)
{
	for (size_t i = 0; i < LIVES_DATES && i < life->appends; i++) {
		if (life->dates[i] == date)
			return true;
	}
	return false;
}

/*
 * A touch changes the item after it has appended the date, so the base has this date, unless
 * another one was appended in between; then the touch sets that one. A gat first touches the item
 * as any other one. Until that is done, rewrites may set one or the other.
 */
static void touched(
	struct world *w, const struct message *m, struct life *life, struct memcached_item *item)
{
	int64_t date;
	bool dated = dates_of(item, &date) > 0, same = dated && is_near(item->expires, date);

	if (m->proxy && !note(m)->asked && !same && !was_appended(life, item->expires))
		world_fail(w, "a base is touched by no client", "%.*s expires %lld, not %lld",
			(int)m->call.key.n, m->call.key.p, (long long)item->expires,
			(long long)life->expires);
	life->expires = item->expires;
	life->last = w->truth.tick;
	life->last_by = note(m)->asked;
	life->open = !same;
	if (!same && !(m->call.want & WANT_TTL))
		life->bare = w->truth.tick;
	if (!m->proxy)
		life->stray = w->truth.tick;
	else if (note(m)->asked)
		touched_for_client(w, m, life, item);
}

static void read_by(const struct world *w, const struct message *m, struct life *life)
{
	const unsigned whole = WANT_CAS | WANT_TTL;
	int p = m->proxy->index;

	if ((m->call.want & whole) != whole)
		return;
	life->ahead[p] = note(m)->behind;
	life->read[p] = second(w);
}

bool lives_read_ahead(const struct world *w, const struct message *m)
{
	int i = index_of(m->call.key);

	return i >= 0 && m->proxy && w->lives[i].ahead[m->proxy->index];
}

static void appended(const struct world *w, const struct message *m, struct life *life)
{
	int64_t date;

	if (!dates_in(m->call.value, &date))
		return;
	life->open = true;
	life->dates[life->appends++ % LIVES_DATES] = date;
	if (m->proxy)
		life->given[m->proxy->index] = date;
	else
		life->stray = w->truth.tick;
}

static void replaced(
	struct world *w, const struct message *m, int i, const struct memcached_item *before)
{
	struct life *life = &w->lives[i];
	struct memcached_item *item = find(w, i);

	if (!item || !is_touch(m, before)) {
		rewritten(w, m, i, before);
		return;
	}
	life->expires = item->expires;
	life->open = false;
	if (m->proxy)
		touched_for_client(w, m, life, item);
}

void lives_executed(struct world *w, const struct message *m, const struct memcached_item *before)
{
	int i = index_of(m->call.key);
	struct life *life = &w->lives[i < 0 ? 0 : i];
	struct memcached_item *item = i < 0 ? NULL : find(w, i);
	bool done = m->result.status == RESULT_DONE;
	struct sim_op *op = i >= 0 && m->call.verb == CALL_CAS ? asked_by(w, m) : NULL;

	/* The touch of an empty base is repeated. */
	if (op && !done)
		op->touches = false;
	if (i >= 0 && m->call.verb == CALL_APPEND && !done && m->proxy)
		life->given[m->proxy->index] = 0;
	if (!item || is_off(w))
		return;
	if (m->call.verb == CALL_GET && m->proxy)
		read_by(w, m, life);
	else if (m->call.verb == CALL_ADD && done)
		created(w, m, life, item);
	else if (m->call.verb == CALL_CAS && done)
		replaced(w, m, i, before);
	else if (m->call.verb == CALL_GAT || m->call.verb == CALL_TOUCH)
		touched(w, m, life, item);
	else if (m->call.verb == CALL_APPEND && done)
		appended(w, m, life);
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
	case CALL_CAS:
		return (op->command == COMMAND_GAT || op->command == COMMAND_TOUCH) &&
			op->exptime == call->exptime;
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

const struct op *lives_sender(const struct message *m)
{
	const struct lanes *lanes = m->proxy->host.lanes;

	for (size_t i = 0; i < lanes->bucket_count; i++) {
		for (const struct lane *lane = lanes->buckets[i]; lane; lane = lane->next) {
			if (&lane->waiter == m->waiter)
				return lane_first(lane);
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
	const struct op *sent_for;
	struct sim_op *op;

	if (index_of(m->call.key) < 0)
		return;
	note(m)->behind = is_behind(w, m);
	if (m->call.verb != CALL_GAT && m->call.verb != CALL_DELETE &&
		(m->call.verb != CALL_CAS || m->call.value.n))
		return;
	sent_for = lives_sender(m);
	/* A compaction may leave an empty base, too; a touch may set the date of another one. */
	if (m->call.verb == CALL_CAS && (!sent_for || sent_for->kind != OP_TOUCH))
		return;
	if (m->call.verb == CALL_GAT && sent_for && sent_for->kind == OP_TOUCH &&
		sent_for->ttl != m->call.exptime)
		return;
	TAILQ_FOREACH(op, &w->ops, link) {
		if (op->proxy != m->proxy || !names(op, m->call.key) ||
			!is_from(op, sent_for ? sent_for->account : NULL) ||
			!may_send(op, &m->call))
			continue;
		note(m)->asked = op->number;
		if (op->command != COMMAND_DELETE && op->touches) {
			note(m)->unclear = true;
			continue;
		}
		op->touches = true;
		return;
	}
}

static bool is_touch_in_flight(const struct sim_op *op, int i)
{
	const struct sim_op *other;
	char key[SIM_KEY_SIZE];

	TAILQ_FOREACH(other, &op->world->ops, link) {
		if (other != op && names(other, key_of(i, key)) &&
			(other->command == COMMAND_TOUCH || other->command == COMMAND_GAT))
			return true;
	}
	return false;
}

/* After an acknowledged touch, the base has its date, or a later one, and expires then. */
static void check_touch(const struct sim_op *op)
{
	struct world *w = op->world;
	int i = op->list ? SIM_KEYS + op->list->list : op->key;
	const struct life *life = &w->lives[i];
	const struct memcached_item *item = find(w, i);
	int64_t date;

	if (!item || op->touched_empty || life->made >= op->issued || life->stray >= op->issued)
		return;
	/* Of concurrent touches, the item may keep that of a proxy that could not complete it. */
	if (life->last > op->issued && life->last_by != op->number)
		return;
	if (!dates_of(item, &date))
		world_fail(w, "a touch is acknowledged, but its date is not in the base",
			"base %d: client %d", i, op->client);
	else if (is_near(date, op->ends) && !is_touch_in_flight(op, i) &&
		(life->bare < op->issued || op->command == COMMAND_GAT) &&
		!is_near(item->expires, date))
		world_fail(w, "a touch is acknowledged, and undone",
			"base %d expires %lld, not %lld", i, (long long)item->expires,
			(long long)date);
}

void lives_reply(const struct sim_op *op)
{
	bool touches = op->command == COMMAND_TOUCH && check_says(op, "TOUCHED");

	if (is_off(op->world))
		return;
	if (touches && !op->touched)
		world_fail(op->world, "a touch is acknowledged, but not done", "client %d",
			op->client);
	else if (touches || (op->command == COMMAND_GAT && op->touched && check_says(op, "VALUE")))
		check_touch(op);
}

/* --- the end --- */

void lives_end(struct world *w)
{
	for (int i = 0; i < LIVES && !is_off(w); i++)
		check(w, i);
}
