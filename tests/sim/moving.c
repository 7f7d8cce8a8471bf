#include "moving.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "collection/move/mark.h"
#include "util/alloc.h"
#include "util/random.h"
#include "wording.h"
#include "world.h"

enum {
	EVENTS_MAX = 200000,
	ITEM_MAX = 1500,
	WIDE_ITEM_MAX = 60000,
	/* milliseconds from the first proxy with a change to the time of the move */
	BEFORE = 10000,
	RELOADS = 5000, /* all proxies have it */
	BEHIND = 3000,  /* and clients continue for this long after the time */
	ROUNDS = 4      /* of the tool */
};

void moving_fail(struct moving *w, const char *what, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	histories_fail(&w->violation, w->detail, sizeof(w->detail), what, format, ap);
	va_end(ap);
}

uint64_t moving_random(struct moving *w, uint64_t below)
{
	return lan_random(&w->lan, below);
}

bool moving_chance(struct moving *w, unsigned percent)
{
	return moving_random(w, 100) < percent;
}

uint64_t moving_now(const struct moving *w)
{
	return lan_ms(&w->lan);
}

/* --- faults --- */

static void lose(struct moving *w, int key)
{
	struct moving_op *op = moving_note(w, key);

	if (op)
		op->lost = true;
	moving_dated_lost(&w->keys[key]);
}

/*
 * A proxy may have a part in memory that is missing, and another one not: then their replies
 * differ.
 */
static void spoil(struct moving *w, int key)
{
	w->keys[key].spoiled = true;
}

static int key_of_item(const struct moving *w, struct slice item, bool *is_part)
{
	return moving_find_key(w, moving_base(item, is_part));
}

static void evict(struct moving *w)
{
	struct memcached_item *item = lan_any_item(&w->lan);
	bool is_part;
	int key;

	if (!item)
		return;
	key = key_of_item(w, buf_slice(&item->key), &is_part);
	if (key >= 0)
		(is_part ? spoil : lose)(w, key);
	memcached_remove(item);
}

/* Whether the new server has the item of the call, which another server had before the time, and a guard must expect claims. */
static bool may_be_claimed(
	struct moving *w, const struct message *m, const struct memcached_item *item)
{
	enum { AFTER = 1000 /* milliseconds; with the error of a clock, less than the margin */ };
	const struct moving_config *c = m->proxy ? &moving_generation(m)->config : NULL;
	uint64_t at = c ? (uint64_t)c->at * 1000 : 0, now = moving_now(w);
	int former;

	if (!c || !c->moves || now < at || now >= at + AFTER || !item || item->flags == MARK_FLAGS)
		return false;
	former = moving_place(&c->former, m->call.key);
	return m->server == moving_place(&c->ring, m->call.key) && m->server != former &&
		!moving_item(w, former, m->call.key);
}

/* Bugs of guards show only where a claim is late, which is rare. */
static bool is_of_guards(const struct moving *w)
{
	return w->mutation == MOVING_BLIND_GUARD || w->mutation == MOVING_UNSEEN_CLAIM;
}

void moving_lose_to_claim(struct moving *w, const struct message *m)
{
	bool meets = m->call.verb != CALL_GET || w->mutation == MOVING_UNSEEN_CLAIM;
	int key = w->losses && meets ? moving_find_key(w, m->call.key) : -1;
	struct memcached_item *item = key < 0 ? NULL : moving_item(w, m->server, m->call.key);
	struct call claim = {
		.verb = CALL_ADD, .key = m->call.key, .flags = MARK_FLAGS, .exptime = 60
	};
	struct buf text = BUF_EMPTY;

	if (!may_be_claimed(w, m, item) || w->keys[key].claimed ||
		!moving_chance(w, is_of_guards(w) ? 80 : 10))
		return;
	memcached_remove(item);
	lose(w, key);
	mark_add_claim(&text, m->call.key);
	claim.value = buf_slice(&text);
	(void)memcached_call(&w->lan.servers[m->server], &claim, moving_now(w));
	w->keys[key].claimed = true;
	buf_free(&text);
}

