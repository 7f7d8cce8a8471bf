#include "upstream/server.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "upstream/greeting.h"
#include "upstream/server_news.h"
#include "util/alloc.h"
#include "util/log.h"
#include "util/random.h"

/* What memcached adds to the key and data of an item: a header, a cas id, the key's NUL, the data's line end; and flags. */
enum { ITEM_OVERHEAD = 48 + 8 + 1 + 2, ITEM_FLAGS = 4 };

/* The loss of a connection younger than this counts as a failed attempt: the pause keeps growing. */
enum { STEADY_MS = 1000 };

const char *const server_state_name[SERVER_STATES] = { "down", "connecting", "greeting", "up" };

static void attempt(struct server *s);
static void fail(struct server *s, enum result_status sent, const char *why);

static void set_state(struct server *s, enum server_state state)
{
	log_debug("upstream %s: %s -> %s", s->name, server_state_name[s->state], server_state_name[state]);
	s->state = state;
	s->since = s->loop->now;
	atomic_store_explicit(&s->stats.state, (int)state, memory_order_relaxed);
}

static void bump(atomic_uint_fast64_t *counter)
{
	/* There is one writer, so no atomic addition is needed. */
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1, memory_order_relaxed);
}

static struct pipeline_peer peer_of(struct server *s)
{
	return (struct pipeline_peer){ s->name, s->connection, s->options->value_max, s->loop->now_us,
		&s->stats.latency, s->options->answer };
}

/* Called after each change of the pipeline. */
static void pipeline_changed(struct server *s)
{
	s->loop->awaited += s->pipeline.count - s->awaited;
	s->awaited = s->pipeline.count;
	if (s->wants_room && server_has_room(s)) {
		loop_later(s->loop, s->wants_room);
		s->wants_room = NULL;
	}
}

/* --- calls --- */

/* The waiter gets the failure at the end of the turn, since it may not get it within the call. */
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

	return (call_stores(call->verb) || call->has_value) && s->item_max && n > s->item_max;
}

/* Why a call cannot be sent; RESULT_HIT if it can. */
static enum result_status obstacle(const struct server *s, const struct call *call)
{
	if (s->state != SERVER_UP && !s->waits)
		return RESULT_UNAVAILABLE;
	if (s->pipeline.count >= s->options->queue)
		return RESULT_BUSY;
	/* A server without `ms` would read the data block as commands. */
	if (!s->meta && call_needs_meta(call))
		return RESULT_REFUSED;
	if (too_large(s, call))
		return RESULT_TOO_LARGE;
	/* A restarted server reuses cas ids: one of an earlier connection may match another item. */
	if (call->verb == CALL_CAS && call->connection && (call->connection != s->connection || s->state != SERVER_UP))
		return RESULT_EXISTS;
	return RESULT_HIT;
}

void server_call(struct server *s, const struct call *call, struct waiter *waiter)
{
	enum result_status status = obstacle(s, call);
	const struct dialect *dialect = s->meta ? &dialect_meta : &dialect_classic;
	struct call discard;

	if (status == RESULT_TOO_LARGE && call->discards) {
		discard = (struct call){ .verb = CALL_DISCARD, .server = call->server, .key = call->key };
		call = &discard;
		status = RESULT_HIT;
	}
	if (status != RESULT_HIT) {
		reject(s, waiter, status);
		return;
	}
	bump(&s->stats.calls);
	if (s->state == SERVER_UP)
		stream_dirty(&s->stream);
	if (s->pipeline.count == 0)
		s->progress = s->first_since = s->loop->now;
	s->pipeline.now = s->loop->now_us;
	pipeline_push(&s->pipeline, dialect, call, waiter, s->state == SERVER_UP ? &s->stream.out : &s->held);
	pipeline_changed(s);
	if (!s->timer.runs)
		countdown_start(&s->timer, s->options->request_timeout);
}

/* --- the connection --- */

