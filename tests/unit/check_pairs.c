/*
 * The programs of sets with two copies, step by step: two proxies whose clocks differ, and servers
 * in memory, of which each can be down. A set has its first copy on the first server and its second
 * one on the second.
 */
#include "collection/copies/copies.h"
#include "collection/copies/copy.h"
#include "collection/copies/stamp.h"
#include "collection/text/part_key.h"
#include "memcached.h"
#include "unit.h"
#include "util/alloc.h"

enum { SERVERS = 4, PROXIES = 2, QUEUE = 256, START = 1700000000, SECOND = 1000 };

/* A call whose result has not been delivered yet, or a timer. */
struct letter {
	struct call call;
	char *bytes; /* NULL: a timer */
	struct waiter *waiter;
	uint64_t due; /* milliseconds */
};

struct proxy {
	struct env env;
	struct pool pool;
	struct copies *copies;
	int64_t ahead; /* milliseconds of its clock */
	struct letter letters[QUEUE];
	size_t count;
};

static struct memcached *servers[SERVERS];
static bool down[SERVERS];
static struct proxy proxies[PROXIES];
static struct collection_rule rule;
static struct rules rules;
static uint64_t now; /* milliseconds since the start */

/* The result of the last request. */
static struct result got;
static struct buf got_value;
static unsigned ends;

static const char *const first = "s", *const second = "s.~copy";

/* --- the network --- */

static void queue_letter(struct env *env, struct letter letter)
{
	struct proxy *p = (struct proxy *)env;

	ck_assert_uint_lt(p->count, QUEUE);
	if (letter.bytes)
		letter.bytes = memcached_keep_call(&letter.call);
	p->letters[p->count++] = letter;
}

static void send_call(struct env *env, const struct call *call, struct waiter *waiter)
{
	static char kept[1];
	struct letter letter = { .call = *call, .bytes = kept, .waiter = waiter, .due = now };

	if (call->server == CALL_ANY_SERVER)
		letter.call.server = part_key_is_second(call->key);
	queue_letter(env, letter);
}

static void set_timer(struct env *env, struct waiter *waiter, unsigned ms)
{
	queue_letter(env, (struct letter){ .waiter = waiter, .due = now + ms });
}

static struct result executed(const struct call *call)
{
	struct result r;

	if (down[call->server])
		return (struct result){ .status = RESULT_UNAVAILABLE };
	r = memcached_call(servers[call->server], call, (START + now / SECOND) * SECOND);
	r.connection = (uint64_t)call->server + 1;
	return r;
}

static void deliver(struct proxy *p, size_t i)
{
	struct letter letter = p->letters[i];
	struct result r = { .status = RESULT_DONE };
	struct buf value = BUF_EMPTY;

	memmove(&p->letters[i], &p->letters[i + 1], (p->count - i - 1) * sizeof(letter));
	p->count--;
	p->env.now = now;
	if (letter.bytes)
		r = executed(&letter.call);
	buf_add_slice(&value, r.value);
	r.value = buf_slice(&value);
	letter.waiter->done(letter.waiter, &r);
	buf_free(&value);
	free(letter.bytes);
}

/* Delivers what is due first, unless that is after this time. Returns whether it did. */
static bool step(uint64_t until)
{
	struct proxy *next = NULL;
	size_t at = 0;

	for (int i = 0; i < PROXIES; i++) {
		for (size_t k = 0; k < proxies[i].count; k++) {
			if (next && next->letters[at].due <= proxies[i].letters[k].due)
				continue;
			next = &proxies[i];
			at = k;
		}
	}
	if (!next || next->letters[at].due > until)
		return false;
	now = next->letters[at].due > now ? next->letters[at].due : now;
	deliver(next, at);
	return true;
}

static void pass(uint64_t seconds)
{
	uint64_t until = now + seconds * SECOND;

	while (step(until))
		;
	now = until;
}

/* --- proxies --- */

static int place_of(void *arg, struct slice key, int *former)
{
	(void)arg;
	*former = part_key_is_second(key);
	return *former;
}

static struct slice name_of(void *arg, int server)
{
	static const char *const names[SERVERS] = { "a:1", "b:2", "c:3", "d:4" };

	(void)arg;
	return slice_of(names[server], strlen(names[server]));
}

static uint64_t clock_of(void *arg)
{
	const struct proxy *p = arg;

	return ((uint64_t)START * SECOND + now + (uint64_t)p->ahead) * 1000;
}

