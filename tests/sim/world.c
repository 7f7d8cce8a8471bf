#include "world.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "collection/machines.h"
#include "lists.h"
#include "stored_set.h"
#include "util/alloc.h"
#include "util/random.h"

enum { STEPS = 160, EVENTS_MAX = 100000, ITEM_MAX = 1500, LONG_TIME = 180000 /* milliseconds */ };

/* Small and large tables, and bases that are read anew or, when they are large, asked about. By the seed. */
static const struct collection_options options[] = {
	{ .base_size = 96, .segment_size = 120, .log_size = 96, .table_size = 120, .cache = 4096, .merges = 2 },
	{ .base_size = 96, .segment_size = 120, .log_size = 48, .table_size = 60, .cache = 3000, .merges = 2 },
	{ .base_size = 96, .segment_size = 120, .log_size = 320, .table_size = 120, .cache = 1 << 16, .merges = 2 },
};

void world_fail(struct world *w, const char *what, const char *format, ...)
{
	va_list ap;

	if (w->violation)
		return;
	w->violation = what;
	va_start(ap, format);
	vsnprintf(w->detail, sizeof(w->detail), format, ap);
	va_end(ap);
}

uint64_t world_random(struct world *w, uint64_t below)
{
	return random_next(&w->random) % below;
}

bool world_chance(struct world *w, unsigned percent)
{
	return world_random(w, 100) < percent;
}

/* --- the network --- */

static struct slice keep(struct buf *bytes, size_t *at, struct slice s)
{
	struct slice copy = slice_of(bytes->data + *at, s.n);

	if (s.n)
		memcpy(bytes->data + *at, s.p, s.n);
	*at += s.n;
	return copy;
}

int world_server(struct slice key)
{
	unsigned sum = 0;

	for (size_t i = 0; i < key.n; i++)
		sum += (unsigned char)key.p[i];
	return (int)(sum % SIM_SERVERS);
}

struct fake_item *world_find(struct world *w, struct slice key)
{
	return fake_find(&w->servers[world_server(key)], key, w->now);
}

/* What the daemon's upstream does before it sends: an id of another connection is no longer worth
 * anything. */
static bool is_stale(const struct proxy *p, const struct call *call, int server)
{
	return call->verb == CALL_CAS && call->connection && call->connection != p->connections[server].id;
}

/* How long a call takes to its server. Where a cas is to be caught by a restart, it takes its time. */
static uint64_t delay(struct world *w, const struct call *call)
{
	if (w->mutation == MUTATION_STALE_CAS && call->verb == CALL_CAS)
		return world_random(w, 60);
	return world_chance(w, 5) ? world_random(w, 40) : world_random(w, 3);
}

static void send_call(struct env *env, const struct call *call, struct waiter *waiter)
{
	struct proxy *p = (struct proxy *)env;
	struct world *w = p->world;
	struct message *m = xcalloc(1, sizeof(*m));
	struct connection *c;
	size_t at = 0;

	m->proxy = p;
	m->waiter = waiter;
	m->call = *call;
	m->server = world_server(call->key);
	buf_reserve(&m->bytes, call->key.n + call->value.n + 1);
	m->call.key = keep(&m->bytes, &at, call->key);
	m->call.value = keep(&m->bytes, &at, call->value);
	c = &p->connections[m->server];
	c->last = m->at = (c->last > w->now ? c->last : w->now) + delay(w, call);
	if (p->dead || is_stale(p, call, m->server)) {
		m->executed = true;
		m->result = (struct result){ .status = p->dead ? RESULT_UNAVAILABLE : RESULT_EXISTS, .server = "sim" };
	}
	if (w->form)
		form_sent(w, m);
	mutate_sent(w, m);
	TAILQ_INSERT_TAIL(&w->messages, m, link);
}

static void call_later(struct env *env, struct waiter *waiter, unsigned ms)
{
	struct proxy *p = (struct proxy *)env;
	struct message *m = xcalloc(1, sizeof(*m));

	*m = (struct message){ .proxy = p, .waiter = waiter, .server = -1, .at = p->world->now + ms, .executed = true };
	TAILQ_INSERT_TAIL(&p->world->messages, m, link);
}

static void free_message(struct world *w, struct message *m)
{
	TAILQ_REMOVE(&w->messages, m, link);
	buf_free(&m->bytes);
	buf_free(&m->value);
	free(m);
}