/* The first attempt is over. */
static void settle(struct server *s)
{
	void (*settled)(void *) = s->settled;

	s->settled = NULL;
	if (settled)
		settled(s->settled_arg);
}

static void come_up(struct server *s, const struct greeting *g)
{
	s->meta = g->meta;
	s->cas = g->cas;
	s->item_max = g->item_max;
	s->refused = false;
	s->refusal[0] = '\0';
	atomic_store_explicit(&s->stats.version, g->version, memory_order_relaxed);
	server_news_connected(s->options->news, s->name, s->lost, s->loop->now, g, s->options->value_max);
	s->lost = false;
	set_state(s, SERVER_UP);
	s->progress = s->first_since = s->loop->now;
	buf_add_slice(&s->stream.out, buf_slice(&s->held));
	buf_free(&s->held);
	if (buf_size(&s->stream.out))
		stream_dirty(&s->stream);
	if (s->pipeline.count == 0)
		countdown_stop(&s->timer);
	settle(s);
}

/* Reads all replies of the greeting at once, so that no state is kept. */
static size_t read_greeting(struct server *s, struct slice in)
{
	struct greeting g = { 0 };
	ssize_t n;

	/* Both addresses may be those of one server. Then a call must not overtake the calls before it. */
	if (s->former)
		return 0;
	n = greeting_read(in, s->has_login, &g);
	if (n > 0)
		come_up(s, &g);
	if (n < 0 && g.refused && !s->refused)
		log_warn("upstream %s: it refuses server_user and its password, or needs them", s->name);
	if (n < 0) {
		s->refused = g.refused;
		fail(s, RESULT_LOST, g.refused ? "it refuses to talk" : "no memcached greeting");
	}
	return n > 0 ? (size_t)n : 0;
}

static size_t on_data(struct stream *stream, struct slice in)
{
	struct server *s = (struct server *)((char *)stream - offsetof(struct server, stream));
	struct pipeline_peer peer = peer_of(s);
	ssize_t n;

	if (s->state == SERVER_GREETING)
		return read_greeting(s, in);
	s->progress = loop_clock();
	n = pipeline_read(&s->pipeline, in, &peer);
	if (n > 0)
		s->first_since = s->progress;
	pipeline_changed(s);
	if (n < 0) {
		fail(s, RESULT_LOST, "unexpected reply");
		return 0;
	}
	return (size_t)n;
}

static void on_written(struct stream *stream, size_t n)
{
	struct server *s = (struct server *)((char *)stream - offsetof(struct server, stream));
	size_t greeting = n < s->greeting ? n : s->greeting;

	/* Later calls may still fit the buffers of a server that does nothing any more. */
	if (pipeline_is_writing_first(&s->pipeline))
		s->progress = loop_clock();
	if (greeting)
		countdown_start(&s->timer, s->options->request_timeout);
	s->greeting -= greeting;
	pipeline_written(&s->pipeline, n - greeting);
}

/* A server that was down for another reason may come back with a certificate that is refused. This is logged once for each reason. */
static void log_refusal(struct server *s, const char *why)
{
	if (s->state != SERVER_UP && !s->settled && strcmp(s->refusal, why) != 0)
		log_warn("upstream %s: %s", s->name, why);
	snprintf(s->refusal, sizeof(s->refusal), "%s", why);
}

static void on_ended(struct stream *stream, int error)
{
	struct server *s = (struct server *)((char *)stream - offsetof(struct server, stream));
	const char *why = error ? stream_error(stream, error) : "closed by the server";

	if (error == EPROTO)
		log_refusal(s, why);
	fail(s, RESULT_LOST, why);
}

static void greet(struct server *s)
{
	set_state(s, SERVER_GREETING);
	greeting_encode(slice_of(s->options->login, strlen(s->options->login)), &s->stream.out);
	s->has_login = s->options->login[0];
	s->greeting = buf_size(&s->stream.out);
	stream_dirty(&s->stream);
	countdown_start(&s->timer, s->options->request_timeout);
}