static void restart(struct moving *w)
{
	int server = (int)moving_random(w, MOVING_SERVERS);
	bool lost[MOVING_KEYS] = { false }, is_part;

	for (size_t i = 0; i < MEMCACHED_ITEMS; i++) {
		const struct memcached_item *item = &w->lan.servers[server].items[i];
		int key = item->used ? key_of_item(w, buf_slice(&item->key), &is_part) : -1;
		if (key < 0)
			continue;
		if (is_part)
			spoil(w, key);
		lost[key] = true;
	}
	for (int key = 0; key < MOVING_KEYS; key++) {
		if (lost[key])
			lose(w, key);
	}
	moving_restart(w, server);
}

static void trouble(struct moving *w)
{
	int proxy = (int)moving_random(w, MOVING_PROXIES);
	uint64_t dice = moving_random(w, 1000);

	if (w->losses && dice >= 980)
		(dice < 993 ? evict : restart)(w);
	if (!w->faults || dice >= 16)
		return;
	if (dice < 8) {
		lan_break(&w->proxies[proxy].lan, (int)moving_random(w, MOVING_SERVERS));
		return;
	}
	moving_kill(w, proxy);
	for (int client = 0; client < MOVING_CLIENTS && !w->stale; client++) {
		if (w->clients[client].proxy == proxy)
			w->clients[client].proxy = (int)moving_random(w, MOVING_PROXIES);
	}
}

/* --- time --- */

static const uint64_t FOREVER = UINT64_MAX;

/* Delivers everything that arrives until then. */
static void run_until(struct moving *w, uint64_t time)
{
	uint64_t next;

	for (int events = 0;
		(next = lan_next(&w->lan)) != FOREVER && next / 1000 <= time && !w->violation;
		events++) {
		lan_step(&w->lan);
		if (events > EVENTS_MAX)
			moving_fail(w, "it does not come to an end", "after %d events", events);
	}
	if (moving_now(w) < time && time != FOREVER)
		w->lan.now = time * 1000;
	for (int i = 0; i < MOVING_PROXIES; i++)
		moving_retire(&w->proxies[i]);
}

static void settle(struct moving *w)
{
	run_until(w, FOREVER);
}

/* --- rings --- */

/* Some servers, some of them with more weight. */
static struct moving_ring make_ring(struct moving *w)
{
	struct moving_ring ring = { .hash = random_next(&w->lan.random) };
	int servers = 1 + (int)moving_random(w, 4), first = (int)moving_random(w, MOVING_SERVERS);

	for (int i = 0; i < servers; i++) {
		int weight = moving_chance(w, 20) ? 2 : 1;
		while (weight-- > 0 && ring.count < MOVING_RING)
			ring.servers[ring.count++] = (first + i) % MOVING_SERVERS;
	}
	return ring;
}

/* One server more, one less, other weights, other servers, or another distribution. */
static struct moving_ring change_ring(struct moving *w, const struct moving_ring *old)
{
	struct moving_ring ring = *old;
	int server = (int)moving_random(w, MOVING_SERVERS);

	switch (moving_random(w, 5)) {
	case 0:
		if (ring.count < MOVING_RING)
			ring.servers[ring.count++] = server;
		return ring;
	case 1:
		if (ring.count > 1)
			ring.count--;
		return ring;
	case 2:
		for (int i = 0; i < ring.count; i++)
			ring.servers[i] = (ring.servers[i] + 1 + server % (MOVING_SERVERS - 1)) %
				MOVING_SERVERS;
		return ring;
	case 3:
		ring.hash++;
		return ring;
	default:
		return make_ring(w);
	}
}

static const struct moving_config *change_of(const struct moving *w, int change)
{
	return &w->configs[2 * change + 1];
}

static void plan_changes(struct moving *w, int changes)
{
	struct moving_ring ring = make_ring(w);

	w->configs[0] = (struct moving_config){ .ring = ring };
	for (int i = 0; i < changes; i++) {
		struct moving_ring next = change_ring(w, &ring);
		w->configs[2 * i + 1] =
			(struct moving_config){ .former = ring, .ring = next, .moves = true };
		w->configs[2 * i + 2] = (struct moving_config){ .ring = next };
		ring = next;
	}
}

/* --- the tool, which has everything used once --- */

/* Returns whether the item, or the set that it is a part of, has another server now. */
static bool is_moving(const struct moving_config *c, struct slice item)
{
	bool is_part;
	struct slice base = moving_base(item, &is_part);

	return moving_place(&c->former, base) != moving_place(&c->ring, base) ||
		moving_place(&c->former, item) != moving_place(&c->ring, item);
}

