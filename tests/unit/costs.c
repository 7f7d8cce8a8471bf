#include "costs.h"

#include <assert.h>
#include <stdlib.h>

#include "collection/machines.h"
#include "command/start.h"
#include "command/target.h"
#include "counting.h"
#include "protocol/binary.h"
#include "util/alloc.h"
#include "waiting/waiting.h"

enum { ESTIMATE = 1024 /* bytes of a value */ };

/* As in net/work.h. */
struct payer {
	struct turn turn;
	STAILQ_HEAD(, pause) pauses;
};

/* A pause between two slices, or a timer. */
struct pause {
	STAILQ_ENTRY(pause) link;
	struct waiter *waiter;
	uint64_t at;
};

/* A call to a server. */
struct letter {
	STAILQ_ENTRY(letter) link;
	struct call call;
	char *bytes;
	struct waiter *waiter;
	struct costs_client *client;
};

struct costs_inner {
	struct turns turns;
	struct payer payers[COSTS_CLIENTS + 1]; /* the last one pays for work without a client */
	STAILQ_HEAD(, pause) timers;
	STAILQ_HEAD(, letter) letters;
	size_t letter_count, patient;
	struct call_turns queued;
	struct buf trash;
	/* Since the last pause. */
	size_t overs, made, blocks;
	size_t gone; /* tasks of clients that have left */
	bool starts; /* Requests are started. */
};

static struct costs *costs_of(struct env *env)
{
	return (struct costs *)env;
}

static void raise_to(size_t *most, size_t n)
{
	*most = *most > n ? *most : n;
}

/* --- between two pauses --- */

static size_t kept_by_pool(const struct pool *pool)
{
	size_t sum = 0;

	for (int i = 0; i < POOL_CLASSES; i++)
		sum += pool->kept[i];
	return sum;
}

static void weigh(struct costs *c)
{
	size_t all = counting.bytes, paid = kept_by_pool(&c->pool) + c->host.spare.cap;

	for (int i = 0; i < COSTS_CLIENTS; i++) {
		const struct costs_client *client = &c->clients[i];
		size_t own = client->account.used + client->account.held;
		raise_to(&c->counts.held, own + buf_size(&client->out) + client->shared);
		paid += own + client->out.cap;
	}
	paid += machines_cache_memory(c->host.lanes);
	if (all > paid)
		raise_to(&c->counts.unpaid, all - paid);
}

/* From here on code of the proxy runs, for this client or for itself. */
static void enter(struct costs *c, struct costs_client *client)
{
	assert(!counting.on);
	c->acting = client;
	c->inner->overs = c->inner->made = 0;
	c->inner->blocks = counting.blocks;
	c->host.env.grain = COSTS_STEPS;
	counting.on = true;
}

/* Returns the steps. */
static size_t leave(struct costs *c)
{
	struct costs_inner *inner = c->inner;
	size_t steps = COSTS_STEPS - c->host.env.grain;

	counting.on = false;
	raise_to(&c->counts.overs, inner->overs);
	raise_to(&c->counts.burst, inner->made);
	raise_to(&c->counts.blocks, counting.blocks - inner->blocks);
	raise_to(&c->counts.waiting, waiting_count(c->host.waiting) * c->keys);
	weigh(c);
	c->acting = NULL;
	return steps;
}

/* Once a slice is over, it remains so. */
static bool on_over(struct env *env)
{
	env->grain = 0;
	costs_of(env)->inner->overs++;
	return true;
}

static struct pause *new_pause(struct waiter *waiter, uint64_t at)
{
	struct pause *pause = xmalloc(sizeof(*pause));

	*pause = (struct pause){ .waiter = waiter, .at = at };
	return pause;
}

