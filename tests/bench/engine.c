/*
 * The event loop. Each connection keeps up to ${depth} requests in flight: whenever replies have
 * been read, as many requests as were answered go out in one write (a sliding window).
 *
 *   warming ---- warm-up over ----> measuring ---- time is up ----> draining ----> done
 *
 * Draining sends nothing more and waits for what is owed, so that a reply that never comes is seen.
 *
 * In an open loop (options->rate) a request counts when it was due while measuring, whenever it is sent and answered, and its
 * latency counts from when it was due. So a server that stalls cannot hide it by keeping requests from being sent, or by being
 * in the middle of it when time is up: measuring goes on until all that became due in time is answered.
 */
#include "engine.h"
#include "conn.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)
#define PATIENCE (10 * SECOND) /* how long a silent server is waited for */
#define SHORTEST_TICK UINT64_C(20000)
#define READ_SIZE ((size_t)256 << 10)
#define MAX_EVENTS 128

enum phase { WARMING, MEASURING, DRAINING };

struct engine {
	const struct options *options;
	struct pool *pool;
	struct result *result;
	struct conn *conns;
	struct place *places; /* of each connection */
	size_t conn_count;
	int epoll;
	int timer; /* open loop only, else -1 */
	enum phase phase;
	uint64_t now;
	uint64_t started;
	uint64_t phase_end; /* 0: when all requests are answered */
	uint64_t measured_from;
	uint64_t last_reply;
	uint64_t released; /* open loop: requests whose time has come */
	double own_cpu_before;
	char *buffer;
	SSL_CTX *tls; /* or NULL */
};

static uint64_t clock_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

static uint64_t seconds_ns(double seconds)
{
	return (uint64_t)(seconds * (double)SECOND);
}

static bool is_open_loop(const struct engine *engine)
{
	return engine->options->rate > 0;
}

static bool sample_all(const struct options *options, struct process_sample *samples)
{
	for (size_t i = 0; i < options->pid_count; i++) {
		if (!process_sample(options->pids[i], &samples[i])) {
			fprintf(stderr, "loadgen: process %ld is gone\n", (long)options->pids[i]);
			return false;
		}
	}
	return true;
}

static bool watch(const struct engine *engine, int operation, int fd, bool writable, void *what)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = what };

	if (writable)
		event.events |= EPOLLOUT;
	if (epoll_ctl(engine->epoll, operation, fd, &event) == 0)
		return true;
	fprintf(stderr, "loadgen: epoll: %s\n", strerror(errno));
	return false;
}

/* When request ${index} of ${conn} is due: the requests of all connections take turns. */
static uint64_t due_time(const struct engine *engine, const struct conn *conn, uint64_t index)
{
	uint64_t turn = index * engine->conn_count + (uint64_t)(conn - engine->conns);

	return engine->started + seconds_ns((double)turn / engine->options->rate);
}

static uint64_t due_count(const struct engine *engine, const struct conn *conn)
{
	uint64_t place = (uint64_t)(conn - engine->conns);

	if (engine->released <= place)
		return 0;
	return (engine->released - place - 1) / engine->conn_count + 1;
}

/* Sends on ${conn} whatever may be sent now. */
static bool pump(struct engine *engine, struct conn *conn)
{
	const struct options *options = engine->options;
	uint64_t room = options->depth - conn_in_flight(conn);
	uint64_t left = conn->quota - conn->sent;
	uint64_t first = conn->sent;

	if (is_open_loop(engine) && due_count(engine, conn) - conn->sent < left)
		left = due_count(engine, conn) - conn->sent;
	if (left < room)
		room = left;
	else if (room < options->batch)
		room = 0;
	if (room && engine->phase != DRAINING) {
		if (!conn_send(conn, engine->pool, room, engine->now))
			return false;
		if (is_open_loop(engine))
			for (uint64_t i = first; i < conn->sent; i++)
				conn->times[i & conn->mask] = due_time(engine, conn, i);
	}
	if (conn->wants_write == (conn->unwritten_size > 0))
		return true;
	conn->wants_write = !conn->wants_write;
	return watch(engine, EPOLL_CTL_MOD, conn->fd, conn->wants_write, conn);
}