static void give_result(struct world *w, struct message *m)
{
	struct waiter *waiter = m->waiter;
	struct result r = m->result;
	struct buf value = m->value;

	m->value = BUF_EMPTY;
	if (buf_size(&value))
		r.value = buf_slice(&value);
	r.server = "sim";
	if (!m->proxy) {
		free_message(w, m);
		return;
	}
	if (m->server >= 0)
		r.connection = m->proxy->connections[m->server].id;
	m->proxy->host.env.now = w->now;
	m->proxy->host.env.unix_time = (int64_t)(w->now / 1000);
	free_message(w, m);
	waiter->done(waiter, &r);
	buf_free(&value);
}

/* The write of a segment is taken for done while it is still under way; it may be lost with its
 * connection. */
static void acknowledge_early(struct world *w, struct message *m)
{
	struct message *ack;

	if (!mutate_acks_early(w, m))
		return;
	ack = xcalloc(1, sizeof(*ack));
	*ack = (struct message){
		.proxy = m->proxy, .waiter = m->waiter, .server = m->server, .at = w->now, .executed = true
	};
	ack->result.status = RESULT_DONE;
	m->proxy = NULL;
	m->at += 5 + world_random(w, 20);
	m->fails = world_chance(w, 20);
	TAILQ_INSERT_TAIL(&w->messages, ack, link);
}

static void execute(struct world *w, struct message *m)
{
	if (m->fails) {
		free_message(w, m);
		return;
	}
	mutate_execute(w, m);
	if (w->form)
		form_execute(w, m);
	else
		check_execute(w, m);
	mutate_executed(w, m);
	if (w->verbose)
		printf("%6llu P%d server %d verb %d want %u %.*s value %.*s -> %d\n", (unsigned long long)w->now,
			m->proxy ? (int)(((size_t)m->proxy >> 4) % 1000) : -1, m->server, (int)m->call.verb,
			m->call.want, (int)m->call.key.n, m->call.key.p, (int)(m->call.value.n + m->result.value.n),
			m->result.value.n ? m->result.value.p : m->call.value.p, (int)m->result.status);
	m->executed = true;
	buf_add_slice(&m->value, m->result.value);
	/* The way back is as long. Replies of a connection stay in order since calls were executed
	 * in order. */
	if (!m->proxy) {
		free_message(w, m);
		return;
	}
	struct connection *c = &m->proxy->connections[m->server];
	m->at = w->now + world_random(w, 3);
	(void)c;
}

static struct message *next_message(const struct world *w)
{
	struct message *m, *first = NULL;

	TAILQ_FOREACH(m, &w->messages, link) {
		if (!first || m->at < first->at)
			first = m;
	}
	return first;
}

/* Replies come back in order: one may not overtake another of its connection. */
static bool overtakes(const struct world *w, const struct message *m)
{
	const struct message *other;

	TAILQ_FOREACH(other, &w->messages, link) {
		if (other == m)
			return false;
		if (other->proxy && other->proxy == m->proxy && other->server == m->server)
			return true;
	}
	return false;
}

/* A cas that waited while the server was away is sent again with the id it had, as if ids outlived
 * a connection. */
static bool sent_again(struct world *w, struct message *m, bool restarted)
{
	if (w->mutation != MUTATION_STALE_CAS || m->call.verb != CALL_CAS || m->executed || !restarted)
		return false;
	m->at += world_random(w, 200);
	return true;
}

/*
 * The connection breaks: what was sent may still be executed, and nobody will hear of it. Nothing
 * is that was sent to a server which is another one now.
 */
static void break_connection(struct world *w, struct proxy *p, int server, bool restarted)
{
	bool sent = true;
	struct message *m, *next;
	TAILQ_HEAD(, message) lost = TAILQ_HEAD_INITIALIZER(lost);

	p->connections[server].id++;
	for (m = TAILQ_FIRST(&w->messages); m; m = next) {
		struct message *copy;
		next = TAILQ_NEXT(m, link);
		if (m->proxy != p || m->server != server || sent_again(w, m, restarted))
			continue;
		copy = xcalloc(1, sizeof(*copy));
		copy->waiter = m->waiter;
		sent = sent && world_chance(w, 70);
		copy->result.status = sent || m->executed ? RESULT_LOST : RESULT_UNAVAILABLE;
		TAILQ_INSERT_TAIL(&lost, copy, link);
		m->proxy = NULL;
		if (!sent || m->executed || restarted || world_chance(w, 50))
			free_message(w, m);
	}
	while ((m = TAILQ_FIRST(&lost))) {
		struct result r = m->result;
		struct waiter *waiter = m->waiter;
		TAILQ_REMOVE(&lost, m, link);
		free(m);
		r.server = "sim";
		waiter->done(waiter, &r);
	}
}