static void on_pause(struct env *env, struct waiter *waiter, const struct account *account)
{
	struct costs *c = costs_of(env);
	struct payer *payer =
		account && account->payer ? account->payer : &c->inner->payers[COSTS_CLIENTS];
	bool was_on = counting.on;
	struct pause *pause;

	counting.on = false;
	pause = new_pause(waiter, 0);
	STAILQ_INSERT_TAIL(&payer->pauses, pause, link);
	if (!payer->turn.waits)
		turns_wait(&c->inner->turns, &payer->turn);
	counting.on = was_on;
}

static void add_timer(struct costs *c, struct waiter *waiter, unsigned ms)
{
	bool was_on = counting.on;
	struct pause *pause;

	counting.on = false;
	pause = new_pause(waiter, c->host.env.now + ms);
	STAILQ_INSERT_TAIL(&c->inner->timers, pause, link);
	counting.on = was_on;
}

static void on_later(struct env *env, struct waiter *waiter, unsigned ms)
{
	add_timer(costs_of(env), waiter, ms);
}

static void on_later_moving(struct env *env, struct waiter *waiter, unsigned ms)
{
	add_timer((struct costs *)((char *)env - offsetof(struct costs, moving)), waiter, ms);
}

/* Calls the waiter of a pause, which is freed. */
static size_t resume(struct costs *c, struct costs_client *client, struct pause *pause)
{
	struct waiter *waiter = pause->waiter;

	free(pause);
	enter(c, client);
	waiter->done(waiter, &(struct result){ .status = RESULT_DONE });
	return leave(c);
}

static bool costs_run_slice(struct costs *c)
{
	struct turn *turn = turns_next(&c->inner->turns);
	struct payer *payer = (struct payer *)turn;
	size_t number = (size_t)(payer - c->inner->payers), steps;
	struct pause *pause;

	if (!turn)
		return false;
	pause = STAILQ_FIRST(&payer->pauses);
	STAILQ_REMOVE_HEAD(&payer->pauses, link);
	c->counts.slices++;
	steps = resume(c, number < COSTS_CLIENTS ? &c->clients[number] : NULL, pause);
	if (!turn->waits && !STAILQ_EMPTY(&payer->pauses))
		turns_wait(&c->inner->turns, turn);
	turn_charge(turn, steps);
	return true;
}

/* Timers that are started meanwhile are called another time. */
void costs_pass(struct costs *c, uint64_t ms)
{
	STAILQ_HEAD(, pause) all = STAILQ_HEAD_INITIALIZER(all);
	struct pause *pause;

	c->host.env.now += ms;
	c->moving.now = c->host.env.now;
	STAILQ_CONCAT(&all, &c->inner->timers);
	while ((pause = STAILQ_FIRST(&all))) {
		STAILQ_REMOVE_HEAD(&all, link);
		if (pause->at > c->host.env.now)
			STAILQ_INSERT_TAIL(&c->inner->timers, pause, link);
		else
			resume(c, NULL, pause);
	}
}

/* --- calls --- */

static void push(struct costs *c, const struct call *call, struct waiter *waiter,
	struct costs_client *client)
{
	struct letter *letter = xmalloc(sizeof(*letter));

	*letter = (struct letter){ .call = *call, .waiter = waiter, .client = client };
	letter->bytes = memcached_keep_call(&letter->call);
	STAILQ_INSERT_TAIL(&c->inner->letters, letter, link);
	c->inner->letter_count++;
	c->inner->patient += call->patient;
	if (client && !call->patient)
		raise_to(&c->counts.flying, ++client->flying);
}

static bool has_place(const struct costs *c)
{
	return c->inner->patient < COSTS_PLACES;
}

static void send_call(struct costs *c, const struct call *call, struct waiter *waiter)
{
	bool was_on = counting.on;

	counting.on = false;
	c->counts.made++;
	c->inner->made += !call->patient;
	if (call->patient && (c->inner->queued.count || !has_place(c)))
		call_turns_add(&c->inner->queued, call, waiter);
	else
		push(c, call, waiter, c->acting);
	counting.on = was_on;
}

