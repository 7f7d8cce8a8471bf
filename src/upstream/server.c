#include "upstream/server.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "upstream/news.h"
#include "upstream/server_tell.h"
#include "util/alloc.h"
#include "util/log.h"
#include "util/random.h"

/*
 * Bytes that memcached adds to the key and data of an item: a header, a cas id, the key's NUL
 * and the data's line end; and flags, if there are any.
 */
enum { ITEM_OVERHEAD = 48 + 8 + 1 + 2, ITEM_FLAGS = 4 };

/*
 * If a connection younger than this is lost, that counts as a failed attempt: the pause keeps
 * growing.
 */
enum { STEADY_MS = 1000 };

/* A firewall may have dropped a connection that was idle for this long. */
enum { IDLE_MS = 10000 };

/*
 * Grace period before a timeout: if the whole host was suspended, the server has just resumed,
 * too.
 */
enum { AGAIN_MS = 20 };

/* Results that are delivered between two looks at the clock. */
enum { RESULTS_AT_ONCE = 64 };

static const char *const state_names[SERVER_STATES] = { "down", "connecting", "greeting", "up" };

static void fail(struct server_link *k, enum result_status sent, const char *why);
static void probe(struct server *s);

static void set_state(struct server *s, enum server_state state)
{
	log_debug("upstream %s: %s -> %s", s->name, state_names[s->state], state_names[state]);
	s->state = state;
	if (s->link->probes) {
		atomic_store_explicit(&s->stats.state, (int)SERVER_UP, memory_order_relaxed);
		return;
	}
	s->since = s->loop->now;
	atomic_store_explicit(&s->stats.state, (int)state, memory_order_relaxed);
}

static void count(atomic_uint_fast64_t *counter, uint64_t n)
{
	/* There is one writer, so no atomic addition is needed. */
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
		memory_order_relaxed);
}

static void bump(atomic_uint_fast64_t *counter)
{
	count(counter, 1);
}

/* --- links --- */

static struct server_link *link_of(struct stream *stream)
{
	return (struct server_link *)((char *)stream - offsetof(struct server_link, stream));
}

static void start_timer(struct server_link *k, uint64_t ms)
{
	loop_after(k->server->loop, &k->timer, ms);
	k->again = false;
}

/*
 * If the process was suspended, or a turn was long, a timer may run before the loop has checked
 * all sockets, so there may be unread data from the server. When the timer runs again, the loop
 * has checked them.
 */
static void look_again(struct server_link *k)
{
	start_timer(k, AGAIN_MS);
	k->again = true;
}

static struct pipeline_peer peer_of(struct server_link *k)
{
	struct server *s = k->server;

	return (struct pipeline_peer){ s->name, k->number, s->options->value_max, s->loop->now_us,
		&s->stats.latency, s->options->answer, RESULTS_AT_ONCE };
}

/* Limits the patient calls in flight, which delay the calls of other clients. */
static bool has_place(const struct server *s)
{
	enum { MOST = 1024, PART = 4 };
	size_t queue = s->options->queue, most = queue / PART < MOST ? queue / PART : MOST;
	const struct pipeline *p = &s->link->pipeline;

	return p->patient < most && p->count < queue;
}

static bool may_send_small(const struct server *s)
{
	return s->room.small.count && has_place(s);
}

static bool may_send_large(const struct server *s)
{
	return s->room.large.count && has_place(s) && server_has_room(s);
}

/*
 * Called after each change of the pipeline. Patient calls and the job `wanted` share the room
 * in turns.
 */
static void pipeline_changed(struct server_link *k)
{
	struct server *s = k->server;

	s->loop->awaited += k->pipeline.count - k->awaited;
	k->awaited = k->pipeline.count;
	if (s->room.wanted && server_has_room(s)) {
		loop_later(s->loop, s->room.wanted);
		s->room.wanted = NULL;
	}
	if (s->room.small.count + s->room.large.count && (may_send_small(s) || may_send_large(s)))
		loop_later(s->loop, &s->room.job);
}

static void close_link(struct server_link *k)
{
	stream_close(&k->stream);
	buf_free(&k->held);
	loop_forget(k->server->loop, &k->timer);
	loop_forget(k->server->loop, &k->rest);
}

