#include "fresh.h"

#include <stdio.h>
#include <stdlib.h>

#include "collection/fresh/fresh.h"
#include "collection/machines.h"
#include "lan.h"
#include "protocol/commands.h"
#include "util/alloc.h"
#include "util/hash.h"
#include "util/num.h"
#include "wording.h"
#include "world.h"

enum {
	WORKERS = 4,
	PROCESSES = 2,
	CLIENTS = 8,
	KINDS = 4,
	KEYS = 2 * KINDS,
	WRITES = 400, /* at most */
	ACTIONS = 400,
	FRESH_MS = 50,
	ITEM_MAX = 60000,
	STALL_MAX = 300000, /* microseconds */
	TIMEOUT = 100000,   /* microseconds */
	DIGITS = 5
};

enum fresh_mutation {
	FRESH_NONE,
#define MUTATION(name, what) FRESH_##name,
#include "freshes.def"
#undef MUTATION
	FRESH_MUTATIONS
};

enum kind { KIND_SET, KIND_LIST, KIND_ITEM, KIND_EVENT };

struct fresh_world;

struct fresh_worker {
	struct lan_proxy lan; /* first, since its host is the first one of the lan_proxy */
	struct fresh_world *world;
	struct fresh *fresh;
	struct fresh_slots own_slots;
	struct fresh_stats stats;
	/* For FROM_REPLY: a clock that stands still while a read is in flight. */
	int reading;
	uint64_t read_since, stopped;
};

/* A command of a client. */
struct fresh_op {
	TAILQ_ENTRY(fresh_op) link;
	struct fresh_world *world;
	int client, key;
	bool writes;
	size_t write; /* of a write: its number */
	uint64_t at;  /* microseconds: when it was sent */
	size_t wrote; /* number of all writes that were sent before */
	struct buf reply;
};

struct write {
	int client, key;
	uint64_t stored; /* order of the storing; 0: not stored yet */
	uint64_t at;     /* microseconds: when it was stored */
	uint64_t told;   /* microseconds: when its client received the reply; 0: it has not */
	bool failed;
};

struct fresh_world {
	struct lan lan;
	struct fresh_worker workers[WORKERS];
	struct fresh_slots slots[PROCESSES];
	struct rules rules;
	enum fresh_mutation mutation;
	struct account accounts[CLIENTS];
	TAILQ_HEAD(, fresh_op) ops;
	struct write writes[WRITES + 1]; /* from 1 on */
	size_t write_count;
	uint64_t order;
	/* Of each counter: its value, and when it had each value. */
	size_t counts[KEYS];
	uint64_t counted[KEYS][WRITES + 1];
	const char *violation;
	char detail[512];
	uint64_t commands, failures, hits, shared, misses;
};

/* A slice in a table. */
#define BYTES(literal) \
	{ \
		(literal), sizeof(literal) - 1 \
	}

static const char *const key_names[KEYS] = { "s0", "s1", "l0", "l1", "p0", "p1", "E0", "E1" };

static enum kind kind_of(int key)
{
	return (enum kind)(key / (KEYS / KINDS));
}