static void on_call(struct env *env, const struct call *call, struct waiter *waiter)
{
	send_call(costs_of(env), call, waiter);
}

static void on_moving_call(struct env *env, const struct call *call, struct waiter *waiter)
{
	moves_call(costs_of(env)->moves, call, waiter);
}

static void on_moved_call(struct env *env, const struct call *call, struct waiter *waiter)
{
	send_call((struct costs *)((char *)env - offsetof(struct costs, moving)), call, waiter);
}

static int place_of(void *arg, struct slice key, int *former)
{
	(void)arg;
	*former = 0;
	return !slice_equal(key, SLICE("v"));
}

static int server_of(const struct costs *c, const struct call *call)
{
	int former;

	if (!c->moves)
		return 0;
	return call->server == CALL_ANY_SERVER ? place_of(NULL, call->key, &former) : call->server;
}

static struct result carry_out(struct costs *c, const struct call *call)
{
	struct memcached *server = &c->servers[server_of(c, call)];
	struct call discard = { .verb = CALL_DELETE, .key = call->key };
	struct result r;

	switch (call->verb) {
	case CALL_META:
		return (struct result){ .status = RESULT_TEXT, .line = SLICE("HD") };
	case CALL_FLUSH_ALL:
		return (struct result){ .status = RESULT_DONE };
	case CALL_DISCARD:
		return memcached_call(server, &discard, 0);
	default:
		r = memcached_call(server, call, (uint64_t)c->host.env.unix_time * 1000);
		if (call->verb == CALL_STATS)
			r.line = r.value;
		c->counts.bytes += r.value.n;
		return r;
	}
}

static struct costs_client *client_of(struct costs *c, const struct account *account)
{
	for (int i = 0; i < COSTS_CLIENTS; i++) {
		if (&c->clients[i].account == account)
			return &c->clients[i];
	}
	return NULL;
}

bool costs_answer(struct costs *c)
{
	struct costs_inner *inner = c->inner;
	struct letter *letter = STAILQ_FIRST(&inner->letters);
	struct result r;
	struct call call;

	if (!letter)
		return false;
	STAILQ_REMOVE_HEAD(&inner->letters, link);
	inner->letter_count--;
	inner->patient -= letter->call.patient;
	if (letter->client && !letter->call.patient)
		letter->client->flying--;
	r = carry_out(c, &letter->call);
	r.server = "mc:11211";
	r.connection = 1 + (uint64_t)server_of(c, &letter->call);
	enter(c, letter->client);
	letter->waiter->done(letter->waiter, &r);
	leave(c);
	free(letter->bytes);
	free(letter);
	while (inner->queued.count && has_place(c)) {
		struct waiter *waiter = call_turns_take(&inner->queued, &call);
		push(c, &call, waiter, client_of(c, call.account));
	}
	return true;
}

/* --- replies --- */

static size_t unread(const struct costs_client *client)
{
	return buf_size(&client->out) + client->shared;
}

/* As window_task_begin, for a client that has read small values until now. */
static void begin_window(struct costs_client *client, struct task *task)
{
	enum { VALUES_MOST = 32 };

	if (!task->sent.command || task->sent.command->reply == COMMAND_REPLY_LINE)
		task->sent.values = 0;
	else if (task->sent.values == 0)
		task->sent.values = 1;
	else if (task->sent.values > VALUES_MOST)
		task->sent.values = VALUES_MOST;
	client->window.values += task->sent.values;
}

static void end_window(struct costs_client *client, const struct task *task, size_t size)
{
	client->window.values -= task->sent.values;
	if (task->sent.values)
		raise_to(&client->window.estimate, size / task->sent.values);
}

static void on_begin(struct task *task)
{
	struct costs_client *client = task->owner;

	task->account = &client->account;
	STAILQ_INSERT_TAIL(&client->tasks, task, link);
	order_begin(&client->order, task->order);
	begin_window(client, task);
	account_use(&client->account, task->size + task->sent.bytes, 0);
}