/* --- proxies --- */

static void task_begin(struct task *task)
{
	(void)task;
}

static struct buf *task_reply_buf(struct task *task)
{
	return &((struct sim_op *)task->owner)->reply;
}

static void forget_op(struct sim_op *op)
{
	TAILQ_REMOVE(&op->world->ops, op, link);
	buf_free(&op->reply);
	buf_free(&op->log);
	free(op->list);
	free(op);
}

static void task_ended(struct task *task)
{
	struct sim_op *op = task->owner;

	if (op->world->verbose)
		printf("%6llu client %d key %d %s -> %.*s", (unsigned long long)op->world->now, op->client, op->key,
			task->command->name.p, (int)buf_size(&op->reply), op->reply.data);
	if (!op->proxy->dead && op->world->form)
		form_reply(op);
	else if (!op->proxy->dead)
		(op->list ? lists_reply : check_reply)(op);
	if (!op->world->form && op->command == COMMAND_SSET &&
		(op->proxy->dead || slice_starts(buf_slice(&op->reply), SLICE("SERVER_ERROR"))))
		op->ended = true;
	else
		forget_op(op);
	task_free(task);
}

/* The requests of one client keep their order, each of which is an owner of its own here. */
static const void *client_of(const void *owner)
{
	const struct sim_op *op = owner;

	return op->world->mutation == MUTATION_LATE_READ ? owner : &op->world->client_proxy[op->client];
}

static struct proxy *new_proxy(struct world *w)
{
	struct proxy *p = xcalloc(1, sizeof(*p));

	p->world = w;
	p->host = (struct host){
		.env = {
			.call = send_call,
			.later = call_later,
			.now = w->now,
			.unix_time = (int64_t)(w->now / 1000),
			.random = random_next(&w->random),
			.seed = random_next(&w->random),
			.servers = SIM_SERVERS,
			.rules = &w->rules,
			.options = w->options,
			.pool = &p->pool,
		},
		.begin = task_begin,
		.reply = task_reply_buf,
		.client = client_of,
		.done = task_ended,
	};
	p->host.lanes = lanes_create(&p->host.env, &machines);
	for (int i = 0; i < SIM_SERVERS; i++)
		p->connections[i].id = 1;
	return p;
}

static void free_proxy(struct proxy *p)
{
	const struct lanes_stats *s = lanes_statistics(p->host.lanes);

	p->world->compactions += s->compactions;
	p->world->merges += s->merges;
	p->world->incomplete += s->incomplete_sets;
	if (!lanes_idle(p->host.lanes)) {
		world_fail(p->world, "something never ended", "a lane or a merge is still there");
		return;
	}
	lanes_destroy(p->host.lanes);
	pool_free(&p->pool);
	for (int key = 0; key < SIM_KEYS; key++)
		buf_free(&p->views[key]);
	free(p);
}

/* All that was under way is over for it; what it had sent may still arrive. */
static void kill_proxy(struct world *w, int index)
{
	struct proxy *p = w->proxies[index];
	struct message *m;

	p->dead = true;
	lists_proxy_dies(w, p);
	for (int i = 0; i < SIM_SERVERS; i++)
		break_connection(w, p, i, false);
	for (bool more = true; more;) {
		more = false;
		TAILQ_FOREACH(m, &w->messages, link) {
			if (m->proxy == p) {
				give_result(w, m);
				more = true;
				break;
			}
		}
	}
	free_proxy(p);
	w->proxies[index] = new_proxy(w);
}

/* --- what goes wrong --- */

/* Something may have gone. */
static void look(struct world *w)
{
	if (w->form)
		form_time(w);
	else
		check_time(w);
}

static void evict(struct world *w)
{
	struct fake *fake = &w->servers[world_random(w, SIM_SERVERS)];
	size_t at = world_random(w, FAKE_ITEMS), seen;

	for (seen = 0; seen < FAKE_ITEMS && !fake->items[at].used; seen++)
		at = (at + 1) % FAKE_ITEMS;
	if (fake->items[at].used)
		fake_remove(&fake->items[at]);
	w->evictions++;
	look(w);
}