static void fail(struct fresh_world *w, const char *what, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void fail(struct fresh_world *w, const char *what, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	histories_fail(&w->violation, w->detail, sizeof(w->detail), what, format, ap);
	va_end(ap);
}

/* --- the server --- */

static int place(struct slice key)
{
	(void)key;
	return 0;
}

static uint64_t arrival(struct lan *lan, const struct message *m, uint64_t last)
{
	(void)m;
	(void)last;
	return lan->now + lan_random(lan, lan_random(lan, 100) < 10 ? 60000 : 3000);
}

static int key_of(struct slice name)
{
	for (int i = 0; i < KEYS; i++) {
		if (name.n >= 2 && memcmp(name.p, key_names[i], 2) == 0 &&
			(name.n == 2 || kind_of(i) == KIND_EVENT))
			return i;
	}
	return -1;
}

/* Returns the number that follows the letter n at `at`, and moves it; 0 at the end. */
static size_t next_number(struct slice *rest)
{
	const char *at;
	size_t number = 0;

	while (rest->n && (at = memchr(rest->p, 'n', rest->n))) {
		*rest = slice_skip(*rest, (size_t)(at - rest->p) + 1);
		if (rest->n < DIGITS)
			return 0;
		for (int i = 0; i < DIGITS; i++)
			number = 10 * number + (size_t)(rest->p[i] - '0');
		*rest = slice_skip(*rest, DIGITS);
		return number;
	}
	return 0;
}

static void note_stored(struct fresh_world *w, int key, struct slice value)
{
	size_t number;

	w->order++;
	while ((number = next_number(&value))) {
		struct write *write = &w->writes[number];
		if (number > w->write_count || write->key != key || write->stored)
			continue;
		write->stored = w->order;
		write->at = w->lan.now;
	}
}

static size_t count_in(struct slice value)
{
	uint64_t count = 0;

	(void)num_parse_u64(value, &count);
	return (size_t)count;
}

static void note_count(struct fresh_world *w, int key, const struct message *m)
{
	size_t before = w->counts[key];

	if (m->call.verb == CALL_INCR && m->result.status == RESULT_NUMBER)
		w->counts[key] = (size_t)m->result.number;
	if (m->call.verb == CALL_ADD && m->result.status == RESULT_DONE)
		w->counts[key] = count_in(m->call.value);
	for (size_t i = before + 1; i <= w->counts[key] && i <= WRITES; i++)
		w->counted[key][i] = w->lan.now;
}

static void executed(struct lan *lan, struct message *m)
{
	struct fresh_world *w = lan->arg;
	int key = key_of(m->call.key);
	const struct memcached_item *item;

	if (key < 0 || m->call.verb == CALL_GET)
		return;
	item = lan_find(lan, m->call.key);
	if (kind_of(key) == KIND_EVENT)
		note_count(w, key, m);
	else if (item)
		note_stored(w, key, buf_slice(&item->value));
}

static const struct lan_hooks hooks = { .arrival = arrival, .place = place, .executed = executed };

/* --- the layer under test --- */

struct wrap {
	struct waiter waiter, *outer;
	struct fresh_worker *worker;
	bool reads;
};

static atomic_uint_fast64_t *slot_of(struct fresh_worker *worker, struct slice key)
{
	struct fresh_slots *slots = &worker->world->slots[worker->lan.index % PROCESSES];

	return &slots->at[hash_key(key, slots->seed) % FRESH_SLOTS];
}

static void fresh_on_wrapped(struct waiter *waiter, const struct result *r)
{
	struct wrap *wrap = (struct wrap *)waiter;
	struct fresh_worker *worker = wrap->worker;
	struct waiter *outer = wrap->outer;

	if (wrap->reads && --worker->reading == 0)
		worker->stopped += worker->lan.lan->now - worker->read_since;
	/* The end that follows changes nothing. */
	if (!wrap->reads && worker->world->mutation == FRESH_EARLY_END)
		(void)atomic_fetch_sub(slot_of(worker, waiter->key), FRESH_WRITES - 1);
	free(wrap);
	outer->done(outer, r);
}

static void call_server(struct env *env, const struct call *call, struct waiter *waiter)
{
	struct fresh_worker *worker = (struct fresh_worker *)env;
	struct wrap *wrap = xmalloc(sizeof(*wrap));

	*wrap = (struct wrap){ { fresh_on_wrapped, waiter->key }, waiter, worker,
		call->verb == CALL_GET };
	if (wrap->reads && worker->reading++ == 0)
		worker->read_since = worker->lan.lan->now;
	if (!wrap->reads && worker->world->mutation == FRESH_EARLY_END)
		fresh_slot_end(slot_of(worker, call->key));
	lan_call(env, call, &wrap->waiter);
}

static uint64_t tell_clock(struct env *env)
{
	const struct fresh_worker *worker = (struct fresh_worker *)env;
	const struct lan *lan = worker->lan.lan;
	uint64_t stopped = worker->stopped + (worker->reading ? lan->now - worker->read_since : 0);

	if (worker->world->mutation == FRESH_FROM_REPLY)
		return (lan->now - stopped) / 1000;
	if (worker->world->mutation == FRESH_TOO_LONG)
		return lan->now / 1500;
	return lan->now / 1000;
}

static uint64_t tell_later(struct env *env)
{
	return tell_clock(env) + 7;
}

static void run_soon(struct env *env, struct waiter *waiter, bool later)
{
	(void)later;
	env->later(env, waiter, 0);
}

static void call_fresh(struct env *env, const struct call *call, struct waiter *waiter)
{
	struct fresh_worker *worker = (struct fresh_worker *)env;

	if (worker->world->mutation == FRESH_UNMARKED && call->verb != CALL_GET)
		call_server(env, call, waiter);
	else
		fresh_call(worker->fresh, call, waiter);
}

/* --- replies --- */

static bool includes(const size_t *list, size_t count, size_t number)
{
	for (size_t i = 0; i < count; i++) {
		if (list[i] == number)
			return true;
	}
	return false;
}

/* Checks a read that does not include this write, which was stored. */
static void check_missing(struct fresh_op *op, size_t number)
{
	struct fresh_world *w = op->world;
	const struct write *write = &w->writes[number];
	bool is_own = write->client % WORKERS % PROCESSES == op->client % WORKERS % PROCESSES;

	if (write->at + FRESH_MS * 1000 < op->at)
		fail(w, "a reply is too old", "%s lacks n%05zu, which was stored %llu us before",
			key_names[op->key], number, (unsigned long long)(op->at - write->at));
	if (is_own && write->told && write->told < op->at)
		fail(w, "a process does not see its own write", "%s lacks n%05zu",
			key_names[op->key], number);
	if (write->client == op->client && number <= op->wrote && !write->failed)
		fail(w, "a client does not see its own write", "%s lacks n%05zu",
			key_names[op->key], number);
}

static void judge_read(struct fresh_op *op)
{
	struct fresh_world *w = op->world;
	struct slice rest = buf_slice(&op->reply);
	size_t list[WRITES + 1], count = 0, number;
	uint64_t last = 0;
	bool is_item = kind_of(op->key) == KIND_ITEM;

	while ((number = next_number(&rest)) && count < WRITES) {
		list[count++] = number;
		if (!w->writes[number].stored)
			fail(w, "a reply has what is not stored", "n%05zu", number);
		last = w->writes[number].stored > last ? w->writes[number].stored : last;
	}
	for (size_t i = 1; i <= w->write_count; i++) {
		const struct write *write = &w->writes[i];
		if (write->key != op->key || !write->stored)
			continue;
		if (is_item ? write->stored <= last : includes(list, count, i))
			continue;
		if (write->stored < last)
			fail(w, "a reply was never the state", "%s lacks n%05zu",
				key_names[op->key], i);
		check_missing(op, i);
	}
}

/* A write was acknowledged with the count after it. */
static void judge_count(struct fresh_op *op)
{
	struct fresh_world *w = op->world;
	struct slice rest = buf_slice(&op->reply), last = rest;
	uint64_t count = 0;

	/* COUNT, the bucket and the count; END. */
	while (rest.n && !slice_starts(rest, SLICE("END"))) {
		const char *end = memchr(rest.p, '\n', rest.n);
		last = slice_of(rest.p, end ? (size_t)(end - rest.p) - 1 : rest.n);
		rest = slice_skip(rest, end ? (size_t)(end - rest.p) + 1 : rest.n);
	}
	(void)slice_token(&last);
	(void)slice_token(&last);
	if (!num_parse_u64(slice_token(&last), &count))
		fail(w, "a count is no number", "%.*s", (int)last.n, last.p);
	for (size_t i = count + 1; i <= w->counts[op->key]; i++) {
		if (w->counted[op->key][i] + FRESH_MS * 1000 < op->at)
			fail(w, "a count is too old", "%s is %llu, and was %zu %llu us before",
				key_names[op->key], (unsigned long long)count, i,
				(unsigned long long)(op->at - w->counted[op->key][i]));
	}
	for (size_t i = 1; i <= w->write_count; i++) {
		const struct write *write = &w->writes[i];
		bool is_own =
			write->client % WORKERS % PROCESSES == op->client % WORKERS % PROCESSES;
		if (write->key == op->key && is_own && write->told && write->told < op->at &&
			write->stored > count)
			fail(w, "a process does not see its own count", "%s is %llu, and was %llu",
				key_names[op->key], (unsigned long long)count,
				(unsigned long long)write->stored);
	}
}

static bool has_failed(const struct fresh_op *op)
{
	return slice_starts(buf_slice(&op->reply), SLICE("SERVER_ERROR"));
}

static void judge_reply(struct fresh_op *op)
{
	struct fresh_world *w = op->world;
	bool counts = kind_of(op->key) == KIND_EVENT;
	struct slice reply = buf_slice(&op->reply);

	w->failures += has_failed(op);
	if (op->writes) {
		struct write *write = &w->writes[op->write];
		write->failed = has_failed(op);
		write->told = write->failed ? 0 : w->lan.now;
		/* Of a counter, `stored` is the count. */
		if (counts && !write->failed)
			(void)num_parse_u64(slice_of(reply.p, reply.n - 2), &write->stored);
		if (!write->failed && !write->stored)
			fail(w, "a write was acknowledged, and not stored", "n%05zu", op->write);
	} else if (!has_failed(op)) {
		(counts ? judge_count : judge_read)(op);
	}
}

/* --- clients --- */

static struct buf *task_reply_buf(struct task *task)
{
	return &((struct fresh_op *)task->owner)->reply;
}

static void task_begin(struct task *task)
{
	struct fresh_op *op = task->owner;

	task->account = &op->world->accounts[op->client];
}

static void free_op(struct fresh_op *op)
{
	TAILQ_REMOVE(&op->world->ops, op, link);
	buf_free(&op->reply);
	free(op);
}

static void task_ended(struct task *task)
{
	struct fresh_op *op = task->owner;

	task_free(task);
	lan_say(&op->world->lan, "client %d %s -> %.*s", op->client, key_names[op->key],
		(int)buf_size(&op->reply), op->reply.data);
	if (!op->world->violation)
		judge_reply(op);
	free_op(op);
}

static void write_line(const struct fresh_op *op, struct buf *line)
{
	static const char *const writes[KINDS] = { "sadd %s n%05zu\r\n", "rpush %s n%05zu\r\n",
		"set %s 0 0 6\r\nn%05zu\r\n", "evincr %s 1\r\n" };
	static const char *const reads[KINDS] = { "smembers %s\r\n", "lrange %s 0 -1\r\n",
		"get %s\r\n", "evcount %s\r\n" };
	enum kind kind = kind_of(op->key);
	char text[64];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
	if (op->writes)
		snprintf(text, sizeof(text), writes[kind], key_names[op->key], op->write);
	else
		snprintf(text, sizeof(text), reads[kind], key_names[op->key]);
#pragma GCC diagnostic pop
	buf_add_slice(line, slice_of(text, strlen(text)));
}

static void act(struct fresh_world *w)
{
	struct fresh_op *op = xcalloc(1, sizeof(*op));
	struct buf line = BUF_EMPTY;

	op->world = w;
	op->client = (int)lan_random(&w->lan, CLIENTS);
	op->key = (int)lan_random(&w->lan, KEYS);
	op->writes = lan_random(&w->lan, 100) < 15 && w->write_count < WRITES;
	op->at = w->lan.now;
	op->wrote = w->write_count;
	if (op->writes) {
		op->write = ++w->write_count;
		w->writes[op->write] = (struct write){ .client = op->client, .key = op->key };
	}
	TAILQ_INSERT_TAIL(&w->ops, op, link);
	w->commands++;
	write_line(op, &line);
	if (!lan_ask(&w->workers[op->client % WORKERS].lan.first, op->client, buf_slice(&line), op))
		fail(w, "a command was refused", "%.*s", (int)buf_size(&line), line.data);
	buf_free(&line);
}

static void trouble(struct fresh_world *w, uint64_t seed)
{
	struct fresh_worker *worker = &w->workers[lan_random(&w->lan, WORKERS)];

	if (seed % 4 == 1 && lan_random(&w->lan, 100) < 2)
		lan_stall(&worker->lan, 0, lan_random(&w->lan, STALL_MAX), TIMEOUT);
	if (seed % 4 == 3 && lan_random(&w->lan, 100) < 2)
		lan_break(&worker->lan, 0);
}

/* --- a history --- */

static void run_until(struct fresh_world *w, uint64_t time)
{
	uint64_t next;

	while ((next = lan_next(&w->lan)) <= time && next != UINT64_MAX && !w->violation)
		lan_step(&w->lan);
	if (time != UINT64_MAX && w->lan.now < time)
		w->lan.now = time;
	for (int i = 0; i < WORKERS; i++)
		lan_set_clock(&w->workers[i].lan);
}

static void start_worker(struct fresh_world *w, int index, const struct collection_options *options)
{
	struct fresh_worker *worker = &w->workers[index];
	struct host *host = &worker->lan.host;
	bool shares = w->mutation != FRESH_UNSHARED;

	lan_init_proxy(&w->lan, &worker->lan, index);
	worker->world = w;
	host->env.rules = &w->rules;
	host->env.options = options;
	host->env.call = call_fresh;
	host->begin = task_begin;
	host->reply = task_reply_buf;
	host->done = task_ended;
	worker->fresh = fresh_create(&(struct fresh_options){
		.env = &host->env,
		.call = call_server,
		.clock = tell_clock,
		.not_before = tell_later,
		.soon = run_soon,
		.slots = shares ? &w->slots[index % PROCESSES] : &worker->own_slots,
		.stats = &worker->stats,
		.limit = 1 << 16,
	});
	host->lanes = lanes_create(&host->env, &machines);
}

static void stop_worker(struct fresh_world *w, int index)
{
	struct fresh_worker *worker = &w->workers[index];

	w->hits += worker->stats.hits;
	w->shared += worker->stats.shared;
	w->misses += worker->stats.misses;
	if (!w->violation && !lanes_idle(worker->lan.host.lanes))
		fail(w, "something never ended", "worker %d", index);
	if (w->violation)
		return;
	lanes_destroy(worker->lan.host.lanes);
	fresh_destroy(worker->fresh);
	buf_free(&worker->lan.host.spare);
	pool_free(&worker->lan.pool);
}

static void run_world(
	struct fresh_world *w, uint64_t seed, enum fresh_mutation mutation, bool verbose)
{
	static const struct collection_rule collections[] = {
		{ .prefix = BYTES("s"), .fresh_for = FRESH_MS, .compact_waste = 0.5 },
		{ .prefix = BYTES("l"),
			.type = COLLECTION_LIST,
			.fresh_for = FRESH_MS,
			.compact_waste = 0.5 },
	};
	static const struct event_rule events = { .prefix = BYTES("E"),
		.separator = BYTES("::"),
		.bucket = GRANULARITY_DAY,
		.lookback = 1,
		.fresh_for = FRESH_MS };
	static const struct item_rule items = { BYTES("p"), FRESH_MS };

	memset(w, 0, sizeof(*w));
	wording_begin(true, "k100", "s", "e1", "l");
	lan_init(&w->lan, &hooks, w, 1, ITEM_MAX, seed);
	w->lan.verbose = verbose;
	w->mutation = mutation;
	w->rules = (struct rules){ .collections = collections,
		.collection_count = 2,
		.events = &events,
		.event_count = 1,
		.items = &items,
		.item_count = 1,
		.fresh = true };
	TAILQ_INIT(&w->ops);
	for (int i = 0; i < WORKERS; i++)
		start_worker(w, i, world_sizes(seed));
	for (int i = 0; i < ACTIONS && !w->violation; i++) {
		run_until(w, w->lan.now + lan_random(&w->lan, 4000));
		if (w->violation)
			break;
		act(w);
		trouble(w, seed);
	}
	run_until(w, UINT64_MAX);
	if (!w->violation && !TAILQ_EMPTY(&w->ops))
		fail(w, "a command was never answered", "%s", key_names[TAILQ_FIRST(&w->ops)->key]);
	for (int i = 0; i < WORKERS; i++)
		stop_worker(w, i);
	while (!TAILQ_EMPTY(&w->ops))
		free_op(TAILQ_FIRST(&w->ops));
	lan_fini(&w->lan);
}

static const char *const mutations[FRESH_MUTATIONS] = {
	"none",
#define MUTATION(name, what) what,
#include "freshes.def"
#undef MUTATION
};

static struct verdict run(uint64_t seed, int mutation, bool verbose)
{
	static struct fresh_world world;
	struct fresh_world *w = &world;

	run_world(w, seed, (enum fresh_mutation)mutation, verbose);
	return (struct verdict){ w->violation, w->detail,
		{ w->commands, w->failures, w->hits, w->shared, w->misses } };
}

static const char *mutation_name(int mutation)
{
	return mutations[mutation];
}

const struct histories fresh_histories = { run,
	{ "commands", "failed", "read from memory", "shared a call", "asked" }, mutation_name,
	FRESH_MUTATIONS };