static void describe(char *out, const char *why, const char *line, const char *end)
{
	const char *stop = memchr(line, '\n', (size_t)(end - line));
	size_t length = (size_t)((stop ? stop : end) - line);
	size_t used = (size_t)snprintf(out, ERROR_TEXT_SIZE, "%s: ", why);

	for (size_t i = 0; i < length && used < ERROR_TEXT_SIZE - 1; i++)
		if (line[i] != '\r')
			out[used++] = line[i] >= ' ' && line[i] <= '~' ? line[i] : '?';
	out[used] = '\0';
}

static void count(struct engine *engine, const struct conn *conn, enum reply_outcome outcome)
{
	struct result *result = engine->result;
	uint64_t since = conn->times[conn->received & conn->mask];

	/* An error is one whenever it comes; all else counts only while it is measured. */
	result->errors += outcome == REPLY_ERROR;
	if (engine->phase != MEASURING || (is_open_loop(engine) && since < engine->measured_from))
		return;
	result->requests++;
	result->misses += outcome == REPLY_MISS;
	hist_add(&result->latency, engine->now - since);
}

/* Reads replies from ${at} to ${end} and keeps the piece of a line that is left. */
static bool consume(struct engine *engine, struct conn *conn, const char *at, const char *end)
{
	const struct pool *pool = engine->pool;
	struct cursor cursor = { .at = at, .end = end };
	char text[ERROR_TEXT_SIZE];

	while (cursor.at < end) {
		const struct request *request = &pool->requests[conn->next_reply];
		enum reply_outcome outcome;

		if (conn_in_flight(conn) == 0) {
			describe(text, "reply without a request", cursor.at, end);
			fprintf(stderr, "loadgen: %s\n", text);
			return false;
		}
		cursor.key = pool->bytes + request->offset + request->key;
		outcome = reply_parse(&conn->reply, &pool->want[request->form], &cursor);
		if (outcome == REPLY_MORE)
			break;
		if (outcome == REPLY_ERROR && engine->result->first_error[0] == '\0')
			describe(engine->result->first_error, cursor.why, cursor.line, end);
		if (outcome == REPLY_GARBAGE) {
			describe(text, cursor.why, cursor.line, end);
			fprintf(stderr, "loadgen: wrong reply: %s\n", text);
			return false;
		}
		count(engine, conn, outcome);
		conn->received++;
		conn->next_reply = conn->next_reply + 1 == pool->count ? 0 : conn->next_reply + 1;
	}
	conn->stash_size = (size_t)(end - cursor.at);
	if (conn->stash_size > sizeof(conn->stash)) {
		fprintf(stderr, "loadgen: wrong reply: a line of more than %zu bytes\n", sizeof(conn->stash));
		return false;
	}
	memcpy(conn->stash, cursor.at, conn->stash_size);
	return true;
}

static bool receive(struct engine *engine, struct conn *conn)
{
	char *fresh = engine->buffer + conn->stash_size;
	ssize_t length = conn_receive(conn, fresh, READ_SIZE);

	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (length <= 0) {
		fprintf(stderr, "loadgen: connection lost: %s\n", length ? strerror(errno) : "closed by the server");
		return false;
	}
	memcpy(engine->buffer, conn->stash, conn->stash_size);
	engine->now = clock_ns();
	engine->last_reply = engine->now;
	if (!consume(engine, conn, engine->buffer, fresh + length))
		return false;
	/* With TLS the socket does not tell of what was left. */
	return !conn->tls || (size_t)length < READ_SIZE || receive(engine, conn);
}