static void set_up(void)
{
	now = 5000;
	rule = rules_default_collection;
	rule.prefix = SLICE("s");
	rule.copies = 2;
	rules = (struct rules){ .collections = &rule, .collection_count = 1, .copies = true };
	for (int i = 0; i < SERVERS; i++) {
		servers[i] = xcalloc(1, sizeof(*servers[i]));
		servers[i]->cas = (uint64_t)i * 1000;
		down[i] = false;
	}
	for (int i = 0; i < PROXIES; i++) {
		struct proxy *p = &proxies[i];
		*p = (struct proxy){ .env = { .call = send_call,
					     .later = set_timer,
					     .now = now,
					     .unix_time = START,
					     .rules = &rules } };
		p->env.pool = &p->pool;
		p->copies = copies_create(&(struct copies_options){
			.env = &p->env,
			.call = send_call,
			.place = place_of,
			.name = name_of,
			.clock = clock_of,
			.arg = p,
			.servers = SERVERS,
			.timeout = COPIES_TIMEOUT,
		});
	}
}

static void tear_down(void)
{
	for (int i = 0; i < PROXIES; i++)
		copies_stop(proxies[i].copies);
	pass(60);
	for (int i = 0; i < PROXIES; i++) {
		ck_assert(copies_idle(proxies[i].copies));
		copies_destroy(proxies[i].copies);
		pool_free(&proxies[i].pool);
	}
	for (int i = 0; i < SERVERS; i++) {
		memcached_restart(servers[i]);
		free(servers[i]);
	}
	buf_free(&got_value);
}

FIXTURE(set_up, tear_down)

/* --- requests --- */

static void on_result(struct waiter *waiter, const struct result *r)
{
	(void)waiter;
	got = *r;
	buf_consume(&got_value, buf_size(&got_value));
	buf_add_slice(&got_value, r->value);
	ends++;
}

static enum result_status does(int proxy, struct call call)
{
	struct proxy *p = &proxies[proxy];
	struct waiter waiter = { on_result, slice_of(first, strlen(first)) };

	call.key = waiter.key;
	call.server = CALL_ANY_SERVER;
	ends = 0;
	p->env.now = now;
	copies_call(p->copies, &call, &waiter);
	while (!ends)
		ck_assert(step(now + 60 * SECOND));
	return got.status;
}

static struct slice text(const char *s)
{
	return slice_of(s, strlen(s));
}

static enum result_status appends(int proxy, const char *words)
{
	return does(proxy,
		(struct call){
			.verb = CALL_APPEND, .value = text(words), .role = { .creates = true } });
}

static void creates(int proxy, const char *words)
{
	ck_assert_int_eq(appends(proxy, words), RESULT_NOT_STORED);
	ck_assert_int_eq(does(proxy,
				 (struct call){ .verb = CALL_ADD,
					 .value = text(words),
					 .role = { .change = CHANGE_WORDS } }),
		RESULT_DONE);
}

/* Replaces the set, as a client does that has read it. */
static void replaces(int proxy, const char *base)
{
	ck_assert_int_eq(
		does(proxy, (struct call){ .verb = CALL_GET, .want = WANT_VALUE | WANT_CAS }),
		RESULT_HIT);
	ck_assert_int_eq(does(proxy,
				 (struct call){ .verb = CALL_CAS,
					 .value = text(base),
					 .number = got.cas,
					 .connection = got.connection }),
		RESULT_DONE);
}

/* The words of the set in their order; NULL if it is missing. */
static void reads(int proxy, const char *words)
{
	enum result_status status = does(
		proxy, (struct call){ .verb = CALL_GET, .want = WANT_VALUE, .only_reads = true });

	ck_assert_int_eq(status, words ? RESULT_HIT : RESULT_MISS);
	if (words)
		assert_bytes(buf_slice(&got_value), words);
}

static struct memcached_item *item(int server)
{
	return memcached_find(
		servers[server], text(server ? second : first), (START + now / SECOND) * SECOND);
}

static void loses(int server)
{
	ck_assert_ptr_nonnull(item(server));
	memcached_remove(item(server));
}

static void assert_equal_copies(void)
{
	ck_assert(slice_equal(buf_slice(&item(0)->value), buf_slice(&item(1)->value)));
}

static void deletes(int proxy)
{
	ck_assert_int_eq(does(proxy, (struct call){ .verb = CALL_DELETE }), RESULT_DONE);
}