/* As close_link(), but the kernel discards unsent bytes. */
static void abort_link(struct server_link *k)
{
	if (stream_is_open(&k->stream))
		stream_reset_on_close(&k->stream);
	close_link(k);
}

static void fail_calls(struct server_link *k, enum result_status sent)
{
	struct pipeline_peer peer = peer_of(k);

	count(&k->server->stats.lost_calls, k->pipeline.count);
	pipeline_fail(&k->pipeline, sent, &peer);
	pipeline_changed(k);
}

/* --- calls --- */

/*
 * Delivers a failure at the end of the turn, since the waiter must not get its result within
 * the call.
 */
static void reject(struct server *s, struct waiter *waiter, enum result_status status)
{
	struct result result = { .status = status, .server = s->name, .line = SLICE("ERROR") };

	if (status == RESULT_UNAVAILABLE)
		bump(&s->stats.unavailable);
	if (status == RESULT_BUSY)
		bump(&s->stats.busy);
	loop_answer(s->loop, waiter, &result);
}

static bool too_large(const struct server *s, const struct call *call)
{
	size_t n = call->key.n + call->value.n + ITEM_OVERHEAD + (call->flags ? ITEM_FLAGS : 0);

	return (call_stores(call->verb) || call->has_value) && s->abilities.item_max &&
		n > s->abilities.item_max;
}

static bool takes_calls(const struct server *s)
{
	return s->state == SERVER_UP || s->waits;
}

/* Returns why a call cannot be sent; RESULT_HIT if it can. */
static enum result_status obstacle(const struct server *s, const struct call *call)
{
	if (!takes_calls(s))
		return RESULT_UNAVAILABLE;
	if (s->link->pipeline.count >= s->options->queue)
		return RESULT_BUSY;
	/* A server without `ms` would interpret the data block as commands. */
	if (!s->abilities.meta && call_needs_meta(call))
		return RESULT_REFUSED;
	if (too_large(s, call))
		return RESULT_TOO_LARGE;
	/*
	 * A restarted server reuses cas ids, so one from an earlier connection may match
	 * another item.
	 */
	if (call->verb == CALL_CAS && call->connection &&
		(call->connection != s->link->number || s->state != SERVER_UP))
		return RESULT_EXISTS;
	return RESULT_HIT;
}

static void replace_or_reject(
	struct server *s, const struct call *call, struct waiter *waiter, enum result_status status)
{
	const struct call discard = {
		.verb = CALL_DISCARD, .server = call->server, .key = call->key
	};

	if (status == RESULT_TOO_LARGE && call->discards)
		server_call(s, &discard, waiter);
	else
		reject(s, waiter, status);
}

/*
 * Returns whether the connection must be probed first. The time of the turn may be earlier than
 * that of the last reply. There is no firewall between the ends of a Unix socket.
 */
static bool is_idle(const struct server *s)
{
	const struct server_link *k = s->link;

	return k->pipeline.count == 0 && s->state == SERVER_UP && s->where.port &&
		s->loop->now >= k->progress + IDLE_MS;
}

/* Sends a call, even without room. Inline: almost every call passes here once. */
static inline __attribute__((always_inline)) void send_call(
	struct server *s, const struct call *call, struct waiter *waiter)
{
	enum result_status status = obstacle(s, call);
	const struct dialect *dialect = s->abilities.meta ? &dialect_meta : &dialect_classic;
	struct server_link *k = s->link;

	if (status != RESULT_HIT) {
		replace_or_reject(s, call, waiter, status);
		return;
	}
	/* A cas id of this connection is invalid on the next one. */
	if (is_idle(s) && !(call->verb == CALL_CAS && call->connection))
		probe(s);
	if (s->state == SERVER_UP)
		stream_dirty(&k->stream);
	if (k->pipeline.count == 0)
		k->progress = k->first_since = s->loop->now;
	k->pipeline.now = s->loop->now_us;
	if (!pipeline_push(&k->pipeline, dialect, call, waiter,
		    s->state == SERVER_UP ? &k->stream.out : &k->held))
		return;
	bump(&s->stats.calls);
	pipeline_changed(k);
	if (!loop_is_queued(&k->timer))
		start_timer(k, s->options->request_timeout);
}

