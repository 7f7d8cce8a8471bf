/*
 * For check_absences.c: three proxies, and the items of their servers. Calls are kept until the test
 * answers them, and timers until it lets time pass.
 */
#ifndef UNIT_ABSENT_H
#define UNIT_ABSENT_H

#include "collection/copies/absences.h"
#include "unit.h"

enum { SERVERS = 4, PROXIES = 3, MANY = 8000, START = 1000000 };

/* A call that a proxy has sent. It may be executed some time before its result arrives. */
struct sent {
	struct call call;
	struct waiter *waiter;
	struct result result;
	bool executed, answered;
	int proxy;
	char key[32], value[STAMP_DIGITS + 2], found[STAMP_DIGITS + 2];
};

struct item {
	char value[STAMP_DIGITS + 2];
	uint64_t cas; /* 0: it is missing */
};

struct proxy {
	struct env env;
	struct absences *absences;
	struct stamp_clock stamps;
	struct timer {
		struct waiter *waiter;
		uint64_t at;
	} timers[SERVERS];
	size_t timer_count;
};

struct asked {
	struct absence_waiter waiter;
	int results;
	bool ok;
	int order; /* of the results */
};

static const char *const names[SERVERS] = { "a:1", "b:2", "c:3", "d:4" };
static const struct result nothing;
static struct proxy proxies[PROXIES];
static struct item items[SERVERS][SERVERS]; /* for each witness, the absence of each server */
static struct sent sent[MANY];
static size_t sent_count;
static uint64_t unix_ms, last_cas;
static int servers, result_count;

static void send_call(struct env *env, const struct call *call, struct waiter *waiter)
{
	struct sent *s = &sent[sent_count++];

	ck_assert_uint_le(sent_count, MANY);
	ck_assert_uint_lt(call->key.n, sizeof(s->key));
	ck_assert_uint_lt(call->value.n, sizeof(s->value));
	ck_assert(slice_equal(call->key, waiter->key));
	*s = (struct sent){ .call = *call, .waiter = waiter };
	s->proxy = (int)((struct proxy *)env - proxies);
	slice_write(s->key, call->key);
	slice_write(s->value, call->value);
}

static void set_timer(struct env *env, struct waiter *waiter, unsigned ms)
{
	struct proxy *p = (struct proxy *)env;

	ck_assert_uint_lt(p->timer_count, SERVERS);
	p->timers[p->timer_count++] = (struct timer){ waiter, env->now + ms };
}

static struct slice name_of(void *arg, int server)
{
	(void)arg;
	return slice_of(names[server], strlen(names[server]));
}

static uint64_t read_clock(void *arg)
{
	(void)arg;
	return unix_ms;
}

static void start_proxies(int server_count)
{
	servers = server_count;
	unix_ms = START;
	sent_count = last_cas = 0;
	result_count = 0;
	memset(items, 0, sizeof(items));
	for (int i = 0; i < PROXIES; i++) {
		struct proxy *p = &proxies[i];
		*p = (struct proxy){ .env = { .later = set_timer, .now = 7 } };
		p->absences = absences_create(&(struct absences_options){
			.env = &p->env,
			.call = send_call,
			.name = name_of,
			.clock = read_clock,
			.servers = servers,
			.stamps = &p->stamps,
		});
	}
}

static void end_proxies(void)
{
	for (size_t i = 0; i < sent_count; i++)
		ck_assert(sent[i].answered);
	for (int i = 0; i < PROXIES; i++) {
		ck_assert_uint_eq(proxies[i].timer_count, 0);
		ck_assert(absences_idle(proxies[i].absences));
		absences_destroy(proxies[i].absences);
	}
	absences_destroy(NULL);
}

static void start_four(void)
{
	start_proxies(SERVERS);
}

/* For three servers instead. */
static void restart(int server_count)
{
	end_proxies();
	start_proxies(server_count);
}

/* --- servers --- */

static struct item *item_of(const struct sent *s)
{
	int y = 0;

	ck_assert_uint_eq(strncmp(s->key, "@absent.", 8), 0);
	while (strcmp(names[y], s->key + 8) != 0)
		ck_assert_int_lt(++y, servers);
	return &items[s->call.server][y];
}

/* Replaces an item, as another proxy does. */
static void has_item(int witness, int server, uint64_t stamp)
{
	struct buf text = BUF_EMPTY;

	stamp_add(&text, stamp);
	slice_write(items[witness][server].value, buf_slice(&text));
	items[witness][server].cas = ++last_cas;
	buf_free(&text);
}