/* A part of a moved set may be left over. */
static bool is_left(const struct moving_config *c, int server, struct slice item)
{
	bool is_part;
	struct slice base = moving_base(item, &is_part);

	if (is_part && moving_place(&c->former, base) != moving_place(&c->ring, base))
		return false;
	return server == moving_place(&c->former, item) && server != moving_place(&c->ring, item);
}

static struct memcached_item *item_at(struct moving *w, int server, size_t i)
{
	struct memcached_item *item = &w->lan.servers[server].items[i];

	return item->used ? moving_item(w, server, buf_slice(&item->key)) : NULL;
}

static bool has_left(struct moving *w, const struct moving_config *c)
{
	for (int server = 0; server < MOVING_SERVERS; server++) {
		for (size_t i = 0; i < MEMCACHED_ITEMS; i++) {
			const struct memcached_item *item = item_at(w, server, i);
			if (item && is_left(c, server, buf_slice(&item->key)))
				return true;
		}
	}
	return false;
}

/* Gets all items that have another server now. */
static void use_all(struct moving *w, const struct moving_config *c)
{
	for (int server = 0; server < MOVING_SERVERS; server++) {
		for (size_t i = 0; i < MEMCACHED_ITEMS && !w->violation; i++) {
			const struct memcached_item *item = item_at(w, server, i);
			if (!item || !is_moving(c, buf_slice(&item->key)))
				continue;
			moving_get(w, (int)moving_random(w, MOVING_PROXIES), buf_slice(&item->key));
			if (moving_chance(w, 20))
				settle(w);
		}
	}
	settle(w);
}

static void sweep(struct moving *w, const struct moving_config *c)
{
	use_all(w, c);
	for (int round = 1; round < ROUNDS && has_left(w, c) && !w->violation; round++) {
		run_until(w, moving_now(w) + MOVES_LOOK_MS + 1);
		use_all(w, c);
	}
}

/*
 * Two logs that are too large for one item cannot be joined. Then data that only the former server
 * has is missing at the end.
 */
static bool cannot_be_joined(
	struct moving *w, const struct moving_ring *ring, const struct memcached_item *item)
{
	struct slice name = buf_slice(&item->key);
	const struct memcached_item *here = moving_item(w, moving_place(ring, name), name);
	int key = moving_find_key(w, name);

	if (!w->stale || !here || key < 0 || w->keys[key].kind > MOVING_LIST_KEY ||
		buf_size(&item->value) + buf_size(&here->value) <=
			(wording_is_plain() ? ITEM_MAX : WIDE_ITEM_MAX))
		return false;
	spoil(w, key);
	return true;
}

/*
 * Parts without a base may be on any server. Everything else is on its server in the ring, and no
 * mark is left.
 */
static void check_places(struct moving *w, const struct moving_ring *ring)
{
	for (int server = 0; server < MOVING_SERVERS; server++) {
		for (size_t i = 0; i < MEMCACHED_ITEMS; i++) {
			const struct memcached_item *item = item_at(w, server, i);
			struct slice key;
			bool is_part;
			if (!item)
				continue;
			key = buf_slice(&item->key);
			(void)moving_base(key, &is_part);
			if (!is_part && server != moving_place(ring, key) &&
				!cannot_be_joined(w, ring, item))
				moving_fail(w, "an item is left on a former server", "%.*s",
					(int)key.n, key.p);
			if (mark_read(key, item->flags, buf_slice(&item->value)).kind != MARK_NONE)
				moving_fail(w, "a mark is left", "%.*s", (int)key.n, key.p);
		}
	}
}

/* --- a change --- */

/* A change of the ring, step by step. */
struct ring_change {
	const struct moving_config *config;
	size_t number; /* of its first configuration */
	uint64_t start, reload[2][MOVING_PROXIES];
	int commands;
};

static int any_client(struct moving *w)
{
	int client = (int)moving_random(w, MOVING_CLIENTS);

	for (int i = 0; i < MOVING_CLIENTS; i++, client = (client + 1) % MOVING_CLIENTS) {
		if (!w->clients[client].busy)
			return client;
	}
	return -1;
}