/* Queues a patient call if there is no room, or other calls are queued. */
static __attribute__((noinline)) bool is_queued(
	struct server *s, const struct call *call, struct waiter *waiter)
{
	struct call_turns *turns = call->expected ? &s->room.large : &s->room.small;

	if (!takes_calls(s))
		return false;
	if (turns->count == 0 && has_place(s) && (!call->expected || server_has_room(s)))
		return false;
	if (!call->account && turns->background >= s->options->queue)
		reject(s, waiter, RESULT_BUSY);
	else
		call_turns_add(turns, call, waiter);
	return true;
}

void server_call(struct server *s, const struct call *call, struct waiter *waiter)
{
	if (!call->patient || !is_queued(s, call, waiter))
		send_call(s, call, waiter);
}

static void send_next(struct server *s, struct call_turns *turns)
{
	struct call call;
	struct waiter *waiter = call_turns_take(turns, &call);

	send_call(s, &call, waiter);
}

/*
 * Each call that is sent queues this job again, if there is still room. Of the large values one
 * is requested at a time, since the job `wanted` shares their room.
 */
static void server_on_room(struct loop_job *job)
{
	struct server *s = (struct server *)((char *)job - offsetof(struct server, room.job));

	while (may_send_small(s))
		send_next(s, &s->room.small);
	if (may_send_large(s))
		send_next(s, &s->room.large);
	/* Now all of them fail. */
	while (!takes_calls(s) && s->room.large.count)
		send_next(s, &s->room.large);
}

/* --- the connection --- */

/* Called at the end of the first attempt. */
static void end_first_try(struct server *s)
{
	void (*done)(void *) = s->tried.done;

	s->tried.done = NULL;
	if (done)
		done(s->tried.arg);
}

static void come_up(struct server *s, const struct greeting *g)
{
	struct server_link *k = s->link;
	struct pipeline_peer peer = peer_of(k);

	count(&s->stats.lost_calls,
		pipeline_drop(&k->pipeline, server_held_ms(s->options) * 1000, &peer, &k->held));
	if (!k->probes)
		++*s->options->connects;
	s->abilities = *g;
	server_clock_set(&k->clock, g->time, s->loop->now);
	s->told.refused = false;
	s->told.refusal[0] = '\0';
	atomic_store_explicit(&s->stats.version, g->version, memory_order_relaxed);
	server_tell_connected(
		&s->told, s->name, s->loop->now, &s->abilities, s->options->value_max);
	set_state(s, SERVER_UP);
	k->probes = false;
	k->progress = k->first_since = s->loop->now;
	buf_add_slice(&k->stream.out, buf_slice(&k->held));
	buf_free(&k->held);
	if (buf_size(&k->stream.out))
		stream_dirty(&k->stream);
	if (k->pipeline.count == 0)
		loop_forget(s->loop, &k->timer);
	end_first_try(s);
}

/* Decodes all replies to the greeting at once, so that no state is kept. */
static size_t read_greeting(struct server *s, struct slice in)
{
	struct greeting g = { 0 };
	ssize_t n;

	/*
	 * Both addresses may belong to one server. A call must then not overtake the calls on
	 * the former link.
	 */
	if (s->former)
		return 0;
	n = greeting_read(in, s->link->has_login, &g);
	if (n > 0)
		come_up(s, &g);
	if (n < 0 && g.refused && !s->told.refused)
		log_warn("upstream %s: it rejects server_user and its password, or requires them",
			s->name);
	if (n < 0) {
		s->told.refused = g.refused;
		fail(s->link, RESULT_LOST,
			g.refused ? "not authenticated"
				  : "unexpected greeting, not a memcached server");
	}
	return n > 0 ? (size_t)n : 0;
}

/*
 * Closes the former link. The greeting on the new link may have arrived meanwhile, and is read
 * now.
 */
static void close_former(struct server *s, enum result_status sent)
{
	struct server_link *k = s->former;

	if (k->pipeline.count)
		log_warn("upstream %s: %zu calls to its former address failed", s->name,
			k->pipeline.count);
	s->former = NULL;
	abort_link(k);
	fail_calls(k, sent);
	if (s->state != SERVER_GREETING)
		return;
	start_timer(s->link, s->options->request_timeout);
	stream_pause(&s->link->stream);
	stream_resume(&s->link->stream);
}

