#include "crowd.h"

#include <stdio.h>
#include <stdlib.h>

#include "collection/machines.h"
#include "command/start.h"
#include "command/task.h"
#include "unit/memcached.h"
#include "util/alloc.h"
#include "util/random.h"

enum {
	SLOTS = 8,           /* commands in flight at each proxy, each of a client of its own */
	LATENCY_LEAST = 100, /* microseconds, each way */
	LATENCY_SPREAD = 4900,
	ITEM_MAX = 1024 * 1024
};

static const struct collection_options options = {
	.base_size = 16384, .segment_size = 131072, .log_size = 4096, .table_size = 32768, .cache = 1 << 20, .merges = 2
};

struct crowd;

/* One member, which one client adds and removes in turns. */
struct slot {
	struct crowd_proxy *proxy;
	unsigned number;
	bool adds, in; /* what is asked; what was acknowledged last */
	struct buf reply;
};

struct crowd_proxy {
	struct host host;
	struct pool pool;
	struct crowd *crowd;
	uint64_t there, back; /* when the last call arrives, and the last reply */
	struct slot slots[SLOTS];
};

/* A call on its way to the server, its result on the way back, or a waiter that wakes. */
struct event {
	uint64_t at, number;
	struct crowd_proxy *proxy;
	struct waiter *waiter;
	struct call call;
	char *bytes;
	struct buf value;
	struct result result;
	bool executed;
};

struct crowd {
	struct crowd_proxy proxies[CROWD_PROXIES];
	struct memcached server;
	struct rules rules;
	struct event **heap;
	size_t count, capacity;
	uint64_t now, random, number; /* microseconds */
	size_t base_max;
	uint64_t done;
	bool ending;
	bool blind; /* no look at a size tells anything */
	const char *wrong;
};

/* --- events, the earliest first --- */

static bool is_before(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->number < b->number;
}

static void swap(struct crowd *c, size_t a, size_t b)
{
	struct event *e = c->heap[a];

	c->heap[a] = c->heap[b];
	c->heap[b] = e;
}

