/* Reads from memory: a layer with a list of calls in place of the servers, and two workers. */
#include "collection/fresh/fresh.h"

#include "unit.h"

enum { MANY = 400, LIMIT = 1 << 16, LARGEST = LIMIT / 16, WORKERS = 2 };

struct worker {
	struct env env;
	struct fresh *fresh;
	struct waiter *soon;
	bool later;
};

/* A call that was not answered. */
struct sent {
	struct call call;
	struct waiter *waiter;
	char bytes[64];
};

/* A client's request. */
struct asked {
	struct waiter waiter;
	struct result result;
	int results;
	char value[LARGEST];
};

static const struct item_rule items[] = { { BYTES("hot-"), 100 }, { BYTES("hot-not-"), 0 } };
static const struct rules rules = { .items = items, .item_count = 2, .fresh = true };
static struct worker workers[WORKERS];
static struct fresh_slots slots;
static struct fresh_stats stats;
static struct pool pool;
static struct sent sent[MANY];
static size_t sent_count, answered;
static struct asked requests[MANY];
static size_t request_count;
static uint64_t clock_now;
static bool others;

static void send_call(struct env *env, const struct call *call, struct waiter *waiter)
{
	struct sent *s = &sent[sent_count++];

	(void)env;
	s->call = *call;
	s->waiter = waiter;
	slice_write(s->bytes, call->key);
	s->call.key = slice_of(s->bytes, call->key.n);
}

static uint64_t tell_clock(struct env *env)
{
	(void)env;
	return clock_now;
}

static uint64_t tell_later(struct env *env)
{
	(void)env;
	return clock_now + 7;
}

static void run_soon(struct env *env, struct waiter *waiter, bool later)
{
	((struct worker *)env)->soon = waiter;
	((struct worker *)env)->later = later;
}

static bool is_usable(struct env *env)
{
	(void)env;
	return !others;
}

static void start_fresh(void)
{
	clock_now = 1000;
	sent_count = answered = request_count = 0;
	others = false;
	memset(&slots, 0, sizeof(slots));
	stats = (struct fresh_stats){ 0 };
	for (int i = 0; i < WORKERS; i++) {
		struct worker *w = &workers[i];
		*w = (struct worker){ .env = { .rules = &rules, .pool = &pool } };
		w->fresh = fresh_create(&(struct fresh_options){
			.env = &w->env,
			.call = send_call,
			.clock = tell_clock,
			.not_before = tell_later,
			.soon = run_soon,
			.usable = is_usable,
			.slots = &slots,
			.stats = &stats,
			.limit = LIMIT,
		});
	}
}

static void end_fresh(void)
{
	ck_assert_uint_eq(answered, sent_count);
	for (int i = 0; i < WORKERS; i++)
		fresh_destroy(workers[i].fresh);
	ck_assert_uint_eq(stats.bytes, 0);
	pool_free(&pool);
}

static void on_reply(struct waiter *waiter, const struct result *r)
{
	struct asked *request = (struct asked *)waiter;

	request->results++;
	request->result = *r;
	memcpy(request->value, r->value.p, r->value.n);
	request->result.value.p = request->value;
}

static struct asked *ask(int worker, struct call call)
{
	struct asked *request = &requests[request_count++];

	*request = (struct asked){ .waiter = { on_reply, call.key } };
	fresh_call(workers[worker].fresh, &call, &request->waiter);
	ck_assert_int_eq(request->results, 0);
	return request;
}

static struct call get_of(const char *key)
{
	return (struct call){ .verb = CALL_GET,
		.want = WANT_VALUE,
		.server = CALL_ANY_SERVER,
		.key = slice_of(key, strlen(key)),
		.only_reads = true };
}

static struct call set_of(const char *key, const char *value)
{
	return (struct call){ .verb = CALL_SET,
		.server = CALL_ANY_SERVER,
		.key = slice_of(key, strlen(key)),
		.value = slice_of(value, strlen(value)) };
}

static struct asked *get(int worker, const char *key)
{
	return ask(worker, get_of(key));
}

/* Answers the call with this number. */
static void answer(size_t i, enum result_status status, const char *value)
{
	struct result r = { .status = status, .value = slice_of(value, strlen(value)) };

	ck_assert_uint_lt(i, sent_count);
	answered++;
	sent[i].waiter->done(sent[i].waiter, &r);
}

/* Ends the turn of a worker. Returns whether it delivered results. */
static bool turn(int worker)
{
	static const struct result nothing;
	struct waiter *soon = workers[worker].soon;

	workers[worker].soon = NULL;
	if (soon)
		soon->done(soon, &nothing);
	return soon;
}

static void hears(const struct asked *request, const char *value)
{
	ck_assert_int_eq(request->results, 1);
	ck_assert_int_eq(request->result.status, RESULT_HIT);
	assert_bytes(request->result.value, value);
}