static bool tick(struct engine *engine)
{
	uint64_t expired, due, until;
	double elapsed;

	if (read(engine->timer, &expired, sizeof(expired)) < 0 && errno != EAGAIN)
		return false;
	engine->now = clock_ns();
	until = engine->now;
	if (engine->phase != WARMING && engine->phase_end && until > engine->phase_end)
		until = engine->phase_end;
	elapsed = (double)(until - engine->started) / (double)SECOND;
	/* The first is due at once; the slack keeps rounding from putting one off by a tick. */
	due = (uint64_t)(elapsed * engine->options->rate + 1.001);
	if (due > engine->released + engine->conn_count) {
		engine->released = due;
		for (size_t i = 0; i < engine->conn_count; i++)
			if (!pump(engine, &engine->conns[i]))
				return false;
	}
	while (engine->released < due)
		if (!pump(engine, &engine->conns[engine->released++ % engine->conn_count]))
			return false;
	return true;
}

/* For each request a connection: the one whose reply has come is closed. */
static bool renew(struct engine *engine, struct conn *conn)
{
	if (!engine->options->reconnect || conn->sent == 0 || conn_in_flight(conn) || conn->sent == conn->quota ||
		engine->phase == DRAINING)
		return true;
	return conn_reopen(conn) && watch(engine, EPOLL_CTL_ADD, conn->fd, false, conn);
}

static bool handle(struct engine *engine, const struct epoll_event *event)
{
	struct conn *conn = event->data.ptr;

	if (conn == NULL)
		return tick(engine);
	if (event->events & (EPOLLIN | EPOLLERR | EPOLLHUP) && !receive(engine, conn))
		return false;
	if (event->events & EPOLLOUT && !conn_flush(conn))
		return false;
	return renew(engine, conn) && pump(engine, conn);
}

static uint64_t in_flight(const struct engine *engine)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < engine->conn_count; i++)
		sum += conn_in_flight(&engine->conns[i]);
	return sum;
}

/* Open loop: requests that became due and are not answered, sent or not. */
static uint64_t overdue(const struct engine *engine)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < engine->conn_count; i++) {
		const struct conn *conn = &engine->conns[i];
		uint64_t due = due_count(engine, conn);

		sum += (due < conn->quota ? due : conn->quota) - conn->received;
	}
	return sum;
}

static bool all_answered(const struct engine *engine)
{
	for (size_t i = 0; i < engine->conn_count; i++)
		if (engine->conns[i].received < engine->conns[i].quota)
			return false;
	return true;
}

static bool start_measuring(struct engine *engine)
{
	engine->phase = MEASURING;
	engine->measured_from = engine->now;
	engine->phase_end = 0;
	if (engine->options->requests == 0)
		engine->phase_end = engine->now + seconds_ns(engine->options->seconds);
	engine->own_cpu_before = process_own_cpu_us();
	return sample_all(engine->options, engine->result->before);
}

static bool stop_measuring(struct engine *engine)
{
	engine->phase = DRAINING;
	engine->result->seconds = (double)(engine->now - engine->measured_from) / (double)SECOND;
	engine->result->own_cpu_us = process_own_cpu_us() - engine->own_cpu_before;
	return sample_all(engine->options, engine->result->after);
}

static bool phase_ended(struct engine *engine)
{
	if (engine->phase_end == 0)
		return engine->phase == MEASURING && all_answered(engine);
	if (engine->now < engine->phase_end)
		return false;
	if (engine->phase != MEASURING || !is_open_loop(engine))
		return true;
	return overdue(engine) == 0 || engine->now > engine->phase_end + PATIENCE;
}

/* Moves from phase to phase; true while the run goes on. */
static bool advance(struct engine *engine, bool *failed)
{
	bool ended = phase_ended(engine);

	if (ended && engine->phase == WARMING)
		*failed = !start_measuring(engine);
	else if (ended && engine->phase == MEASURING)
		*failed = !stop_measuring(engine);
	if (engine->phase == DRAINING) {
		uint64_t owed = is_open_loop(engine) ? overdue(engine) : in_flight(engine);

		if (owed == 0)
			return false;
		if (engine->now > engine->phase_end + PATIENCE) {
			engine->result->lost = owed;
			return false;
		}
	} else if (engine->now > engine->last_reply + PATIENCE && in_flight(engine)) {
		fprintf(stderr, "loadgen: no reply for 10 seconds\n");
		*failed = true;
	}
	return !*failed;
}