static void server_on_rest(struct loop_job *job)
{
	struct server_link *k =
		(struct server_link *)((char *)job - offsetof(struct server_link, rest));

	stream_resume(&k->stream);
}

/*
 * Delivers the results in `in`. A waiter may do much for a result, and thousands may be there at
 * once, so the rest is delivered in the next turn. Returns as pipeline_read does.
 */
static ssize_t read_results(struct server_link *k, struct slice in)
{
	struct pipeline_peer peer = peer_of(k);
	struct work *work = &k->server->loop->work;
	size_t taken = 0;
	bool over = false;
	ssize_t n;

	do {
		n = pipeline_read(&k->pipeline, slice_skip(in, taken), &peer);
		taken += n > 0 ? (size_t)n : 0;
		over = n > 0 && taken < in.n && work_results_are_over(work);
	} while (n > 0 && taken < in.n && !over);
	if (over && stream_is_open(&k->stream)) {
		stream_pause(&k->stream);
		loop_after(k->server->loop, &k->rest, 0);
	}
	return n < 0 ? n : (ssize_t)taken;
}

static size_t server_on_data(struct stream *stream, struct slice in)
{
	struct server_link *k = link_of(stream);
	struct server *s = k->server;
	ssize_t n;

	if (k != s->former && s->state == SERVER_GREETING)
		return read_greeting(s, in);
	k->progress = loop_clock();
	n = read_results(k, in);
	if (n > 0 && k != s->former)
		k->first_since = k->progress;
	pipeline_changed(k);
	if (n < 0)
		fail(k, RESULT_LOST, "unexpected reply");
	else if (k == s->former && k->pipeline.count == 0)
		close_former(s, RESULT_LOST);
	return n > 0 ? (size_t)n : 0;
}

static void server_on_written(struct stream *stream, size_t n)
{
	struct server_link *k = link_of(stream);
	size_t greeting = n < k->greeting ? n : k->greeting;

	/*
	 * A server that hangs may still have room in its buffers for later calls, so only bytes
	 * of the first call count as progress.
	 */
	if (pipeline_is_writing_first(&k->pipeline))
		k->progress = loop_clock();
	if (greeting)
		start_timer(k, k->server->options->request_timeout);
	k->greeting -= greeting;
	pipeline_written(&k->pipeline, n - greeting);
	/* Unwritten bytes take the room of large values. */
	if (k->server->room.wanted || k->server->room.large.count)
		pipeline_changed(k);
}

static void server_on_ended(struct stream *stream, int error)
{
	struct server_link *k = link_of(stream);
	struct server *s = k->server;
	const char *why = error ? stream_error(stream, error) : "closed by the server";

	if (error == EPROTO && k != s->former)
		server_tell_refusal(&s->told, s->name,
			s->state == SERVER_UP || k->probes || s->tried.done, why);
	fail(k, RESULT_LOST, why);
}

static void greet(struct server *s, const char *login)
{
	struct server_link *k = s->link;

	set_state(s, SERVER_GREETING);
	greeting_encode(slice_of(login, strlen(login)), &k->stream.out);
	k->has_login = login[0];
	k->greeting = buf_size(&k->stream.out);
	stream_dirty(&k->stream);
	start_timer(k, s->options->request_timeout);
}

/*
 * Sends the greeting again on an idle connection, and holds calls until it is answered. If it
 * is not, the calls are sent on a new connection, which is safe since none was sent before. The
 * login is omitted: the server would store it as an item.
 */
static void probe(struct server *s)
{
	server_address_stop(&s->address);
	s->link->probes = s->waits = true;
	greet(s, "");
}

static void server_on_secured(struct stream *stream)
{
	if (!stream_is_securing(stream))
		greet(link_of(stream)->server, link_of(stream)->server->options->login);
}

/*
 * memcached with TLS reads a value without checking for further data in the record, and then
 * blocks (seen in 1.6.18). So no call shares a record with a part of another one.
 */
static size_t server_together(struct stream *stream, size_t skip, size_t max)
{
	const struct server_link *k = link_of(stream);

	return k->greeting ? max : pipeline_together(&k->pipeline, skip, max);
}

static const struct stream_ops stream_ops = {
	server_on_data,
	server_on_written,
	server_on_ended,
	server_on_secured,
	server_together,
	NULL,
};

