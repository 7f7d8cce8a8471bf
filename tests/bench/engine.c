/*
 * The event loop. Each connection keeps up to ${depth} requests in flight: whenever replies have
 * been read, as many requests as were answered go out in one write (a sliding window).
 *
 *   warming ---- warm-up over ----> measuring ---- time is up ----> draining ----> done
 *
 * Draining sends nothing more and waits for the pending replies, so that a missing reply is
 * detected.
 *
 * In an open loop (options->rate) a request counts if it was due during the measurement, whenever
 * it is sent and answered, and its latency counts from the time when it was due. So a server that
 * stalls cannot hide it by delaying requests, or by stalling at the end: measuring continues until
 * all requests that were due in time have been answered.
 */
#include "engine.h"
#include "conn.h"

#include <err.h>
#include <errno.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)
#define PATIENCE (10 * SECOND) /* timeout of a silent server */
#define SHORTEST_TICK UINT64_C(20000)
#define READ_SIZE ((size_t)256 << 10)
#define MAX_EVENTS 128

enum phase { WARMING, MEASURING, DRAINING };

struct engine {
	const struct options *options;
	struct pool *pool;
	struct result *result;
	struct conn *conns;
	int epoll;
	int timer; /* open loop only, otherwise -1 */
	enum phase phase;
	uint64_t now;
	uint64_t started;
	uint64_t phase_end; /* 0: when all requests are answered */
	uint64_t measured_from;
	uint64_t last_reply;
	uint64_t released; /* open loop: requests that are due */
	char *buffer;
	SSL_CTX *tls; /* or NULL */
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
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

/* Returns the CPU time of a process so far. */
static double cpu_us(pid_t pid)
{
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock))
		errx(1, "process %ld is gone", (long)pid);
	return (double)clock_ns(clock) / 1e3;
}

/* Adds the CPU time of all processes so far, or subtracts it with a ${sign} of -1. */
static void add_cpu(const struct engine *engine, int sign)
{
	const struct numbers *pids = &engine->options->pids;

	engine->result->own_cpu_us += sign * cpu_us(getpid());
	for (size_t i = 0; i < pids->count; i++)
		engine->result->processes[i].cpu_us += sign * cpu_us((pid_t)pids->list[i]);
}

static void read_status(pid_t pid, struct process *process)
{
	char line[256];
	FILE *file;

	snprintf(line, sizeof(line), "/proc/%ld/status", (long)pid);
	file = fopen(line, "re");
	if (file == NULL)
		errx(1, "process %ld is gone", (long)pid);
	while (fgets(line, sizeof(line), file)) {
		sscanf(line, "Name: %31[^\n]", process->name);
		sscanf(line, "VmRSS: %llu", &process->rss_kb);
	}
	fclose(file);
}

static void watch(const struct engine *engine, int operation, int fd, bool writable, void *what)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = what };

	if (writable)
		event.events |= EPOLLOUT;
	if (epoll_ctl(engine->epoll, operation, fd, &event) != 0)
		err(1, "epoll");
}

/* Returns when request ${index} of ${conn} is due: the requests of all connections take turns. */
static uint64_t due_time(const struct engine *engine, const struct conn *conn, uint64_t index)
{
	uint64_t turn = index * engine->options->conns + (uint64_t)(conn - engine->conns);

	return engine->started + seconds_ns((double)turn / engine->options->rate);
}

/* Open loop: returns how many requests of ${conn} are due. */
static uint64_t due_count(const struct engine *engine, const struct conn *conn)
{
	uint64_t place = (uint64_t)(conn - engine->conns), due;

	if (engine->released <= place)
		return 0;
	due = (engine->released - place - 1) / engine->options->conns + 1;
	return due < conn->quota ? due : conn->quota;
}

/* Sends all requests on ${conn} that may be sent now. */
static void pump(struct engine *engine, struct conn *conn)
{
	const struct options *options = engine->options;
	uint64_t room = options->depth - conn_in_flight(conn);
	uint64_t first = conn->sent;
	uint64_t left = (is_open_loop(engine) ? due_count(engine, conn) : conn->quota) - first;

	if (left < room)
		room = left;
	else if (room < options->batch)
		room = 0;
	if (room && engine->phase != DRAINING) {
		conn_send(conn, engine->pool, room, engine->now);
		if (is_open_loop(engine))
			for (uint64_t i = first; i < conn->sent; i++)
				conn->times[i & conn->mask] = due_time(engine, conn, i);
	}
	if (conn->wants_write == (conn->unwritten_size > 0))
		return;
	conn->wants_write = !conn->wants_write;
	watch(engine, EPOLL_CTL_MOD, conn->fd, conn->wants_write, conn);
}