/* --- tests --- */

/* The clock of the first proxy is ahead, and words of the other one follow what it does. */
enum { AHEAD = 1500 };

TEST(both_have_the_words)
{
	creates(0, "+a ");
	pass(1);
	ck_assert_int_eq(appends(1, "+b "), RESULT_DONE);
	reads(0, "+a +b ");
	assert_equal_copies();
}

TEST(a_word_follows_a_deletion)
{
	proxies[0].ahead = AHEAD;
	creates(0, "+a ");
	pass(20);
	deletes(0);
	reads(1, NULL);
	ck_assert_int_eq(appends(1, "+b "), RESULT_DONE);
	reads(0, "+b ");
}

TEST(a_word_follows_a_replacement)
{
	proxies[0].ahead = AHEAD;
	creates(0, "+a ");
	pass(20);
	replaces(0, "+x +y ");
	ck_assert_int_eq(appends(1, "+z "), RESULT_DONE);
	reads(0, "+x +y +z ");
}

/* What was there before does not come back with it. */
TEST(a_deletion_has_all_words)
{
	proxies[0].ahead = AHEAD;
	creates(1, "+a ");
	ck_assert_int_eq(appends(0, "+b "), RESULT_DONE);
	deletes(1);
	reads(0, NULL);
	ck_assert_int_eq(appends(0, "+c "), RESULT_DONE);
	reads(1, "+c ");
}

/* The second server was just absent, so one that is empty decides nothing: the set is lost. */
TEST(a_word_follows_a_loss)
{
	enum { ABSENT = 6 /* seconds; an absence is some seconds ahead */ };

	creates(1, "+a ");
	pass(20);
	deletes(1);
	down[1] = true;
	reads(1, NULL);
	down[1] = false;
	pass(ABSENT);
	loses(0);
	proxies[0].ahead = AHEAD;
	reads(0, NULL);
	if (appends(1, "+b ") != RESULT_DONE)
		creates(1, "+b ");
	reads(0, "+b ");
}

/* A repair has put the first copy back, which may lack words of before. */
TEST(a_replaced_set_lacks_none)
{
	creates(0, "+a ");
	pass(20);
	replaces(0, "+x ");
	loses(0);
	reads(1, "+x ");
	pass(4);
	ck_assert_ptr_nonnull(item(0));
	replaces(0, "+y ");
	loses(1);
	reads(1, "+y ");
}

/* A server that carries out a touch late must not touch a later set. */
TEST(a_touch_is_a_cas)
{
	uint64_t cas;

	creates(0, "+a ");
	cas = item(0)->cas;
	ck_assert_int_eq(
		does(0, (struct call){ .verb = CALL_TOUCH, .exptime = START + 1000 }), RESULT_DONE);
	ck_assert_uint_ne(item(0)->cas, cas);
	ck_assert_int_eq(item(0)->expires, START + 1000);
	ck_assert_int_eq(item(1)->expires, START + 1000);
}

TEST(a_word_without_a_server)
{
	creates(0, "+a ");
	down[1] = true;
	ck_assert_int_eq(appends(0, "+b "), RESULT_DONE);
	ck_assert(copies_is_absent(proxies[0].copies, 1));
	reads(1, "+a +b ");
	down[1] = false;
	reads(1, "+a +b ");
	pass(60);
	assert_equal_copies();
}

/* The largest stamp of a copy. */
static uint64_t last_stamp(int server)
{
	struct copy copy;

	ck_assert(copy_parse(buf_slice(&item(server)->value), &copy));
	return copy_last_stamp(&copy);
}

/* A read finds a set lost to which words were just added, which must know that they are void. */
TEST(a_loss_has_all_words)
{
	uint64_t last;

	creates(0, "+a ");
	pass(20);
	loses(1);
	down[1] = true;
	ck_assert_int_eq(appends(1, "+b "), RESULT_DONE);
	down[1] = false;
	down[0] = true;
	ck_assert_int_eq(appends(1, "+c "), RESULT_NOT_STORED);
	down[0] = false;
	last = last_stamp(0);
	reads(0, NULL);
	ck_assert_uint_ge(last_stamp(0), last);
	ck_assert_uint_ge(last_stamp(1), last);
	ck_assert_int_eq(appends(0, "+d "), RESULT_DONE);
	reads(1, "+d ");
}