static void count_spill(struct costs_client *client, struct task *task)
{
	account_hold(&client->account, buf_size(&task->spill), task->spilled);
	task->spilled = buf_size(&task->spill);
}

static struct buf *on_reply(struct task *task)
{
	struct costs_inner *inner = costs_of(&task->host->env)->inner;
	struct costs_client *client = task->owner;

	assert(!task->done);
	if (!client || task->quiet) {
		buf_consume(&inner->trash, buf_size(&inner->trash));
		return &inner->trash;
	}
	if (STAILQ_FIRST(&client->tasks) == task)
		return &client->out;
	count_spill(client, task);
	return &task->spill;
}

static bool on_share(struct task *task, struct shared *text)
{
	struct costs_client *client = task->owner;

	if (!client || task->quiet || STAILQ_FIRST(&client->tasks) != task)
		return false;
	client->shared += buf_size(&text->text);
	return true;
}

static bool on_room(const struct task *task)
{
	const struct costs_client *client = task->owner;
	size_t more = client && STAILQ_FIRST(&client->tasks) != task
		? client->account.held + buf_size(&task->spill) - task->spilled
		: 0;

	return !client || unread(client) + more < COSTS_BUFFER / 2;
}

static bool on_ended(const void *owner, bool ask)
{
	(void)ask;
	return ((const struct costs_client *)owner)->account.gone;
}

static void end_task(struct task *task)
{
	account_use(task->account, 0, task->size + task->sent.bytes);
	task_free(task);
}

static void on_done(struct task *task)
{
	struct costs_client *client = task->owner;

	assert(!task->done);
	task->done = true;
	if (!client) {
		costs_of(&task->host->env)->inner->gone--;
		end_task(task);
		return;
	}
	count_spill(client, task);
	while ((task = STAILQ_FIRST(&client->tasks))) {
		account_hold(&client->account, 0, task->spilled);
		task->spilled = 0;
		buf_add_slice(&client->out, buf_slice(&task->spill));
		buf_free(&task->spill);
		if (!task->done)
			return;
		STAILQ_REMOVE_HEAD(&client->tasks, link);
		order_end(&client->order, task->order);
		end_window(
			client, task, unread(client) + client->window.read - client->window.ended);
		client->window.ended = unread(client) + client->window.read;
		end_task(task);
	}
}

/* --- clients --- */

static bool has_window(const struct costs *c, const struct costs_client *client)
{
	size_t demand = unread(client) + client->account.used + client->account.held;

	if (unread(client) >= COSTS_BUFFER || client->order.tasks >= COSTS_PIPELINE ||
		client->order.calls >= c->host.calls_max)
		return false;
	demand += client->window.values ? (client->window.values + 1) * client->window.estimate : 0;
	return client->order.tasks == 0 || demand <= COSTS_BUFFER;
}

/* The parsed request, and what its slices point to. */
struct sent {
	struct request request;
	struct request_reply reply;
	struct binary_asked asked;
	struct order_needs needs;
};

static enum request_status parse(const struct costs_client *client, struct sent *sent)
{
	static const struct request_limits limits = { 1 << 20, 1 << 20, 2000 };
	struct request_progress progress = { 0 };

	return client->is_binary ? binary_parse(client->line, &limits, &progress, &sent->request,
					   &sent->reply, &sent->asked)
				 : request_parse(client->line, &limits, &progress, &sent->request);
}