/* Ticks at the very moments requests are due, or as often as is sensible at a high rate. */
static bool start_timer(struct engine *engine)
{
	uint64_t step = seconds_ns(1 / engine->options->rate);
	struct itimerspec spec;

	if (step < SHORTEST_TICK)
		step = SHORTEST_TICK;
	spec.it_interval.tv_sec = (time_t)(step / SECOND);
	spec.it_interval.tv_nsec = (long)(step % SECOND);
	spec.it_value.tv_sec = (time_t)(engine->started / SECOND);
	spec.it_value.tv_nsec = (long)(engine->started % SECOND);
	engine->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	return engine->timer >= 0 && timerfd_settime(engine->timer, TFD_TIMER_ABSTIME, &spec, NULL) == 0 &&
		watch(engine, EPOLL_CTL_ADD, engine->timer, false, NULL);
}

static bool start(struct engine *engine)
{
	engine->now = engine->started = engine->last_reply = clock_ns();
	if (engine->options->requests) {
		if (!start_measuring(engine))
			return false;
	} else {
		engine->phase_end = engine->now + seconds_ns(engine->options->warmup) + 1;
	}
	if (is_open_loop(engine))
		return start_timer(engine);
	for (size_t i = 0; i < engine->conn_count; i++)
		if (!pump(engine, &engine->conns[i]))
			return false;
	return true;
}

static bool loop(struct engine *engine)
{
	struct epoll_event events[MAX_EVENTS];
	bool failed = false;

	if (!start(engine))
		return false;
	while (advance(engine, &failed)) {
		int ready = epoll_wait(engine->epoll, events, MAX_EVENTS, 100);

		if (ready < 0 && errno != EINTR)
			return false;
		if (ready <= 0)
			engine->now = clock_ns();
		for (int i = 0; i < ready; i++)
			if (!handle(engine, &events[i]))
				return false;
	}
	return !failed;
}

/* Opens all connections, spread evenly over the pool. */
static bool open_conns(struct engine *engine)
{
	const struct options *options = engine->options;
	uint64_t total = options->requests;

	for (size_t i = 0; i < options->conns; i++) {
		struct conn *conn = &engine->conns[i];

		if (!place_find(&engine->places[i], options->socket, options->host,
			    options->ports[i % options->port_count]))
			return false;
		if (options->reconnect)
			place_spread(&engine->places[i], i);
		if (!conn_open(conn, &engine->places[i], options->depth, engine->tls))
			return false;
		engine->conn_count++;
		conn->next_send = conn->next_reply = i * engine->pool->count / options->conns;
		conn->quota = UINT64_MAX;
		if (total)
			conn->quota = (i + 1) * total / options->conns - i * total / options->conns;
		if (!watch(engine, EPOLL_CTL_ADD, conn->fd, false, conn))
			return false;
	}
	return true;
}

static SSL_CTX *tls_context(void)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());

	if (context == NULL)
		abort();
	SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE);
	SSL_CTX_set_read_ahead(context, 1);
	return context;
}

bool engine_run(const struct options *options, struct pool *pool, struct result *result)
{
	struct engine engine = {
		.tls = options->tls ? tls_context() : NULL,
		.options = options,
		.pool = pool,
		.result = result,
		.conns = calloc(options->conns, sizeof(struct conn)),
		.places = calloc(options->conns, sizeof(struct place)),
		.epoll = epoll_create1(EPOLL_CLOEXEC),
		.timer = -1,
		.buffer = malloc(READ_SIZE + CONN_STASH_SIZE),
	};
	bool good = false;

	memset(result, 0, sizeof(*result));
	if (engine.conns == NULL || engine.places == NULL || engine.buffer == NULL || engine.epoll < 0)
		fprintf(stderr, "loadgen: out of memory or descriptors\n");
	else
		good = open_conns(&engine) && loop(&engine);
	for (size_t i = 0; i < engine.conn_count; i++)
		conn_close(&engine.conns[i]);
	if (engine.timer >= 0)
		close(engine.timer);
	if (engine.epoll >= 0)
		close(engine.epoll);
	SSL_CTX_free(engine.tls);
	free(engine.conns);
	free(engine.places);
	free(engine.buffer);
	return good;
}
