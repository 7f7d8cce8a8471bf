#include "world.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "lists.h"
#include "stored_set.h"
#include "util/alloc.h"
#include "util/random.h"

enum { STEPS = 160, EVENTS_MAX = 100000, ITEM_MAX = 1500 };

static const struct collection_options options = {
	.base_size = 96, .segment_size = 120, .log_size = 96, .table_size = 120, .cache = 4096, .merges = 2
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

static bool chance(struct world *w, unsigned percent)
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
	return chance(w, 5) ? world_random(w, 40) : world_random(w, 3);
}

static void send_call(struct host *host, const struct call *call, struct waiter *waiter)
{
	struct proxy *p = (struct proxy *)host;
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

static void call_later(struct host *host, struct waiter *waiter, unsigned ms)
{
	struct proxy *p = (struct proxy *)host;
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
	m->proxy->host.now = w->now;
	m->proxy->host.unix_time = (int64_t)(w->now / 1000);
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
	m->fails = chance(w, 20);
	TAILQ_INSERT_TAIL(&w->messages, ack, link);
}

static void execute(struct world *w, struct message *m)
{
	if (m->fails) {
		free_message(w, m);
		return;
	}
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
		sent = sent && chance(w, 70);
		copy->result.status = sent || m->executed ? RESULT_LOST : RESULT_UNAVAILABLE;
		TAILQ_INSERT_TAIL(&lost, copy, link);
		m->proxy = NULL;
		if (!sent || m->executed || restarted || chance(w, 50))
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

	return &op->world->client_proxy[op->client];
}

static struct proxy *new_proxy(struct world *w)
{
	struct proxy *p = xcalloc(1, sizeof(*p));

	p->world = w;
	p->host = (struct host){
		.call = send_call,
		.later = call_later,
		.begin = task_begin,
		.reply = task_reply_buf,
		.client = client_of,
		.done = task_ended,
		.now = w->now,
		.unix_time = (int64_t)(w->now / 1000),
		.random = random_next(&w->random),
		.seed = random_next(&w->random),
		.servers = SIM_SERVERS,
		.rules = &w->rules,
		.options = &options,
		.pool = &p->pool,
	};
	p->host.lanes = lanes_create(&p->host);
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

/* --- clients --- */

static void add_word(struct buf *line, struct sim_op *op, int member)
{
	char name[16];

	truth_name(member, name);
	buf_printf(line, " %s", name);
	if (op->command != COMMAND_SSET)
		buf_printf(&op->log, "%c%s ", op->command == COMMAND_SREM ? '-' : '+', name);
	op->members[member] = true;
}

/* Keys 0 and 1 have one writer for each member, but that in another encoding than oplog members of key 1 are popped; key 2 is
 * everybody's, and is replaced, popped and given an end. */
static enum command_id choose_command(struct world *w, int key)
{
	static const enum command_id shared[] = { COMMAND_SSET, COMMAND_SPOP, COMMAND_TOUCH, COMMAND_DELETE };
	uint64_t dice = world_random(w, 100);

	if (dice < 40)
		return COMMAND_SADD;
	if (dice < 62)
		return COMMAND_SREM;
	if (dice < 66)
		return COMMAND_SADDX;
	if (dice < 70)
		return COMMAND_SCOMPACT;
	if (w->form && key == 1 && dice < 80)
		return COMMAND_SPOP;
	if (key == 2 && dice < 80)
		return shared[world_random(w, 4)];
	return COMMAND_SMEMBERS;
}

/* Removes all that there may be, so that runs come to nothing. */
static void remove_all(struct sim_op *op, struct buf *line)
{
	for (int m = 0; m < SIM_MEMBERS; m++)
		add_word(line, op, m);
}

static void write_line(struct world *w, struct sim_op *op, struct buf *line)
{
	buf_printf(line, "%s s%d", command_get(op->command)->name.p, op->key);
	switch (op->command) {
	case COMMAND_SADD:
	case COMMAND_SADDX:
	case COMMAND_SREM:
		if (op->key == 2 && op->command == COMMAND_SREM && chance(w, 10)) {
			remove_all(op, line);
			break;
		}
		for (uint64_t n = 1 + world_random(w, 3); n > 0; n--) {
			int own = (int)world_random(w, SIM_OWN);
			int member = op->key == 2 ? (int)world_random(w, SIM_MEMBERS) : op->client * SIM_OWN + own;
			if (!op->members[member])
				add_word(line, op, member);
			if (op->command != COMMAND_SREM)
				w->ever_added[op->key][member] = true;
		}
		break;
	case COMMAND_SSET:
		for (int m = 0; m < SIM_MEMBERS; m++) {
			if (chance(w, 40)) {
				add_word(line, op, m);
				w->ever_added[op->key][m] = true;
			}
		}
		break;
	case COMMAND_TOUCH:
		buf_printf(line, " %d", (int)world_random(w, 3));
		break;
	case COMMAND_SPOP:
		if (op->key == 1)
			buf_printf(line, " %d", 1 + (int)world_random(w, 3));
		break;
	default:
		break;
	}
	BUF_ADD(line, "\r\n");
}

/* Has the line sent of what the operation is; the lines of lists are written by lists.c. */
static void issue(struct world *w, struct proxy *proxy, int client, int key, enum command_id command)
{
	struct request_limits limits = { 1 << 16, 1 << 16, 100 };
	struct sim_op *op = xcalloc(1, sizeof(*op));
	struct buf line = BUF_EMPTY;
	struct request request;
	size_t scanned = 0;

	op->world = w;
	op->proxy = proxy;
	op->client = client;
	op->key = key;
	op->command = command;
	op->issued = w->truth.tick;
	op->number = ++w->commands;
	assert(op->number < SIM_COMMANDS);
	op->before_any = w->last_any[client][key];
	memcpy(op->before, w->last[client][key], sizeof(op->before));
	if (command == COMMAND_LPUSH)
		lists_write_line(w, op, &line);
	else if (command == COMMAND_LRANGE)
		lists_write_read(op, key, &line);
	else
		write_line(w, op, &line);
	for (int m = 0; m < SIM_MEMBERS; m++) {
		if (op->members[m])
			w->last[client][key][m] = w->last_any[client][key] = op->number;
	}
	if (w->verbose)
		printf("%6llu P%d client %d asks %.*s", (unsigned long long)w->now, (int)(((size_t)proxy >> 4) % 1000),
			client, (int)buf_size(&line), line.data);
	TAILQ_INSERT_TAIL(&w->ops, op, link);
	if (w->form)
		form_issued(op);
	proxy->host.now = w->now;
	proxy->host.unix_time = (int64_t)(w->now / 1000);
	if (request_parse(buf_slice(&line), &limits, &scanned, &request) != REQUEST_READY ||
		!task_start(&proxy->host, &request, op))
		world_fail(w, "a request was refused", "%.*s", (int)buf_size(&line), line.data);
	buf_free(&line);
}

static void act(struct world *w)
{
	int client = (int)world_random(w, SIM_CLIENTS);

	for (uint64_t n = 1 + world_random(w, 4); n > 0; n--) {
		int key = (int)world_random(w, SIM_KEYS);
		if (!w->form && chance(w, 40))
			issue(w, w->proxies[w->client_proxy[client]], client, key, COMMAND_LPUSH);
		else
			issue(w, w->proxies[w->client_proxy[client]], client, key, choose_command(w, key));
	}
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
		m->at++;
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
			issue(w, w->proxies[i], 0, key, COMMAND_SMEMBERS);
			settle(w);
		}
		for (int list = 0; list < SIM_LISTS && !w->form; list++) {
			issue(w, w->proxies[i], 0, list, COMMAND_LRANGE);
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
		act(w);
		for (uint64_t n = world_random(w, 30); n > 0 && !TAILQ_EMPTY(&w->messages) && !w->violation; n--)
			one_event(w);
		trouble(w, step);
		if (chance(w, 3))
			w->now += world_random(w, 1500);
	}
	settle(w);
	if (!w->violation)
		final_reads(w);
	tear_down(w);
	return !w->violation;
}