/* A read of the key by the worker is answered from memory. */
static void recalls(int worker, const char *key, const char *value)
{
	size_t before = sent_count;
	struct asked *request = get(worker, key);

	ck_assert_uint_eq(sent_count, before);
	ck_assert(turn(worker));
	hears(request, value);
	ck_assert(request->result.recalled);
}

/* A read of the key by the worker is a call, which is answered with the value. */
static void reads(int worker, const char *key, const char *value)
{
	size_t before = sent_count;
	struct asked *request = get(worker, key);

	ck_assert_uint_eq(sent_count, before + 1);
	answer(before, RESULT_HIT, value);
	hears(request, value);
	ck_assert(!request->result.recalled);
}

FIXTURE(start_fresh, end_fresh)

TEST(a_read_is_repeated_from_memory)
{
	reads(0, "hot-k", "x");
	clock_now += 99;
	recalls(0, "hot-k", "x");
	clock_now += 1;
	reads(0, "hot-k", "y");
	ck_assert_uint_eq(stats.hits, 1);
	ck_assert_uint_eq(stats.misses, 2);
}

TEST(only_keys_with_a_rule)
{
	reads(0, "k", "x");
	reads(0, "k", "x");
	reads(0, "hot-not-k", "x");
	reads(0, "hot-not-k", "x");
	ck_assert_uint_eq(stats.misses, 0);
}

/* The server may have answered the call right after it was sent. */
TEST(the_age_counts_from_the_call)
{
	struct asked *first = get(0, "hot-k"), *second;

	clock_now += 60;
	second = get(0, "hot-k");
	ck_assert_uint_eq(sent_count, 1);
	answer(0, RESULT_HIT, "x");
	hears(first, "x");
	turn(0);
	hears(second, "x");
	clock_now += 39;
	recalls(0, "hot-k", "x");
	clock_now += 1;
	reads(0, "hot-k", "y");
	ck_assert_uint_eq(stats.shared, 1);
}

TEST(a_call_that_takes_long_is_not_shared)
{
	(void)get(0, "hot-k");
	clock_now += 100;
	(void)get(0, "hot-k");
	ck_assert_uint_eq(sent_count, 2);
	answer(0, RESULT_HIT, "x");
	answer(1, RESULT_HIT, "y");
	recalls(0, "hot-k", "y");
}

TEST(a_miss_is_kept_and_a_failure_is_not)
{
	struct asked *request = get(0, "hot-k");

	answer(0, RESULT_LOST, "");
	ck_assert_int_eq(request->result.status, RESULT_LOST);
	(void)get(0, "hot-k");
	answer(1, RESULT_MISS, "");
	request = get(0, "hot-k");
	ck_assert_uint_eq(sent_count, 2);
	turn(0);
	ck_assert_int_eq(request->result.status, RESULT_MISS);
}

/* All that share a call receive its failure. */
TEST(a_failure_is_shared)
{
	struct asked *first = get(0, "hot-k"), *second = get(0, "hot-k");

	answer(0, RESULT_UNAVAILABLE, "");
	turn(0);
	ck_assert_int_eq(first->result.status, RESULT_UNAVAILABLE);
	ck_assert_int_eq(second->result.status, RESULT_UNAVAILABLE);
	reads(0, "hot-k", "x");
}

/* From the start of a write to its end, and after it, as another worker has it in memory, too. */
TEST(a_write_is_seen_at_once_by_all_workers)
{
	const enum call_verb verbs[] = { CALL_APPEND, CALL_INCR, CALL_DELETE, CALL_TOUCH, CALL_GAT,
		CALL_CAS, CALL_DISCARD };

	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		struct call write = set_of("hot-k", "z");
		size_t at;
		write.verb = verbs[i];
		clock_now += 100;
		reads(0, "hot-k", "x");
		reads(1, "hot-k", "x");
		recalls(1, "hot-k", "x");
		at = sent_count;
		(void)ask(0, write);
		reads(0, "hot-k", "y");
		reads(1, "hot-k", "x");
		reads(1, "hot-k", "y");
		answer(at, RESULT_MISS, "");
		reads(0, "hot-k", "y");
		reads(1, "hot-k", "y");
		recalls(1, "hot-k", "y");
	}
}

/* The read may be carried out before the write, and its reply arrives after that of the write. */
TEST(a_read_that_was_sent_before_a_write)
{
	struct asked *before = get(1, "hot-k"), *after;

	(void)ask(0, set_of("hot-k", "y"));
	answer(1, RESULT_NOT_STORED, "");
	after = get(1, "hot-k");
	ck_assert_uint_eq(sent_count, 3);
	answer(0, RESULT_HIT, "x");
	hears(before, "x");
	answer(2, RESULT_HIT, "y");
	hears(after, "y");
	recalls(1, "hot-k", "y");
}