/*
 * The new address may hold other items than the former one, so a cas id from there must not be
 * used here: see obstacle().
 */
static void leave_former(struct server *s)
{
	struct server_link *k = s->link;

	log_info("upstream %s: its name has another address; %zu calls to the former one are in "
		 "flight",
		s->name, k->pipeline.count);
	s->former = k;
	s->link = k == &s->links[0] ? &s->links[1] : &s->links[0];
	s->link->number = k->number;
	s->waits = true;
	k->progress = k->first_since = s->loop->now;
	start_timer(k, s->options->request_timeout);
	pipeline_changed(k);
	if (k->pipeline.count == 0)
		close_former(s, RESULT_LOST);
}

static void server_on_address(void *arg, int fd, const char *why)
{
	struct server *s = arg;

	if (fd < 0 && s->state == SERVER_UP) {
		if (s->address.is_news)
			log_warn("upstream %s: %s; keeping the connection", s->name, why);
		return;
	}
	if (fd < 0) {
		fail(s->link, RESULT_LOST, why);
		return;
	}
	if (s->state == SERVER_UP)
		leave_former(s);
	s->link->number++;
	bump(&s->stats.connects);
	stream_open(&s->link->stream, s->loop, LOOP_SERVERS, fd, &stream_ops);
	if (!s->options->tls || !s->tls) {
		greet(s, s->options->login);
		return;
	}
	set_state(s, SERVER_CONNECTING);
	/*
	 * If the connection was noticed only when the timer ran again, it may have been
	 * established long before.
	 */
	if (!loop_is_queued(&s->link->timer) || s->link->again)
		start_timer(s->link, s->options->connect_timeout);
	stream_encrypt(&s->link->stream, tls_connect(s->options->tls, s->tls));
}

static void attempt(struct server *s)
{
	set_state(s, SERVER_CONNECTING);
	start_timer(s->link, s->options->connect_timeout);
	server_address_connect(&s->address);
}

/* A lookup may give an open connection a new address, or a pending attempt its first one. */
static void server_on_lookup(void *arg)
{
	struct server *s = arg;

	if (s->state == SERVER_UP)
		server_address_check(&s->address, s->options->connect_timeout);
	else if (s->state == SERVER_DOWN && loop_is_queued(&s->link->timer) &&
		server_address_is_found(&s->address))
		start_timer(s->link, 0);
}

static const struct server_address_ops address_ops = {
	server_on_address,
	server_on_lookup,
};

/* --- failure --- */

static void plan_next(struct server *s, bool lost)
{
	bool steady = s->state == SERVER_UP && s->loop->now - s->since >= STEADY_MS;

	if (steady)
		s->pause = s->options->retry_min;
	s->waits = lost && steady;
	set_state(s, SERVER_DOWN);
	if (steady) {
		start_timer(s->link, 0);
		return;
	}
	/* Half of the pause is random, so that many proxies do not reconnect at the same time. */
	start_timer(s->link, s->pause / 2 + random_next(s->random) % (s->pause / 2 + 1));
	s->pause = s->pause * 2 < s->options->retry_max ? s->pause * 2 : s->options->retry_max;
}

/* Reconnects after an unanswered probe. The held calls are kept. */
static void connect_again(struct server *s, const char *why)
{
	log_debug("upstream %s: idle connection is dead: %s", s->name, why);
	bump(&s->stats.lost_connections);
	stream_reset_on_close(&s->link->stream);
	stream_close(&s->link->stream);
	s->link->probes = false;
	s->pause = s->options->retry_min;
	set_state(s, SERVER_DOWN);
	start_timer(s->link, 0);
}

/*
 * Closes the connection, or cancels the attempt, and fails all calls. The kernel must not
 * continue to send them: an append could be executed minutes after its client got the error
 * that the outcome is unknown, and retried.
 */
static void fail(struct server_link *k, enum result_status sent, const char *why)
{
	struct server *s = k->server;

	if (k == s->former) {
		close_former(s, sent);
		return;
	}
	if (s->link->probes) {
		connect_again(s, why);
		return;
	}
	server_tell_failure(&s->told, s->name, s->loop->now, s->link->pipeline.count, why);
	if (sent == RESULT_TIMED_OUT)
		bump(&s->stats.timeouts);
	else if (s->state == SERVER_UP)
		bump(&s->stats.lost_connections);
	server_address_stop(&s->address);
	abort_link(k);
	plan_next(s, sent == RESULT_LOST);
	fail_calls(k, sent);
	end_first_try(s);
}