static void pump_all(struct engine *engine)
{
	for (size_t i = 0; i < engine->options->conns; i++)
		pump(engine, &engine->conns[i]);
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

	/* An error always counts; everything else counts only during the measurement. */
	result->errors += outcome == REPLY_ERROR;
	if (engine->phase != MEASURING || (is_open_loop(engine) && since < engine->measured_from))
		return;
	result->requests++;
	result->misses += outcome == REPLY_MISS;
	hist_add(&result->latency, engine->now - since);
}

/* Reads replies from ${at} to ${end} and keeps an incomplete line. */
static void consume(struct engine *engine, struct conn *conn, const char *at, const char *end)
{
	const struct pool *pool = engine->pool;
	struct cursor cursor = { .at = at, .end = end };
	char text[ERROR_TEXT_SIZE];

	while (cursor.at < end) {
		const struct request *request = &pool->requests[conn->next_reply];
		enum reply_outcome outcome;

		if (conn_in_flight(conn) == 0) {
			describe(text, "reply without a request", cursor.at, end);
			errx(1, "%s", text);
		}
		cursor.key = pool->bytes + request->offset + request->key;
		outcome = reply_parse(&conn->reply, &pool->want[request->form], &cursor);
		if (outcome == REPLY_MORE)
			break;
		if (outcome == REPLY_ERROR && engine->result->first_error[0] == '\0')
			describe(engine->result->first_error, cursor.why, cursor.line, end);
		if (outcome == REPLY_GARBAGE) {
			describe(text, cursor.why, cursor.line, end);
			errx(1, "wrong reply: %s", text);
		}
		count(engine, conn, outcome);
		conn->received++;
		conn->next_reply = conn->next_reply + 1 == pool->count ? 0 : conn->next_reply + 1;
	}
	conn->stash_size = (size_t)(end - cursor.at);
	if (conn->stash_size > sizeof(conn->stash))
		errx(1, "wrong reply: a line of more than %zu bytes", sizeof(conn->stash));
	memcpy(conn->stash, cursor.at, conn->stash_size);
}

static void receive(struct engine *engine, struct conn *conn)
{
	char *fresh;
	ssize_t length;

	/* With TLS the socket does not report buffered bytes. */
	do {
		fresh = engine->buffer + conn->stash_size;
		length = conn_receive(conn, fresh, READ_SIZE);
		if (length < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (length <= 0)
			errx(1, "connection lost: %s",
				length ? strerror(errno) : "closed by the server");
		memcpy(engine->buffer, conn->stash, conn->stash_size);
		engine->now = clock_ns(CLOCK_MONOTONIC);
		engine->last_reply = engine->now;
		consume(engine, conn, engine->buffer, fresh + length);
	} while (conn->tls && (size_t)length == READ_SIZE);
}

static void tick(struct engine *engine)
{
	uint64_t expired, due, until;
	double elapsed;

	if (read(engine->timer, &expired, sizeof(expired)) < 0 && errno != EAGAIN)
		err(1, "timer");
	engine->now = clock_ns(CLOCK_MONOTONIC);
	until = engine->now;
	if (engine->phase != WARMING && engine->phase_end && until > engine->phase_end)
		until = engine->phase_end;
	elapsed = (double)(until - engine->started) / (double)SECOND;
	/* The first is due immediately; the slack prevents that rounding delays one by a tick. */
	due = (uint64_t)(elapsed * engine->options->rate + 1.001);
	if (due > engine->released + engine->options->conns) {
		engine->released = due;
		pump_all(engine);
	}
	while (engine->released < due)
		pump(engine, &engine->conns[engine->released++ % engine->options->conns]);
}

/* A connection for each request: a connection is closed after its reply. */
static void renew(struct engine *engine, struct conn *conn)
{
	if (!engine->options->reconnect || conn->sent == 0 || conn_in_flight(conn) ||
		conn->sent == conn->quota || engine->phase == DRAINING)
		return;
	conn_reopen(conn);
	watch(engine, EPOLL_CTL_ADD, conn->fd, false, conn);
}

static void handle(struct engine *engine, const struct epoll_event *event)
{
	struct conn *conn = event->data.ptr;

	if (conn == NULL) {
		tick(engine);
		return;
	}
	if (event->events & (EPOLLIN | EPOLLERR | EPOLLHUP))
		receive(engine, conn);
	if (event->events & EPOLLOUT)
		conn_flush(conn);
	renew(engine, conn);
	pump(engine, conn);
}

/* Returns the requests in flight; in an open loop all due requests without a reply, sent or not. */
static uint64_t owed(const struct engine *engine)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < engine->options->conns; i++) {
		const struct conn *conn = &engine->conns[i];

		sum += (is_open_loop(engine) ? due_count(engine, conn) : conn->sent) -
			conn->received;
	}
	return sum;
}