TEST(a_stored_item_is_kept)
{
	(void)ask(0, set_of("hot-k", "x"));
	clock_now += 50;
	answer(0, RESULT_DONE, "");
	recalls(0, "hot-k", "x");
	reads(1, "hot-k", "x");
	clock_now += 50;
	reads(0, "hot-k", "y");
}

TEST(what_may_have_been_replaced_is_not_kept)
{
	(void)ask(0, set_of("hot-k", "x"));
	(void)ask(1, set_of("hot-k", "y"));
	answer(0, RESULT_DONE, "");
	answer(1, RESULT_DONE, "");
	reads(0, "hot-k", "y");
	reads(1, "hot-k", "y");
	(void)ask(0, set_of("hot-k", "z"));
	answer(4, RESULT_TIMED_OUT, "");
	reads(0, "hot-k", "y");
}

TEST(an_item_that_expires_soon_is_not_kept)
{
	struct call set = set_of("hot-k", "x");

	set.exptime = 1;
	(void)ask(0, set);
	answer(0, RESULT_DONE, "");
	reads(0, "hot-k", "x");
	set.exptime = -1;
	(void)ask(0, set);
	answer(2, RESULT_DONE, "");
	reads(0, "hot-k", "");
}

TEST(flush_all_is_seen_at_once)
{
	const struct call flush = { .verb = CALL_FLUSH_ALL, .server = 0 };

	reads(0, "hot-k", "x");
	reads(1, "hot-l", "x");
	(void)ask(0, flush);
	reads(1, "hot-l", "x");
	answer(2, RESULT_DONE, "");
	reads(0, "hot-k", "y");
	reads(1, "hot-l", "y");
}

/* Reads that a write depends on, and those that were inconsistent, ask the server. */
TEST(some_reads_ask_the_server)
{
	struct call call = get_of("hot-k");

	reads(0, "hot-k", "x");
	call.only_reads = READS_LATEST;
	(void)ask(0, call);
	call = get_of("hot-k");
	call.only_reads = 0;
	(void)ask(0, call);
	call = get_of("hot-k");
	call.want = WANT_VALUE | WANT_CAS;
	(void)ask(0, call);
	ck_assert_uint_eq(sent_count, 4);
	for (size_t i = 1; i < 4; i++)
		answer(i, RESULT_HIT, "y");
	/* The reply with more fields is kept. */
	recalls(0, "hot-k", "y");
}

TEST(nothing_is_kept_while_others_write_without_the_rule)
{
	reads(0, "hot-k", "x");
	others = true;
	reads(0, "hot-k", "y");
	(void)ask(0, set_of("hot-k", "z"));
	answer(2, RESULT_DONE, "");
	others = false;
	reads(0, "hot-k", "u");
	recalls(0, "hot-k", "u");
}

TEST(a_time_to_live_passes_in_memory)
{
	static const struct item_rule slow = { BYTES("hot-"), 5000 };
	const struct rules slowly = { .items = &slow, .item_count = 1, .fresh = true };
	struct call call = get_of("hot-k");
	struct result r = { .status = RESULT_HIT, .value = SLICE("x"), .ttl = 3 };
	struct asked *request;

	workers[0].env.rules = &slowly;
	call.want = WANT_VALUE | WANT_TTL;
	(void)ask(0, call);
	answered++;
	sent[0].waiter->done(sent[0].waiter, &r);
	clock_now += 2000;
	request = ask(0, call);
	turn(0);
	ck_assert_int_eq(request->result.ttl, 1);
	clock_now += 1000;
	(void)ask(0, call);
	ck_assert_uint_eq(sent_count, 2);
	answer(1, RESULT_MISS, "");
}

TEST(memory_is_bounded)
{
	static char large[LIMIT];
	char key[32];

	for (int i = 0; i < MANY / 2; i++) {
		snprintf(key, sizeof(key), "hot-%d", i);
		memset(large, 'x', 1000);
		large[1000] = 0;
		reads(0, key, large);
		ck_assert_uint_le(stats.bytes, LIMIT);
	}
	ck_assert_uint_gt(stats.bytes, LIMIT / 2);
	recalls(0, key, large);
	memset(large, 'x', LARGEST);
	large[LARGEST] = 0;
	reads(0, "hot-large", large);
	reads(0, "hot-large", large);
	/* Outdated results are freed by later ones. */
	clock_now += 1000;
	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof(key), "hot-%d", i);
		reads(0, key, "");
	}
	ck_assert_uint_lt(stats.bytes, LIMIT / 2);
}

/* Many reads from memory leave time for other I/O. */
TEST(many_hits_are_delivered_in_turns)
{
	struct asked *last = NULL;
	int turns = 0;

	reads(0, "hot-k", "x");
	for (int i = 0; i < 200; i++)
		last = get(0, "hot-k");
	ck_assert(!workers[0].later);
	while (!last->results) {
		ck_assert(turn(0));
		ck_assert(workers[0].soon ? workers[0].later : last->results == 1);
		turns++;
	}
	ck_assert_int_eq(turns, 4);
}