/*
 * Returns when the oldest call times out. A reply may take longer than the timeout as long as
 * it makes progress, but not forever.
 */
static uint64_t due_of(const struct server_link *k)
{
	enum { LONGEST = 30 };
	uint64_t limit = k->server->options->request_timeout;
	uint64_t silent = k->progress + limit, slow = k->first_since + LONGEST * limit;

	return silent < slow ? silent : slow;
}

static void give_up(struct server_link *k)
{
	struct server *s = k->server;

	if (k == s->former || s->state == SERVER_UP)
		fail(k, RESULT_TIMED_OUT, "no reply in time");
	else if (s->state == SERVER_GREETING)
		fail(k, RESULT_LOST, "no greeting in time");
	else if (stream_is_open(&k->stream))
		fail(k, RESULT_LOST, "the TLS handshake timed out");
	else
		server_address_give_up(&s->address);
}

static void server_on_time(struct loop_job *job)
{
	struct server_link *k =
		(struct server_link *)((char *)job - offsetof(struct server_link, timer));
	struct server *s = k->server;
	bool takes_replies = k == s->former || s->state == SERVER_UP;
	uint64_t now = s->loop->now;

	if (!takes_replies && s->state == SERVER_DOWN) {
		attempt(s);
		return;
	}
	if (takes_replies ? k->pipeline.count == 0 : s->state == SERVER_GREETING && s->former)
		return;
	if (takes_replies && now < due_of(k))
		start_timer(k, due_of(k) - now);
	else if (!k->again || stream_is_ready(&k->stream))
		look_again(k);
	else
		give_up(k);
}

/* --- creation and destruction --- */

struct server *server_create(struct loop *loop, const struct ring_server *where,
	const struct server_options *options, struct resolver *resolver, uint64_t *random)
{
	struct server *s = xcalloc(1, sizeof(*s));

	*s = (struct server){
		.where = { xstrdup(where->host), where->port, where->weight,
			where->name ? xstrdup(where->name) : NULL },
		.users = 1,
		.options = options,
		.loop = loop,
		.random = random,
		.link = &s->links[0],
		.pause = options->retry_min,
	};
	if (where->port == 0)
		snprintf(s->name, sizeof(s->name), "unix:%s", where->host);
	else if (strchr(where->host, ':'))
		snprintf(s->name, sizeof(s->name), "[%s]:%u", where->host, where->port);
	else
		snprintf(s->name, sizeof(s->name), "%s:%u", where->host, where->port);
	s->told.news = news_of(options->news, s->name);
	call_turns_init(&s->room.small);
	call_turns_init(&s->room.large);
	s->room.job.run = server_on_room;
	for (int i = 0; i < 2; i++)
		s->links[i] = (struct server_link){ .server = s,
			.stream = { .fd = -1 },
			.timer = { .run = server_on_time },
			.clock = { .offset = &s->stats.clock_offset },
			.rest = { .run = server_on_rest } };
	/* Unique among the servers with high probability, and never 0. */
	s->link->number = random_next(random) | 1;
	server_address_init(&s->address, loop, resolver, &s->where, &address_ops, s);
	if (where->port)
		s->tls = tls_peer_create(where->name ? where->name : where->host);
	return s;
}

void server_start(struct server *s, void (*tried)(void *arg), void *arg)
{
	s->tried.done = tried;
	s->tried.arg = arg;
	attempt(s);
}

void server_stop(struct server *s)
{
	s->tried.done = NULL;
	s->waits = s->link->probes = false;
	server_address_stop(&s->address);
	abort_link(s->link);
	set_state(s, SERVER_DOWN);
	if (s->former)
		close_former(s, RESULT_LOST);
	fail_calls(s->link, RESULT_LOST);
}

void server_free(struct server *s)
{
	if (s->told.lost)
		news_drop(s->told.news);
	server_address_fini(&s->address);
	tls_peer_destroy(s->tls);
	free(s->where.host);
	free(s->where.name);
	free(s);
}