/* Most commands are sent near the time. */
static uint64_t time_of_command(struct moving *w)
{
	uint64_t dice = moving_random(w, 100);

	if (dice < 35)
		return moving_random(w, BEFORE);
	return dice < 85 ? BEFORE - 2800 + moving_random(w, 3800)
			 : BEFORE + moving_random(w, BEHIND);
}

static int compare_times(const void *a, const void *b)
{
	uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

	return first < second ? -1 : first > second;
}

/*
 * A proxy that had the previous change, and still has the former ring, may get this one
 * immediately.
 */
static void reload(struct moving *w, struct ring_change *c)
{
	for (int i = 0; i < MOVING_PROXIES; i++) {
		for (size_t n = 0; n < 2; n++) {
			if (moving_now(w) < c->reload[n][i] ||
				w->proxies[i].config >= c->number + n)
				continue;
			moving_configure(&w->proxies[i], c->number + n);
		}
	}
}

static void use_some(struct moving *w)
{
	const struct memcached_item *item = item_at(
		w, (int)moving_random(w, MOVING_SERVERS), moving_random(w, MEMCACHED_ITEMS));

	if (item)
		moving_get(w, (int)moving_random(w, MOVING_PROXIES), buf_slice(&item->key));
}

static void run_commands(struct moving *w, struct ring_change *c)
{
	uint64_t times[512];
	int client;

	for (int i = 0; i < c->commands; i++)
		times[i] = c->start + time_of_command(w);
	qsort(times, (size_t)c->commands, sizeof(*times), compare_times);
	for (int i = 0; i < c->commands && !w->violation; i++) {
		run_until(w, times[i]);
		reload(w, c);
		client = any_client(w);
		if (client >= 0)
			moving_act(w, client);
		if (moving_now(w) > c->start + BEFORE)
			use_some(w);
		trouble(w);
	}
	run_until(w, c->start + BEFORE + BEHIND);
	reload(w, c);
}

/* The proxy with the old configuration gets the new one, and the wrong clock is set. */
static void remember(struct moving *w, struct ring_change *c)
{
	for (int i = 0; i < MOVING_PROXIES; i++) {
		w->proxies[i].lan.skew = w->proxies[i].lan.skew > MOVING_APART ||
				w->proxies[i].lan.skew < -MOVING_APART
			? 0
			: w->proxies[i].lan.skew;
		lan_set_clock(&w->proxies[i].lan);
		if (w->proxies[i].config < c->number + 1)
			moving_configure(&w->proxies[i], c->number + 1);
	}
	settle(w);
	run_until(w, moving_now(w) + MOVES_LOOK_MS + 1);
}

static void run_change(struct moving *w, int number, int commands)
{
	struct ring_change c = {
		.config = change_of(w, number), .number = 2 * (size_t)number, .commands = commands
	};

	c.start = (moving_now(w) / 1000 + 1) * 1000;
	w->lan.now = c.start * 1000;
	w->configs[c.number + 1].at = (int64_t)((c.start + BEFORE) / 1000);
	for (int i = 0; i < MOVING_PROXIES; i++) {
		c.reload[0][i] = c.start + moving_random(w, RELOADS);
		c.reload[1][i] =
			c.reload[0][i] + moving_random(w, c.start + RELOADS - c.reload[0][i] + 1);
		if (i == w->forgotten)
			c.reload[1][i] = UINT64_MAX;
	}
	for (int key = 0; key < MOVING_KEYS; key++) {
		struct slice name = slice_of(w->keys[key].name, strlen(w->keys[key].name));
		struct moving_op *op = w->keys[key].kind >= MOVING_TEXT && is_moving(c.config, name)
			? moving_note(w, key)
			: NULL;
		if (op)
			op->moved = true;
	}
	run_commands(w, &c);
	settle(w);
	if (w->stale)
		remember(w, &c);
	if (!w->violation)
		sweep(w, c.config);
	if (!w->violation)
		check_places(w, &c.config->ring);
}

/* --- the end --- */

static bool knows_ring(const struct moving *w, int client)
{
	return w->forgotten >= 0 && client % MOVING_PROXIES != w->forgotten;
}

/*
 * Returns whether the set must have the last word of the member's only writer. The words of the
 * new server decide about their members. So an addition on the former server is lost if the new
 * one still has an older removal. A removal is lost if the proxy with the old configuration
 * creates a new set on the former server, where a compaction drops it.
 */
