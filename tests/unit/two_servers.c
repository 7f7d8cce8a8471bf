#include "two_servers.h"

#include "util/alloc.h"

struct memcached *servers[2];
struct proxy proxies[2];
struct result got;
struct buf got_value;
unsigned ends;

static void send_letter(struct env *env, const struct call *call, struct waiter *waiter)
{
	struct proxy *p = (struct proxy *)env;
	struct letter *letter = &p->letters[p->sent++ % QUEUE];

	ck_assert_uint_le(p->sent - p->answered, QUEUE);
	*letter = (struct letter){ .call = *call, .waiter = waiter };
	letter->bytes = memcached_keep_call(&letter->call);
	p->calls[call->server]++;
	if (memchr(call->key.p, ' ', call->key.n) &&
		(!(call->want & WANT_ENCODED) || call->verb == CALL_TOUCH))
		p->bare++;
}

/* A timer, queued with the letters. */
static void send_timer(struct env *env, struct waiter *waiter, unsigned ms)
{
	struct proxy *p = (struct proxy *)env;

	p->env.now += ms;
	p->env.unix_time += ms ? 1 : 0;
	p->letters[p->sent++ % QUEUE] = (struct letter){ .call.server = -1, .waiter = waiter };
}

static void execute(struct proxy *p, struct letter *letter)
{
	if (letter->executed || letter->call.server < 0)
		return;
	letter->executed = true;
	letter->result = memcached_call(
		servers[letter->call.server], &letter->call, (uint64_t)p->env.unix_time * 1000);
	letter->result.connection = (uint64_t)letter->call.server + 1;
	/* The item may change before the result is delivered. */
	if (letter->result.value.n) {
		buf_add_slice(&letter->value, letter->result.value);
		letter->result.value = buf_slice(&letter->value);
	}
	if (letter->call.verb == CALL_STATS)
		letter->result.line = letter->result.value;
}

void execute_all(struct proxy *p)
{
	for (size_t i = p->answered; i < p->sent; i++)
		execute(p, &p->letters[i % QUEUE]);
}

bool step(struct proxy *p)
{
	struct letter *letter = &p->letters[p->answered % QUEUE];
	struct waiter *waiter = letter->waiter;
	char *bytes = letter->bytes;
	struct result r;
	struct buf value;

	if (p->answered == p->sent)
		return false;
	p->answered++;
	execute(p, letter);
	r = letter->result;
	value = letter->value;
	waiter->done(waiter, &r);
	buf_free(&value);
	free(bytes);
	return true;
}

void run(struct proxy *p)
{
	while (step(p))
		;
}

/* Parts are on the server of their base. Keys that begin with = do not move. */
static int place_of(void *arg, struct slice key, int *former)
{
	(void)arg;
	*former = O;
	return *key.p == '=' ? O : N;
}

void two_servers_set_up(void)
{
	for (int i = 0; i < 2; i++) {
		struct proxy *p = &proxies[i];
		servers[i] = xcalloc(1, sizeof(*servers[i]));
		servers[i]->cas = (uint64_t)i * 1000000;
		*p = (struct proxy){ .env = { .call = send_letter,
					     .later = send_timer,
					     .now = 5000,
					     .unix_time = AT,
					     .seed = 7 } };
		p->moves = moves_create(
			&(struct moves_options){ &p->env, place_of, NULL, AT, MARGIN });
	}
}

void two_servers_tear_down(void)
{
	for (int i = 0; i < 2; i++) {
		run(&proxies[i]);
		ck_assert(moves_idle(proxies[i].moves));
		moves_destroy(proxies[i].moves);
		memcached_restart(servers[i]);
		free(servers[i]);
	}
}

void on_result(struct waiter *waiter, const struct result *r)
{
	(void)waiter;
	got = *r;
	buf_free(&got_value);
	buf_add_slice(&got_value, r->value);
	ends++;
}

struct slice text(const char *s)
{
	return slice_of(s, strlen(s));
}

void put(int server, const char *key, const char *value, int64_t exptime)
{
	struct call call = { .verb = CALL_SET,
		.key = text(key),
		.value = text(value),
		.exptime = exptime,
		.flags = 5 };

	memcached_call(servers[server], &call, (uint64_t)AT * 1000);
}

void put_bytes(int server, const char *key, struct slice value)
{
	struct call call = { .verb = CALL_SET, .key = text(key), .value = value };

	memcached_call(servers[server], &call, (uint64_t)AT * 1000);
}

void put_mark(int server, const char *key, const struct buf *mark)
{
	struct call call = {
		.verb = CALL_SET, .key = text(key), .value = buf_slice(mark), .flags = MARK_FLAGS
	};

	memcached_call(servers[server], &call, (uint64_t)AT * 1000);
}

struct memcached_item *item(int server, const char *key)
{
	return memcached_find(servers[server], text(key), (uint64_t)AT * 1000);
}

void has(int server, const char *key, const char *value)
{
	struct memcached_item *found = item(server, key);

	ck_assert_msg(!found == !value, "server %d, %s", server, key);
	if (found)
		assert_bytes(buf_slice(&found->value), value);
}

void sends(struct proxy *p, enum call_verb verb, const char *key, const char *value,
	struct waiter *waiter)
{
	*waiter = (struct waiter){ on_result, text(key) };
	moves_call(p->moves,
		&(struct call){ .verb = verb,
			.want = verb == CALL_GET ? WANT_VALUE : 0,
			.only_reads = verb == CALL_GET,
			.server = CALL_ANY_SERVER,
			.key = text(key),
			.value = text(value),
			.number = 1 },
		waiter);
}

void does(struct proxy *p, enum call_verb verb, const char *key, const char *value)
{
	struct waiter waiter;

	ends = 0;
	sends(p, verb, key, value, &waiter);
	ck_assert_uint_eq(ends, 0);
	run(p);
	ck_assert_uint_eq(ends, 1);
}

void reads(struct proxy *p, const char *key, const char *value)
{
	does(p, CALL_GET, key, "");
	ck_assert_int_eq(got.status, value ? RESULT_HIT : RESULT_MISS);
	if (value)
		assert_bytes(buf_slice(&got_value), value);
	buf_free(&got_value);
}

void steps(struct proxy *p, int count)
{
	while (count-- > 0)
		ck_assert(step(p));
}

void put_claim(const char *key)
{
	struct buf mark = BUF_EMPTY;

	mark_add_claim(&mark, text(key));
	put_mark(N, key, &mark);
	buf_free(&mark);
}