static void add_event(struct crowd *c, struct event *e, uint64_t at)
{
	size_t i = c->count;

	if (c->count == c->capacity) {
		c->capacity = c->capacity ? 2 * c->capacity : 1024;
		c->heap = xrealloc(c->heap, c->capacity * sizeof(*c->heap));
	}
	e->at = at;
	e->number = c->number++;
	c->heap[c->count++] = e;
	for (; i && is_before(c->heap[i], c->heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(c, i, (i - 1) / 2);
}

static struct event *take_event(struct crowd *c)
{
	struct event *first = c->heap[0];
	size_t i = 0, child;

	c->heap[0] = c->heap[--c->count];
	while ((child = 2 * i + 1) < c->count) {
		if (child + 1 < c->count && is_before(c->heap[child + 1], c->heap[child]))
			child++;
		if (!is_before(c->heap[child], c->heap[i]))
			break;
		swap(c, i, child);
		i = child;
	}
	return first;
}

static void forget_event(struct event *e)
{
	free(e->bytes);
	buf_free(&e->value);
	free(e);
}

/* --- the network --- */

static uint64_t latency(struct crowd *c)
{
	return LATENCY_LEAST + random_next(&c->random) % LATENCY_SPREAD;
}

/* Neither calls nor replies overtake those of their connection. */
static uint64_t arrival(struct crowd *c, uint64_t *last)
{
	uint64_t at = c->now + latency(c);

	*last = at > *last ? at : *last;
	return *last;
}

static void send_call(struct env *env, const struct call *call, struct waiter *waiter)
{
	struct crowd_proxy *p = (struct crowd_proxy *)env;
	struct event *e = xcalloc(1, sizeof(*e));

	*e = (struct event){ .proxy = p, .waiter = waiter, .call = *call };
	e->bytes = memcached_keep_call(&e->call);
	add_event(p->crowd, e, arrival(p->crowd, &p->there));
}

static void call_later(struct env *env, struct waiter *waiter, unsigned ms)
{
	struct crowd_proxy *p = (struct crowd_proxy *)env;
	struct event *e = xcalloc(1, sizeof(*e));

	*e = (struct event){ .proxy = p, .waiter = waiter, .executed = true };
	add_event(p->crowd, e, p->crowd->now + ms * 1000 + 1);
}

static void execute(struct crowd *c, struct event *e)
{
	const struct memcached_item *base;

	e->result = memcached_call(&c->server, &e->call, c->now / 1000);
	if (c->blind)
		e->result.size = 0;
	buf_add_slice(&e->value, e->result.value);
	e->executed = true;
	base = memcached_find(&c->server, SLICE("k"), c->now / 1000);
	if (base && buf_size(&base->value) > c->base_max)
		c->base_max = buf_size(&base->value);
	add_event(c, e, arrival(c, &e->proxy->back));
}

static void give_result(struct crowd *c, struct event *e)
{
	e->result.value = buf_slice(&e->value);
	e->result.server = "sim";
	e->result.connection = 1;
	e->proxy->host.env.now = c->now / 1000;
	e->proxy->host.env.unix_time = (int64_t)(c->now / 1000000);
	e->waiter->done(e->waiter, &e->result);
	forget_event(e);
}

static void step(struct crowd *c)
{
	struct event *e = take_event(c);

	c->now = e->at;
	if (e->executed)
		give_result(c, e);
	else
		execute(c, e);
}

/* --- clients --- */

static void ask(struct slot *slot, const char *line)
{
	struct request_limits limits = { 1 << 16, 1 << 16, 100 };
	struct request request;
	struct request_progress progress = { 0 };

	if (request_parse(slice_of(line, strlen(line)), &limits, &progress, &request) != REQUEST_READY ||
		!task_start(&slot->proxy->host, &request, slot))
		slot->proxy->crowd->wrong = "a request was refused";
}

static void ask_next(struct slot *slot)
{
	char line[64];

	slot->adds = !slot->adds;
	snprintf(line, sizeof(line), "%s k member%04u\r\n", slot->adds ? "sadd" : "srem", slot->number);
	ask(slot, line);
}

static void task_begin(struct task *task)
{
	(void)task;
}

static struct buf *task_reply_buf(struct task *task)
{
	return &((struct slot *)task->owner)->reply;
}

static void task_ended(struct task *task)
{
	struct slot *slot = task->owner;
	struct crowd *c = slot->proxy->crowd;

	task_free(task);
	if (c->ending)
		return;
	if (!slice_equal(buf_slice(&slot->reply), slot->adds ? SLICE("STORED\r\n") : SLICE("DELETED\r\n")))
		c->wrong = "a command failed";
	buf_consume(&slot->reply, buf_size(&slot->reply));
	slot->in = slot->adds;
	c->done++;
	if (c->now < CROWD_SECONDS * 1000000ull)
		ask_next(slot);
}

static void start_proxy(struct crowd *c, unsigned number)
{
	struct crowd_proxy *p = &c->proxies[number];

	p->crowd = c;
	p->host = (struct host){
		.env = {
			.call = send_call,
			.later = call_later,
			.random = random_next(&c->random),
			.seed = random_next(&c->random),
			.servers = 1,
			.rules = &c->rules,
			.options = &options,
			.pool = &p->pool,
		},
		.begin = task_begin,
		.reply = task_reply_buf,
		.done = task_ended,
	};
	p->host.lanes = lanes_create(&p->host.env, &machines);
	for (unsigned i = 0; i < SLOTS; i++) {
		p->slots[i] = (struct slot){ .proxy = p, .number = number * SLOTS + i };
		ask_next(&p->slots[i]);
	}
}

/* --- what must be true --- */

/* One proxy reads the set when all is over: each member must be as its client was told last. */
static void check_members(struct crowd *c)
{
	struct slot reader = { .proxy = &c->proxies[0] };
	char name[16];

	c->ending = true;
	ask(&reader, "smembers k\r\n");
	while (c->count)
		step(c);
	buf_add(&reader.reply, "", 1);
	for (unsigned i = 0; i < CROWD_PROXIES * SLOTS && !c->wrong; i++) {
		snprintf(name, sizeof(name), "member%04u", i);
		if ((strstr(reader.reply.data, name) != NULL) != c->proxies[i / SLOTS].slots[i % SLOTS].in)
			c->wrong = "something acknowledged was lost";
	}
	buf_free(&reader.reply);
}

/* Counts rewrites, and frees what there is. */
static uint64_t end(struct crowd *c)
{
	uint64_t compactions = 0;

	while (c->count)
		forget_event(take_event(c));
	for (unsigned i = 0; i < CROWD_PROXIES; i++) {
		struct crowd_proxy *p = &c->proxies[i];
		compactions += lanes_statistics(p->host.lanes)->compactions;
		for (unsigned s = 0; s < SLOTS; s++)
			buf_free(&p->slots[s].reply);
		if (!c->wrong)
			lanes_destroy(p->host.lanes);
		pool_free(&p->pool);
	}
	memcached_restart(&c->server);
	free(c->heap);
	return compactions;
}

bool crowd_run(uint64_t seed, bool noticing)
{
	struct crowd *c = xcalloc(1, sizeof(*c));
	uint64_t compactions;
	bool good;

	c->random = seed;
	c->blind = !noticing;
	c->server.item_max = ITEM_MAX;
	for (unsigned i = 0; i < CROWD_PROXIES; i++)
		start_proxy(c, i);
	while (c->count && !c->wrong) {
		step(c);
		if (c->base_max > CROWD_BASE_MAX)
			c->wrong = "the base grew too large";
	}
	if (!c->wrong)
		check_members(c);
	good = !c->wrong;
	compactions = end(c);
	if (good && compactions < CROWD_SECONDS * 2) {
		c->wrong = "rewrites came to a stop";
		good = false;
	}
	printf("seed %llu: %llu commands, %llu rewrites, base of up to %zu bytes%s%s\n", (unsigned long long)seed,
		(unsigned long long)c->done, (unsigned long long)compactions, c->base_max, c->wrong ? ": " : "",
		c->wrong ? c->wrong : "");
	free(c);
	return good;
}