static bool must_show(const struct moving *w, const struct moving_key *k, int member)
{
	int client = member % MOVING_CLIENTS;

	if (knows_ring(w, client))
		return !k->contested[member] || k->on_new[member];
	return k->words[member] == 1 && !k->removed[member] && !k->contested[member];
}

/* Data that no client can have changed since the reply to its writer. */
static void check_words(struct moving *w, const struct moving_op *op)
{
	const struct moving_key *k = &w->keys[op->key];
	struct slice elements = slice_of("", 0);

	if (k->kind == MOVING_COUNTER && op->got.number < k->counted)
		moving_fail(w, "events were lost", "%s: %llu of %llu", k->name,
			(unsigned long long)op->got.number, (unsigned long long)k->counted);
	for (int m = 0; k->kind == MOVING_SET && m < MOVING_MEMBERS; m++) {
		bool in = op->got.mask & UINT64_C(1) << m;
		if (must_show(w, k, m) && ((k->words[m] == 1 && !in) || (k->words[m] == -1 && in)))
			moving_fail(w, in ? "what was removed came back" : "a member was lost",
				"%s: member%02d", k->name, m);
	}
	if (k->kind == MOVING_LIST_KEY && op->got.text)
		elements = moving_text_of(w, op->got.text);
	for (int e = 1; k->kind == MOVING_LIST_KEY && e < 256; e++) {
		if (k->words[MOVING_MEMBERS + e] == 1 &&
			(!elements.n || !memchr(elements.p, e, elements.n)))
			moving_fail(w, "an element was lost", "%s: e%03d", k->name, e);
	}
}

/* The item that the last ring finds, and how long it lives. */
static void note_end(struct moving *w, int key, const struct moving_ring *ring)
{
	struct slice name = slice_of(w->keys[key].name, strlen(w->keys[key].name));
	const struct memcached_item *item = moving_item(w, moving_place(ring, name), name);
	struct moving_op *op = moving_note(w, key);

	if (!op)
		return;
	op->final = true;
	op->replied = ++w->tick;
	op->got.is_number = item != NULL;
	if (item && item->expires)
		op->got.number = (uint64_t)(item->expires - (int64_t)(moving_now(w) / 1000));
}

/* Long after the last command, each proxy reads all sets. */
static void check_expired(struct moving *w)
{
	run_until(w, moving_now(w) + MOVING_LIFE * 1000);
	for (int i = 0; i < MOVING_PROXIES && !w->violation; i++) {
		w->clients[0].proxy = i;
		for (int key = 0; key < MOVING_KEYS && !w->violation; key++) {
			struct moving_key *k = &w->keys[key];
			if (k->kind != MOVING_SET)
				continue;
			/* Its commands were checked. */
			k->count = 0;
			moving_read(w, 0, key);
			settle(w);
			if (k->count && k->ops[0]->got.mask)
				moving_fail(w, "members have not expired", "%s: %llx", k->name,
					(unsigned long long)k->ops[0]->got.mask);
		}
	}
}

/* All proxies have only the last ring, and each reads everything. */
static void end(struct moving *w, size_t last)
{
	for (int i = 0; i < MOVING_PROXIES; i++)
		moving_configure(&w->proxies[i], last);
	for (int i = 0; i < MOVING_PROXIES && !w->violation; i++) {
		w->clients[0].proxy = i;
		for (int key = 0; key < MOVING_KEYS && !w->violation; key++) {
			struct moving_key *k = &w->keys[key];
			size_t count = k->count;
			moving_read(w, 0, key);
			settle(w);
			if (w->stale && k->count > count)
				check_words(w, k->ops[count]);
		}
	}
	for (int key = 0; key < MOVING_KEYS && !w->violation; key++) {
		if (w->stale && (w->forgotten < 0 || w->keys[key].kind < MOVING_TEXT))
			continue;
		if (!w->faults && !w->losses && !w->stale)
			note_end(w, key, &w->configs[last].ring);
		moving_check_key(w, key);
	}
	if (w->expires && !w->violation)
		check_expired(w);
}