/* Starts the next request, unless it must wait. */
static bool start_next(struct costs *c, struct costs_client *client)
{
	struct sent sent;
	enum request_status status;
	bool starts, done = true;

	if (!client->left || !has_window(c, client))
		return false;
	enter(c, client);
	status = parse(client, &sent);
	assert(status == REQUEST_READY || status == REQUEST_REFUSED);
	raise_to(&c->keys, sent.request.keys);
	if (status == REQUEST_READY)
		target_resolve(&c->rules, &sent.request, &sent.needs);
	starts = status == REQUEST_REFUSED || !order_must_wait(&client->order, &sent.request);
	if (status == REQUEST_REFUSED)
		task_start_refused(&c->host, &sent.request, client);
	else if (starts)
		done = task_start(&c->host, &sent.request, client);
	leave(c);
	client->left = !done ? 0 : client->left - starts;
	return starts && done;
}

/* Starts requests of each client, as far as its gate permits, and reads replies. */
static void start_all(struct costs *c)
{
	for (int i = 0; i < COSTS_CLIENTS; i++) {
		struct costs_client *client = &c->clients[i];
		struct task *task, *last = NULL;
		while (start_next(c, client))
			;
		if (client->reads || client->account.gone) {
			client->window.read += unread(client);
			counting.on = true;
			buf_free(&client->out);
			counting.on = false;
			client->shared = 0;
		}
		while ((task = STAILQ_FIRST(&client->tasks)) && task != last && task->resume &&
			unread(client) <= COSTS_BUFFER / 2) {
			last = task;
			enter(c, client);
			task->resume(task);
			leave(c);
		}
	}
}

void costs_send(struct costs *c, size_t client, struct slice line, bool is_binary, size_t times)
{
	struct costs_client *own = &c->clients[client];

	assert(own->left == 0 && !own->account.gone);
	own->line = line;
	own->is_binary = is_binary;
	own->left = times;
}

void costs_leave(struct costs *c, size_t client)
{
	struct costs_client *own = &c->clients[client];
	struct payer *payer = &c->inner->payers[client], *proxy = &c->inner->payers[COSTS_CLIENTS];
	struct task *task;

	own->left = 0;
	account_close(&own->account, c->host.env.now);
	while ((task = STAILQ_FIRST(&own->tasks))) {
		STAILQ_REMOVE_HEAD(&own->tasks, link);
		account_hold(&own->account, 0, task->spilled);
		task->spilled = 0;
		task->owner = NULL;
		if (task->done) {
			counting.on = true;
			end_task(task);
			counting.on = false;
			continue;
		}
		c->inner->gone++;
		enter(c, own);
		if (task->resume)
			task->resume(task);
		leave(c);
	}
	own->order = (struct order){ 0 };
	if (payer->turn.waits)
		turns_leave(&c->inner->turns, &payer->turn);
	if (!STAILQ_EMPTY(&payer->pauses) && !proxy->turn.waits)
		turns_wait(&c->inner->turns, &proxy->turn);
	STAILQ_CONCAT(&proxy->pauses, &payer->pauses);
}

bool costs_slice(struct costs *c)
{
	bool ran = costs_run_slice(c);

	start_all(c);
	return ran;
}

void costs_settle(struct costs *c)
{
	start_all(c);
	do
		costs_pass(c, 0);
	while (costs_slice(c));
}

/* Returns the time until the next timer; UINT64_MAX if there is none. */
static uint64_t next_timer(const struct costs *c)
{
	const struct pause *pause;
	uint64_t next = UINT64_MAX;

	STAILQ_FOREACH(pause, &c->inner->timers, link)
		next = pause->at < next ? pause->at : next;
	return next == UINT64_MAX || next < c->host.env.now ? next : next - c->host.env.now;
}

void costs_finish(struct costs *c)
{
	uint64_t ms;

	for (;;) {
		costs_settle(c);
		if (costs_answer(c))
			continue;
		ms = next_timer(c);
		if (ms == UINT64_MAX)
			return;
		costs_pass(c, ms);
	}
}

size_t costs_calls(const struct costs *c)
{
	return c->inner->letter_count + c->inner->queued.count;
}

bool costs_waits(const struct costs *c, size_t client)
{
	const struct costs_client *own = &c->clients[client];

	return own->left || own->order.tasks;
}