static void restart_server(struct world *w)
{
	int server = (int)world_random(w, SIM_SERVERS);

	fake_restart(&w->servers[server]);
	w->evictions++;
	look(w);
	for (int i = 0; i < SIM_PROXIES; i++)
		break_connection(w, w->proxies[i], server, true);
}

/* Servers restart more often at first, while cas ids are small: then the new ones soon meet the old. */
static void trouble(struct world *w, int step)
{
	int proxy = (int)world_random(w, SIM_PROXIES), client;
	uint64_t dice = world_random(w, 1000);

	if (dice < 12) {
		break_connection(w, w->proxies[proxy], (int)world_random(w, SIM_SERVERS), false);
	} else if (dice < 16) {
		kill_proxy(w, proxy);
		for (client = 0; client < SIM_CLIENTS; client++) {
			if (w->client_proxy[client] == proxy)
				w->client_proxy[client] = (int)world_random(w, SIM_PROXIES);
		}
	} else if (dice < 19) {
		evict(w);
	} else if (dice < (step < STEPS / 4 ? 50 : 22)) {
		restart_server(w);
	}
}

/* --- a history --- */

static void one_event(struct world *w)
{
	struct message *m = next_message(w);

	if (m->at > w->now)
		w->now = m->at;
	if (!m->executed) {
		acknowledge_early(w, m);
		if (m->at <= w->now)
			execute(w, m);
	} else if (overtakes(w, m)) {
		m->at = w->now + 1;
	} else {
		give_result(w, m);
	}
}

static void settle(struct world *w)
{
	for (int events = 0; !TAILQ_EMPTY(&w->messages) && !w->violation; events++) {
		one_event(w);
		if (events > EVENTS_MAX)
			world_fail(w, "it does not come to an end", "after %d events", events);
	}
}

/* In the end each proxy must read just what is true. */
static void final_reads(struct world *w)
{
	for (int i = 0; i < SIM_PROXIES; i++) {
		for (int key = 0; key < SIM_KEYS; key++) {
			clients_issue(w, w->proxies[i], 0, key, COMMAND_SMEMBERS);
			settle(w);
		}
		for (int list = 0; list < SIM_LISTS && !w->form; list++) {
			clients_issue(w, w->proxies[i], 0, list, COMMAND_LRANGE);
			settle(w);
		}
	}
	lists_end(w);
}

static void tear_down(struct world *w)
{
	struct sim_op *op;

	while (!TAILQ_EMPTY(&w->messages))
		free_message(w, TAILQ_FIRST(&w->messages));
	for (int i = 0; i < SIM_PROXIES; i++)
		free_proxy(w->proxies[i]);
	while ((op = TAILQ_FIRST(&w->ops)))
		forget_op(op);
	for (int i = 0; i < SIM_SERVERS; i++)
		fake_restart(&w->servers[i]);
	truth_fini(&w->truth);
	lists_fini(w);
	stored_set_fini(w);
}

bool world_run(struct world *w, const struct form *form, uint64_t seed, enum mutation mutation, bool verbose)
{
	memset(w, 0, sizeof(*w));
	w->form = form;
	w->now = 1000000;
	w->random = seed;
	w->mutation = mutation;
	w->options = &options[seed % (sizeof(options) / sizeof(*options))];
	w->verbose = verbose;
	if (form)
		w->rules = (struct rules){ .collections = &form->rule, .collection_count = 1 };
	TAILQ_INIT(&w->messages);
	TAILQ_INIT(&w->ops);
	truth_init(&w->truth);
	lists_init(w);
	for (int i = 0; i < SIM_SERVERS; i++)
		w->servers[i].item_max = ITEM_MAX;
	for (int i = 0; i < SIM_PROXIES; i++)
		w->proxies[i] = new_proxy(w);
	for (int i = 0; i < SIM_CLIENTS; i++)
		w->client_proxy[i] = i % SIM_PROXIES;
	for (int step = 0; step < STEPS && !w->violation; step++) {
		clients_act(w);
		for (uint64_t n = world_random(w, 30); n > 0 && !TAILQ_EMPTY(&w->messages) && !w->violation; n--)
			one_event(w);
		trouble(w, step);
		if (world_chance(w, 3))
			w->now += world_random(w, world_chance(w, 5) ? LONG_TIME : 1500);
	}
	settle(w);
	if (!w->violation)
		final_reads(w);
	tear_down(w);
	return !w->violation;
}