static void tear_down(struct moving *w)
{
	struct moving_op *op;

	for (int i = 0; i < MOVING_PROXIES && !w->violation; i++)
		moving_stop_proxy(&w->proxies[i]);
	while ((op = TAILQ_FIRST(&w->ops)))
		moving_free_op(op);
	lan_fini(&w->lan);
	for (size_t i = 0; i < w->text_count; i++)
		buf_free(&w->texts[i].bytes);
	free(w->texts);
	for (int i = 0; i < MOVING_PROXIES; i++) {
		for (int key = 0; key < MOVING_KEYS; key++)
			buf_free(&w->seen[i][key].value);
	}
}

static void choose(struct moving *w, uint64_t seed)
{
	struct collection_rule *rule;

	w->stale = seed % 4 == 3;
	w->faults = seed % 3 != 0;
	w->losses = !w->stale && (seed % 5 == 0 || is_of_guards(w));
	w->forgotten = w->stale && seed % 8 == 3 ? (int)moving_random(w, MOVING_PROXIES) : -1;
	w->options = *world_sizes(seed);
	/* A stake takes the whole set. */
	w->options.block = 0;
	rule = &w->own_rules[0];
	*rule = rules_default_collection;
	rule->prefix = SLICE("");
	rule->spread = seed % 3 == 1 ? 2 + (unsigned)moving_random(w, 3) : 1;
	w->own_rules[1] = *rule;
	w->own_rules[1].prefix = SLICE("s");
	w->own_rules[1].member_ttl = MOVING_LIFE;
	w->expires = seed / 3 % 3 == 1 || w->mutation == MOVING_MEMBER_DATES;
	w->rules = (struct rules){ .collections = w->own_rules,
		.collection_count = w->expires ? 2 : 1 };
	for (int i = 0; i < MOVING_PROXIES; i++)
		w->proxies[i].lan.skew = (int64_t)moving_random(w, 2 * MOVING_APART) - MOVING_APART;
	if (w->stale && w->forgotten < 0)
		w->proxies[moving_random(w, MOVING_PROXIES)].lan.skew =
			(int64_t)moving_random(w, 16000) - 8000;
}

static void run_world(struct moving *w, uint64_t seed, enum moving_mutation mutation, bool verbose)
{
	int changes;

	memset(w, 0, sizeof(*w));
	w->mutation = mutation;
	wording_begin(seed % 4 != 3, "member00", "s", "e001", "l");
	lan_init(&w->lan, &moving_hooks, w, MOVING_SERVERS,
		wording_is_plain() ? ITEM_MAX : WIDE_ITEM_MAX, seed);
	w->lan.verbose = verbose;
	TAILQ_INIT(&w->ops);
	choose(w, seed);
	changes = w->stale ? 1 : 1 + (int)moving_random(w, MOVING_CHANGES);
	plan_changes(w, changes);
	moving_init_keys(w);
	for (int i = 0; i < MOVING_SERVERS; i++)
		w->lan.servers[i].cas = (uint64_t)i * 1000000;
	for (int i = 0; i < MOVING_PROXIES; i++)
		moving_start_proxy(w, i);
	for (int i = 0; i < MOVING_CLIENTS; i++)
		w->clients[i].proxy = i % MOVING_PROXIES;
	for (int i = 0; i < changes && !w->violation; i++)
		run_change(w, i, 360 / changes);
	if (!w->violation)
		end(w, 2 * (size_t)changes);
	tear_down(w);
}

/* --- many of them --- */

static const char *const mutations[MOVING_MUTATIONS] = {
	"none",
#define MUTATION(name, what) what,
#include "movings.def"
#undef MUTATION
};

static struct verdict run(uint64_t seed, int mutation, bool verbose)
{
	static struct moving world;
	struct moving *w = &world;
	uint64_t spoiled = 0, claimed = 0;

	run_world(w, seed, (enum moving_mutation)mutation, verbose);
	for (int key = 0; key < MOVING_KEYS; key++)
		spoiled += w->keys[key].spoiled, claimed += w->keys[key].claimed;
	return (struct verdict){ w->violation, w->detail,
		{ w->commands, w->failures, w->moved, w->merged, w->waited, spoiled, claimed,
			w->undecided } };
}

static const char *mutation_name(int mutation)
{
	return mutations[mutation];
}

const struct histories moving_histories = { run,
	{ "commands", "failed", "units moved", "merged", "commands waited", "keys lost a part",
		"keys had a late claim", "keys were not decided" },
	mutation_name, MOVING_MUTATIONS };