/* --- the proxy --- */

static void create_lanes(struct costs *c)
{
	counting.on = true;
	c->host.lanes = lanes_create(&c->host.env, &machines);
	counting.on = false;
}

static void destroy_lanes(struct costs *c)
{
	assert(lanes_idle(c->host.lanes));
	counting.on = true;
	lanes_destroy(c->host.lanes);
	counting.on = false;
}

void costs_init(
	struct costs *c, const struct rules *rules, const struct collection_options *options)
{
	memset(c, 0, sizeof(*c));
	counting = (struct counting){ 0 };
	c->host = (struct host){
		.env = { .call = on_call,
			.later = on_later,
			.is_over = on_over,
			.pause = on_pause,
			.now = 100000,
			.unix_time = 1424450096, /* 20 February 2015, 16:34:56 UTC */
			.random = 1,
			.seed = 42,
			.servers = 2,
			.rules = &c->rules,
			.options = &c->options,
			.pool = &c->pool },
		.begin = on_begin,
		.reply = on_reply,
		.share = on_share,
		.room = on_room,
		.ended = on_ended,
		.done = on_done,
		.calls_max = COSTS_SHARE,
	};
	c->rules = *rules;
	c->options = *options;
	c->inner = xcalloc(1, sizeof(*c->inner));
	turns_init(&c->inner->turns, COSTS_STEPS);
	call_turns_init(&c->inner->queued);
	STAILQ_INIT(&c->inner->timers);
	STAILQ_INIT(&c->inner->letters);
	for (int i = 0; i <= COSTS_CLIENTS; i++)
		STAILQ_INIT(&c->inner->payers[i].pauses);
	for (int i = 0; i < COSTS_CLIENTS; i++) {
		c->clients[i].account.payer = &c->inner->payers[i];
		c->clients[i].reads = true;
		c->clients[i].window.estimate = ESTIMATE;
		STAILQ_INIT(&c->clients[i].tasks);
	}
	c->host.waiting = waiting_create(&c->host.env, &c->board, COSTS_WAITING, COSTS_SHARE, NULL);
	create_lanes(c);
}

void costs_move(struct costs *c)
{
	c->moving = c->host.env;
	c->moving.call = on_moved_call;
	c->moving.later = on_later_moving;
	c->moves = moves_create(&(struct moves_options){ .env = &c->moving,
		.place = place_of,
		.at = c->host.env.unix_time - 10,
		.margin = 2 });
	c->host.env.call = on_moving_call;
}

void costs_forget(struct costs *c)
{
	destroy_lanes(c);
	create_lanes(c);
}

void costs_count(struct costs *c)
{
	c->counts = (struct costs_counts){ 0 };
}

void costs_put(struct costs *c, const char *key, struct slice value)
{
	struct call call = { .verb = CALL_SET, .key = slice_of(key, strlen(key)), .value = value };

	(void)memcached_call(&c->servers[0], &call, 0);
}

void costs_fini(struct costs *c)
{
	assert(costs_calls(c) == 0 && c->inner->gone == 0);
	assert(STAILQ_EMPTY(&c->inner->timers) && turns_are_empty(&c->inner->turns));
	destroy_lanes(c);
	if (c->moves) {
		assert(moves_idle(c->moves));
		moves_destroy(c->moves);
	}
	assert(waiting_idle(c->host.waiting));
	waiting_destroy(c->host.waiting);
	for (int i = 0; i < COSTS_CLIENTS; i++) {
		assert(STAILQ_EMPTY(&c->clients[i].tasks));
		assert(!c->clients[i].account.used && !c->clients[i].account.held);
		buf_free(&c->clients[i].out);
	}
	memcached_restart(&c->servers[0]);
	memcached_restart(&c->servers[1]);
	buf_free(&c->host.spare);
	buf_free(&c->inner->trash);
	pool_free(&c->pool);
	free(c->inner);
}