static void start_measuring(struct engine *engine)
{
	engine->phase = MEASURING;
	engine->measured_from = engine->now;
	engine->phase_end = 0;
	if (engine->options->requests == 0)
		engine->phase_end = engine->now + seconds_ns(engine->options->seconds);
	add_cpu(engine, -1);
}

static void stop_measuring(struct engine *engine)
{
	const struct numbers *pids = &engine->options->pids;

	engine->phase = DRAINING;
	engine->result->seconds = (double)(engine->now - engine->measured_from) / (double)SECOND;
	add_cpu(engine, 1);
	for (size_t i = 0; i < pids->count; i++)
		read_status((pid_t)pids->list[i], &engine->result->processes[i]);
}

static bool phase_ended(const struct engine *engine)
{
	if (engine->phase_end == 0)
		return engine->result->requests == engine->options->requests;
	if (engine->now < engine->phase_end)
		return false;
	if (engine->phase != MEASURING || !is_open_loop(engine))
		return true;
	return owed(engine) == 0 || engine->now > engine->phase_end + PATIENCE;
}

/* Moves from phase to phase. Returns true while the run continues. */
static bool advance(struct engine *engine)
{
	bool ended = phase_ended(engine);

	if (ended && engine->phase == WARMING)
		start_measuring(engine);
	else if (ended && engine->phase == MEASURING)
		stop_measuring(engine);
	if (engine->phase != DRAINING) {
		if (engine->now > engine->last_reply + PATIENCE && owed(engine))
			errx(1, "no reply for 10 seconds");
		return true;
	}
	if (engine->now <= engine->phase_end + PATIENCE)
		return owed(engine) > 0;
	engine->result->lost = owed(engine);
	return false;
}

/* Ticks exactly when requests are due, or at a reasonable maximum rate. */
static void start_timer(struct engine *engine)
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
	if (engine->timer < 0 ||
		timerfd_settime(engine->timer, TFD_TIMER_ABSTIME, &spec, NULL) != 0)
		err(1, "timer");
	watch(engine, EPOLL_CTL_ADD, engine->timer, false, NULL);
}

static void start(struct engine *engine)
{
	engine->now = engine->started = engine->last_reply = clock_ns(CLOCK_MONOTONIC);
	if (engine->options->requests)
		start_measuring(engine);
	else
		engine->phase_end = engine->now + seconds_ns(engine->options->warmup) + 1;
	if (is_open_loop(engine))
		start_timer(engine);
	else
		pump_all(engine);
}

static void loop(struct engine *engine)
{
	struct epoll_event events[MAX_EVENTS];

	start(engine);
	while (advance(engine)) {
		int ready = epoll_wait(engine->epoll, events, MAX_EVENTS, 100);

		if (ready < 0 && errno != EINTR)
			err(1, "epoll");
		if (ready <= 0)
			engine->now = clock_ns(CLOCK_MONOTONIC);
		for (int i = 0; i < ready; i++)
			handle(engine, &events[i]);
	}
}

/* Opens all connections, spread evenly over the pool. */
static void open_conns(struct engine *engine)
{
	const struct options *options = engine->options;
	uint64_t total = options->requests;

	for (size_t i = 0; i < options->conns; i++) {
		struct conn *conn = &engine->conns[i];

		conn_open(conn, options, i, engine->tls);
		conn->next_send = conn->next_reply = i * engine->pool->count / options->conns;
		conn->quota = UINT64_MAX;
		if (total)
			conn->quota = (i + 1) * total / options->conns - i * total / options->conns;
		watch(engine, EPOLL_CTL_ADD, conn->fd, false, conn);
	}
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

void engine_run(const struct options *options, struct pool *pool, struct result *result)
{
	struct engine engine = {
		.tls = options->tls ? tls_context() : NULL,
		.options = options,
		.pool = pool,
		.result = result,
		.conns = must(calloc(options->conns, sizeof(struct conn))),
		.epoll = epoll_create1(EPOLL_CLOEXEC),
		.timer = -1,
		.buffer = must(malloc(READ_SIZE + CONN_STASH_SIZE)),
	};

	memset(result, 0, sizeof(*result));
	open_conns(&engine);
	loop(&engine);
	for (size_t i = 0; i < options->conns; i++)
		conn_close(&engine.conns[i]);
	if (engine.timer >= 0)
		close(engine.timer);
	close(engine.epoll);
	SSL_CTX_free(engine.tls);
	free(engine.conns);
	free(engine.buffer);
}