static void on_secured(struct stream *stream)
{
	greet((struct server *)((char *)stream - offsetof(struct server, stream)));
}

/*
 * memcached with TLS reads a value without looking further, and sleeps on what else was in the record (seen in 1.6.18). So no call
 * shares a record with a part of another.
 */
static size_t together(struct stream *stream, size_t skip, size_t max)
{
	const struct server *s = (struct server *)((char *)stream - offsetof(struct server, stream));

	return s->greeting ? max : pipeline_together(&s->pipeline, skip, max);
}

static const struct stream_ops stream_ops = { on_data, on_written, on_ended, on_secured, together };

static void on_former_gone(void *arg)
{
	struct server *s = arg;

	s->former = NULL;
	if (s->state != SERVER_GREETING)
		return;
	/* The greeting may have come meanwhile. */
	countdown_start(&s->timer, s->options->request_timeout);
	stream_pause(&s->stream);
	stream_resume(&s->stream);
}

/* The new address may hold other items than the former one, so nothing that was read there is written here: see obstacle(). */
static void leave_former(struct server *s)
{
	log_info("upstream %s: its name has another address: the former one has %zu calls left to answer", s->name,
		s->pipeline.count);
	countdown_stop(&s->timer);
	s->former = server_former_create(
		&s->stream, &s->pipeline, peer_of(s), s->options->request_timeout, on_former_gone, s);
	pipeline_changed(s);
	s->waits = true;
}

static void on_address(void *arg, int fd, const char *why)
{
	struct server *s = arg;

	if (fd < 0 && s->state == SERVER_UP) {
		if (s->address.is_news)
			log_warn("upstream %s: %s; the connection stays", s->name, why);
		return;
	}
	if (fd < 0) {
		fail(s, RESULT_LOST, why);
		return;
	}
	if (s->state == SERVER_UP)
		leave_former(s);
	s->connection++;
	bump(&s->stats.connects);
	stream_open(&s->stream, s->loop, LOOP_SERVERS, fd, &stream_ops);
	if (!s->options->tls || !s->tls) {
		greet(s);
		return;
	}
	set_state(s, SERVER_CONNECTING);
	/* A connection that was only seen at the second look may have been there long before. */
	if (!s->timer.runs || s->timer.again)
		countdown_start(&s->timer, s->options->connect_timeout);
	stream_encrypt(&s->stream, tls_connect(s->options->tls, s->tls));
}

static void attempt(struct server *s)
{
	set_state(s, SERVER_CONNECTING);
	countdown_start(&s->timer, s->options->connect_timeout);
	server_address_connect(&s->address);
}

void server_check_name(struct server *s)
{
	if (s->state == SERVER_UP)
		server_address_check(&s->address, s->options->connect_timeout);
}

/* --- failure --- */

static void close_connection(struct server *s)
{
	server_address_stop(&s->address);
	stream_close(&s->stream);
	buf_free(&s->held);
	countdown_stop(&s->timer);
}

static void plan_next(struct server *s, bool lost)
{
	bool steady = s->state == SERVER_UP && s->loop->now - s->since >= STEADY_MS;

	if (steady)
		s->pause = s->options->retry_min;
	s->waits = lost && steady;
	set_state(s, SERVER_DOWN);
	if (steady) {
		countdown_start(&s->timer, 0);
		return;
	}
	/* Half of the pause is random, so that many proxies do not reconnect at once. */
	countdown_start(&s->timer, s->pause / 2 + random_next(s->random) % (s->pause / 2 + 1));
	s->pause = s->pause * 2 < s->options->retry_max ? s->pause * 2 : s->options->retry_max;
}

