#include "crowd.h"

#include <stdio.h>
#include <stdlib.h>

#include "collection/machines.h"
#include "command/task.h"
#include "lan.h"
#include "util/alloc.h"

enum {
	SLOTS = 8,           /* commands in flight at each proxy, each of a separate client */
	LATENCY_LEAST = 100, /* microseconds, each way */
	LATENCY_SPREAD = 4900,
	ITEM_MAX = 1024 * 1024
};

static const struct collection_options options = { .base_size = 16384,
	.segment_size = 131072,
	.log_size = 4096,
	.table_size = 32768,
	.cache = 1 << 20,
	.merges = 2 };

struct crowd;

/* One member, which one client adds and removes in turns. */
struct slot {
	struct crowd_proxy *proxy;
	unsigned number;
	bool adds, in; /* the change in flight; the last acknowledged one */
	struct buf reply;
	struct account account;
};

struct crowd_proxy {
	struct lan_proxy lan; /* first, as its host is the first of that */
	struct crowd *crowd;
	struct slot slots[SLOTS];
};

struct crowd {
	struct crowd_proxy proxies[CROWD_PROXIES];
	struct lan lan;
	struct rules rules;
	size_t base_max;
	uint64_t done;
	bool ending;
	bool blind; /* a read of the size has no effect */
	const char *wrong;
};

/* --- the network --- */

static uint64_t arrival(struct lan *lan, const struct message *m, uint64_t last)
{
	(void)m;
	(void)last;
	return lan->now + LATENCY_LEAST + lan_random(lan, LATENCY_SPREAD);
}

static int place(struct slice key)
{
	(void)key;
	return 0;
}

static void executed(struct lan *lan, struct message *m)
{
	struct crowd *c = lan->arg;
	const struct memcached_item *base = lan_find(lan, SLICE("k"));

	if (c->blind)
		m->result.size = 0;
	if (base && buf_size(&base->value) > c->base_max)
		c->base_max = buf_size(&base->value);
}

static const struct lan_hooks hooks = { .arrival = arrival, .place = place, .executed = executed };

/* --- clients --- */

static void ask(struct slot *slot, const char *line)
{
	if (!lan_ask(
		    &slot->proxy->lan.first, (int)slot->number, slice_of(line, strlen(line)), slot))
		slot->proxy->crowd->wrong = "a request was refused";
}

static void ask_next(struct slot *slot)
{
	char line[64];

	slot->adds = !slot->adds;
	snprintf(line, sizeof(line), "%s k member%04u\r\n", slot->adds ? "sadd" : "srem",
		slot->number);
	ask(slot, line);
}

static void task_begin(struct task *task)
{
	task->account = &((struct slot *)task->owner)->account;
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
	if (!slice_equal(buf_slice(&slot->reply),
		    slot->adds ? SLICE("STORED\r\n") : SLICE("DELETED\r\n")))
		c->wrong = "a command failed";
	buf_consume(&slot->reply, buf_size(&slot->reply));
	slot->in = slot->adds;
	c->done++;
	if (c->lan.now - c->lan.start < CROWD_SECONDS * 1000000ull)
		ask_next(slot);
}

static void start_proxy(struct crowd *c, unsigned number)
{
	struct crowd_proxy *p = &c->proxies[number];
	struct host *host = &p->lan.host;

	lan_init_proxy(&c->lan, &p->lan, (int)number);
	host->env.is_over = NULL;
	host->env.pause = NULL;
	host->env.rules = &c->rules;
	host->env.options = &options;
	host->begin = task_begin;
	host->reply = task_reply_buf;
	host->done = task_ended;
	host->lanes = lanes_create(&host->env, &machines);
	p->crowd = c;
	for (unsigned i = 0; i < SLOTS; i++) {
		p->slots[i] = (struct slot){ .proxy = p, .number = number * SLOTS + i };
		ask_next(&p->slots[i]);
	}
}

/* --- invariants --- */

/* One proxy reads the set at the end: each member must have the last acknowledged state. */
static void check_members(struct crowd *c)
{
	struct slot reader = { .proxy = &c->proxies[0] };
	char name[16];

	c->ending = true;
	ask(&reader, "smembers k\r\n");
	while (lan_next(&c->lan) != UINT64_MAX)
		lan_step(&c->lan);
	buf_add(&reader.reply, "", 1);
	for (unsigned i = 0; i < CROWD_PROXIES * SLOTS && !c->wrong; i++) {
		snprintf(name, sizeof(name), "member%04u", i);
		if ((strstr(reader.reply.data, name) != NULL) !=
			c->proxies[i / SLOTS].slots[i % SLOTS].in)
			c->wrong = "something acknowledged was lost";
	}
	buf_free(&reader.reply);
}

/* Counts rewrites, and frees everything. */
static uint64_t end(struct crowd *c)
{
	uint64_t compactions = 0;

	for (unsigned i = 0; i < CROWD_PROXIES; i++) {
		struct crowd_proxy *p = &c->proxies[i];
		compactions += lanes_statistics(p->lan.host.lanes)->compactions;
		for (unsigned s = 0; s < SLOTS; s++)
			buf_free(&p->slots[s].reply);
		if (!c->wrong)
			lanes_destroy(p->lan.host.lanes);
		pool_free(&p->lan.pool);
	}
	lan_fini(&c->lan);
	return compactions;
}

bool crowd_run(uint64_t seed, bool noticing)
{
	struct crowd *c = xcalloc(1, sizeof(*c));
	uint64_t compactions;
	bool good;

	lan_init(&c->lan, &hooks, c, 1, ITEM_MAX, seed);
	c->blind = !noticing;
	for (unsigned i = 0; i < CROWD_PROXIES; i++)
		start_proxy(c, i);
	while (lan_next(&c->lan) != UINT64_MAX && !c->wrong) {
		lan_step(&c->lan);
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
	printf("seed %llu: %llu commands, %llu rewrites, base of up to %zu bytes%s%s\n",
		(unsigned long long)seed, (unsigned long long)c->done,
		(unsigned long long)compactions, c->base_max, c->wrong ? ": " : "",
		c->wrong ? c->wrong : "");
	free(c);
	return good;
}