static uint64_t stored(int witness, int server)
{
	const struct item *item = &items[witness][server];

	return item->cas ? stamp_parse(item->value) : 0;
}

static void execute(size_t i)
{
	struct sent *s = &sent[i];
	struct item *item = item_of(s);
	bool has = item->cas, stores = s->call.verb != CALL_GET;

	ck_assert(!s->executed);
	s->executed = true;
	if (s->call.verb == CALL_GET) {
		s->result.status = has ? RESULT_HIT : RESULT_MISS;
		strcpy(s->found, item->value);
		s->result.value = slice_of(s->found, strlen(s->found));
		s->result.cas = item->cas;
		s->result.connection = 5;
		return;
	}
	if (s->call.verb == CALL_ADD) {
		stores = !has;
		s->result.status = has ? RESULT_NOT_STORED : RESULT_DONE;
	} else {
		ck_assert_int_eq(s->call.verb, CALL_CAS);
		ck_assert_uint_eq(s->call.connection, 5);
		stores = has && item->cas == s->call.number;
		s->result.status = !has ? RESULT_MISS : stores ? RESULT_DONE : RESULT_EXISTS;
	}
	ck_assert_uint_eq(s->call.flags, 0);
	ck_assert_int_eq(s->call.exptime, 0);
	ck_assert_uint_eq(s->call.value.n, STAMP_DIGITS);
	if (!stores)
		return;
	ck_assert_uint_gt(stamp_parse(s->value), has ? stamp_parse(item->value) : 0);
	strcpy(item->value, s->value);
	item->cas = ++last_cas;
}

static void deliver(size_t i, enum result_status status)
{
	sent[i].answered = true;
	sent[i].result.status = status;
	sent[i].waiter->done(sent[i].waiter, &sent[i].result);
}

static void answer(size_t i)
{
	ck_assert_uint_lt(i, sent_count);
	if (!sent[i].executed)
		execute(i);
	deliver(i, sent[i].result.status);
}

static void fail_call(size_t i, enum result_status status)
{
	ck_assert_uint_lt(i, sent_count);
	ck_assert(!sent[i].answered);
	deliver(i, status);
}

/* Answers all calls that are and will be pending, but fails the ones to these servers. */
static void answer_all(unsigned failing)
{
	for (size_t i = 0; i < sent_count; i++) {
		if (sent[i].answered)
			continue;
		if (failing >> sent[i].call.server & 1)
			fail_call(i, RESULT_UNAVAILABLE);
		else
			answer(i);
	}
}

static void run_timers(struct proxy *p)
{
	for (size_t i = 0; i < p->timer_count; i++) {
		struct waiter *waiter = p->timers[i].waiter;
		if (p->timers[i].at > p->env.now)
			continue;
		p->timers[i--] = p->timers[--p->timer_count];
		waiter->done(waiter, &nothing);
	}
}

static void pass(uint64_t ms)
{
	unix_ms += ms;
	for (int i = 0; i < PROXIES; i++) {
		proxies[i].env.now += ms;
		run_timers(&proxies[i]);
	}
}

/* --- requests --- */

static void on_done(struct absence_waiter *waiter, bool ok)
{
	struct asked *a = (struct asked *)waiter;

	a->results++;
	a->ok = ok;
	a->order = ++result_count;
}

static bool reads(struct asked *a)
{
	*a = (struct asked){ .waiter = { .done = on_done } };
	return absences_request(proxies[0].absences, &a->waiter);
}

static bool raises(int server, struct asked *a)
{
	*a = (struct asked){ .waiter = { .done = on_done } };
	return absences_raise(proxies[0].absences, server, &a->waiter);
}

#define has_none(a) ck_assert_int_eq((a).results, 0)
#define has_result(a, ok_) \
	do { \
		ck_assert_int_eq((a).results, 1); \
		ck_assert_int_eq((a).ok, (ok_)); \
	} while (0)

/* The stamp up to which a server that is absent now must be. */
static uint64_t until_now(void)
{
	return stamp_at(unix_ms + ABSENCE_SKEW_MS);
}

static const uint64_t ahead = (uint64_t)ABSENCE_AHEAD_MS << STAMP_COUNTER_BITS;

/* Raises the absence of a server by a proxy to which all witnesses answer. */
static void is_raised(int server)
{
	struct asked a;

	ck_assert(!raises(server, &a));
	answer_all(0);
	pass(ABSENCE_WAIT_MS);
	has_result(a, true);
}

#endif