static void tell_failure(struct server *s, const char *why)
{
	const struct server_failure failure = {
		.name = s->name,
		.why = why,
		.now = s->loop->now,
		.calls = s->pipeline.count,
		.was_lost = s->lost,
		.was_told = s->refused,
		.is_reason = s->address.is_news,
	};

	server_news_failed(s->options->news, &failure);
	s->lost = true;
}

/* Closes the connection, or gives up the attempt, and fails all calls. */
static void fail(struct server *s, enum result_status sent, const char *why)
{
	struct pipeline_peer peer = peer_of(s);

	tell_failure(s, why);
	if (sent == RESULT_TIMED_OUT)
		bump(&s->stats.timeouts);
	else if (s->state == SERVER_UP)
		bump(&s->stats.lost_connections);
	close_connection(s);
	plan_next(s, sent == RESULT_LOST);
	pipeline_fail(&s->pipeline, sent, &peer);
	pipeline_changed(s);
	settle(s);
}

/* A reply may take longer than the limit as long as it goes on, but not for ever. */
static uint64_t due_of(const struct server *s)
{
	enum { LONGEST = 30 };
	uint64_t limit = s->options->request_timeout;
	uint64_t silent = s->progress + limit, slow = s->first_since + LONGEST * limit;

	return silent < slow ? silent : slow;
}

static void give_up(struct server *s)
{
	if (s->state == SERVER_UP)
		fail(s, RESULT_TIMED_OUT, "no reply in time");
	else if (s->state == SERVER_GREETING)
		fail(s, RESULT_LOST, "no greeting in time");
	else if (stream_is_open(&s->stream))
		fail(s, RESULT_LOST, "the TLS handshake took too long");
	else
		server_address_give_up(&s->address);
}

static void on_time(void *arg)
{
	struct server *s = arg;
	uint64_t now = s->loop->now;

	if (s->state == SERVER_DOWN) {
		attempt(s);
		return;
	}
	if (s->state == SERVER_UP ? s->pipeline.count == 0 : s->state == SERVER_GREETING && s->former)
		return;
	if (s->state == SERVER_UP && now < due_of(s))
		countdown_start(&s->timer, due_of(s) - now);
	else if (!s->timer.again || stream_is_ready(&s->stream))
		countdown_again(&s->timer);
	else
		give_up(s);
}

struct server *server_create(struct loop *loop, const struct ring_server *where, const struct server_options *options,
	struct resolver *resolver, uint64_t *random)
{
	struct server *s = xcalloc(1, sizeof(*s));

	*s = (struct server){
		.where = { xstrdup(where->host), where->port, where->weight },
		.users = 1,
		.options = options,
		.loop = loop,
		.random = random,
		.stream = { .fd = -1 },
		.pause = options->retry_min,
	};
	if (where->port == 0)
		snprintf(s->name, sizeof(s->name), "unix:%s", where->host);
	else if (strchr(where->host, ':'))
		snprintf(s->name, sizeof(s->name), "[%s]:%u", where->host, where->port);
	else
		snprintf(s->name, sizeof(s->name), "%s:%u", where->host, where->port);
	countdown_init(&s->timer, loop, on_time, s);
	server_address_init(&s->address, loop, resolver, &s->where, on_address, s);
	if (where->port)
		s->tls = tls_peer_create(where->host);
	return s;
}

void server_start(struct server *s, void (*settled)(void *arg), void *arg)
{
	s->settled = settled;
	s->settled_arg = arg;
	attempt(s);
}

void server_stop(struct server *s)
{
	struct pipeline_peer peer = peer_of(s);

	s->settled = NULL;
	s->waits = false;
	server_former_destroy(s->former);
	s->former = NULL;
	close_connection(s);
	set_state(s, SERVER_DOWN);
	pipeline_fail(&s->pipeline, RESULT_LOST, &peer);
	pipeline_changed(s);
}

void server_free(struct server *s)
{
	if (s->lost)
		server_news_dropped(s->options->news, s->name);
	tls_peer_destroy(s->tls);
	free(s->where.host);
	free(s);
}
