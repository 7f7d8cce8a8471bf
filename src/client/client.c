#include "client/client.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "admin.h"
#include "client/auth.h"
#include "client/binary.h"
#include "client/bounds.h"
#include "client/peer.h"
#include "client/reply.h"
#include "client/sasl.h"
#include "client/turns.h"
#include "client/window.h"
#include "command/start.h"
#include "command/target.h"
#include "protocol/reply.h"
#include "util/alloc.h"
#include "util/escape.h"
#include "util/log.h"
#include "worker/generation.h"

static struct client *client_of(struct stream *stream)
{
	return (struct client *)stream;
}

static void enter_generation(struct client *c)
{
	c->generation = c->worker->current;
	c->generation->clients++;
}

/* --- the end of a connection --- */

static void release(struct loop_job *job)
{
	free((char *)job - offsetof(struct client, release));
}

void client_close(struct client *c)
{
	struct worker *w = c->worker;
	struct task *task;

	if (!stream_is_open(&c->stream))
		return;
	while ((task = STAILQ_FIRST(&c->tasks))) {
		STAILQ_REMOVE_HEAD(&c->tasks, link);
		task->owner = NULL;
		task->abandoned = true;
		/* If it is done, it only waited for earlier ones. */
		if (task->done)
			client_task_free(task);
		else if (task->resume)
			task->resume(task);
	}
	c->order = (struct order){ 0 };
	client_turns_leave(c);
	c->generation->clients--;
	client_auth_end(c);
	stream_close(&c->stream);
	TAILQ_REMOVE(&w->clients, c, link);
	limits_close(c);
	atomic_fetch_sub(&w->daemon->connections, 1);
	worker_count(w, COUNT_closed_connections, 1);
	loop_later(&w->loop, &c->release);
	worker_stop_if_drained(w);
}

static bool is_answered(const struct client *c)
{
	return c->order.tasks == 0 && stream_waiting(&c->stream) == 0;
}

/* Whether data of a refused request are still to come. */
static bool is_skipping(const struct client *c)
{
	return c->skip || c->skip_end;
}

/* Whether there is no state that another worker would need. */
static bool is_quiet(const struct client *c)
{
	return is_answered(c) && buf_size(&c->stream.in) == 0 && !is_skipping(c) && !c->barrier && !c->paused &&
		!c->closing && !c->ended && !c->auth;
}

static void move_when_quiet(struct client *c)
{
	struct worker *w = c->worker;
	struct mail mail = { .kind = WORKER_ADOPT };

	if (!c->destination || w->draining || !stream_is_open(&c->stream) || !is_quiet(c))
		return;
	TAILQ_REMOVE(&w->clients, c, link);
	c->generation->clients--;
	worker_count(w, COUNT_moved_connections, 1);
	mail.fd = stream_detach(&c->stream, &mail.tls);
	worker_send(c->destination, mail);
	limits_close(c);
	loop_later(&w->loop, &c->release);
}

static bool may_start_request(const struct client *c)
{
	return !c->barrier && !c->turn.waits && !c->slowed && window_lets_go_on(c);
}

/*
 * A close with unread input resets the connection, and the peer loses what it has not received by then. While the daemon shuts down,
 * a request may come at any moment.
 */
static void close_if_finished(struct client *c)
{
	if (!c->closing || c->lingering || !is_answered(c))
		return;
	/* One that sends no more has closed its connection as a rule, and need not be asked about. */
	c->settled = c->ended || stream_is_settled(&c->stream);
	if (c->ended || (c->settled && !c->worker->draining)) {
		client_close(c);
		return;
	}
	c->lingering = true;
	limits_linger(c);
	stream_finish(&c->stream);
	stream_resume(&c->stream);
}

/* Requests that were read and wait, for earlier ones or for their turn, are still carried out. */
static bool is_owed(struct client *c)
{
	if (c->closing || c->departing || c->auth || may_start_request(c))
		return false;
	c->owed = buf_size(&c->stream.in);
	c->departing = c->owed > 0;
	return c->departing;
}

void client_drain(struct client *c)
{
	if (!stream_is_open(&c->stream) || c->lingering)
		return;
	if (stream_is_securing(&c->stream)) {
		client_close(c);
		return;
	}
	if (is_owed(c))
		return;
	c->closing = true;
	client_turns_leave(c);
	stream_pause(&c->stream);
	close_if_finished(c);
}

/* --- requests --- */

/* A request in either protocol; of one in text, `head` says nothing. */
static void carry_out(struct client *c, struct binary_request *b)
{
	struct request *request = &b->request;

	worker_count(c->worker, meter_class(request->command->id), 1);
	if (c->is_binary)
		client_binary_start(c, b);
	else if (!task_start(&c->generation->host, request, c))
		admin_start(c, request);
}

static void refuse(struct client *c, const struct binary_request *b)
{
	worker_count(c->worker, COUNT_cmd_refused, 1);
	if (c->is_binary)
		client_binary_refuse(c, b);
	else
		task_start_refused(&c->generation->host, &b->request, c);
}

void client_reply(struct client *c, const struct request *request, const char *line)
{
	task_refuse(&c->generation->host, request, c, line);
}

void client_refuse(struct client *c, const char *error)
{
	const struct binary_request b = { .request.error = error };

	c->began = c->worker->loop.now_us;
	/* A response that belongs to no request says nothing. */
	if (!c->is_binary)
		refuse(c, &b);
	client_drain(c);
}

/* The request waits, unread. It took its time from now on. Gives 0. */
static size_t delay(struct client *c)
{
	c->delayed = c->began;
	return 0;
}

/* A denied command is refused without another effect: one that is too large would delete its item. */
static enum request_status check_denied(
	const struct config *config, enum request_status status, struct request *request)
{
	if (status != REQUEST_READY && status != REQUEST_REFUSED)
		return status;
	if (!request->command || !command_set_has(&config->deny, request->command->id))
		return status;
	request->error = command_denied(request->command->id);
	request->too_large = false;
	return REQUEST_REFUSED;
}

/* Not inline: its arrays would cost every request. */
static __attribute__((noinline)) void log_http(const struct client *c, struct slice in)
{
	enum { SHOWN = 40 };
	char name[CLIENT_PEER], text[ESCAPE_SIZE(SHOWN)];

	if (log_level() < LOG_LEVEL_INFO)
		return;
	client_peer(c, name);
	escape_text(text, in, SHOWN);
	log_info("client %s: closed: it speaks HTTP: %s", name, text);
}

static enum request_status parse(struct client *c, struct slice in, struct binary_request *out)
{
	const struct config *config = client_config(c);
	struct request_limits limits = { config->max_line, config->max_value, config->max_keys };
	enum request_status status = c->is_binary ? binary_parse(in, &limits, &c->request, out)
						  : request_parse(in, &limits, &c->request, &out->request);

	return check_denied(config, status, &out->request);
}

/* Takes a request off the front of `in`. Gives its size, or 0 if it is incomplete or must wait. */
static size_t take_request(struct client *c, struct slice in)
{
	bool binary = client_binary_speaks(c, in);
	struct binary_request b;
	struct request *request = &b.request;
	struct order_needs needs;

	if (c->auth)
		return binary ? client_sasl_take(c, in) : client_auth_take(c, in);
	switch (parse(c, in, &b)) {
	case REQUEST_MORE:
		return 0;
	case REQUEST_HANGUP:
		if (binary)
			client_log(c, "closed: it has lost the binary protocol");
		else
			log_http(c, in);
		c->closing = true;
		break;
	case REQUEST_FATAL:
		request->noreply = false;
		refuse(c, &b);
		c->closing = true;
		break;
	case REQUEST_REFUSED:
		if (request_discards(request) && order_must_wait(&c->order, request)) {
			c->barrier = true;
			return delay(c);
		}
		refuse(c, &b);
		c->skip = request->skip;
		c->skip_end = request->skip_end;
		break;
	case REQUEST_READY:
		target_resolve(c->generation->host.env.rules, request, &needs);
		if (order_must_wait(&c->order, request)) {
			c->barrier = true;
			return delay(c);
		}
		if (client_turns_must_wait(c, request))
			return delay(c);
		carry_out(c, &b);
	}
	c->request = (struct request_progress){ 0 };
	return request->consumed;
}

/* Discards the data of a refused request; gives how many bytes. A lone CR stays until it is known what follows. */
static size_t skip_data(struct client *c, struct slice in)
{
	size_t n = in.n < c->skip ? in.n : c->skip;

	c->skip -= n;
	in = slice_skip(in, n);
	if (c->skip || in.n == 0 || slice_equal(in, SLICE("\r")))
		return n;
	if (c->skip_end)
		n += slice_starts(in, SLICE("\r\n")) ? 2 : in.p[0] == '\n';
	c->skip_end = false;
	return n;
}

static size_t discard(struct client *c, size_t n)
{
	c->settled = false;
	c->skip -= n < c->skip ? n : c->skip;
	if (c->skip == 0)
		client_close(c);
	return n;
}

static size_t on_data(struct stream *stream, struct slice in)
{
	struct client *c = client_of(stream);
	size_t used = 0, n;
	bool complete = false;

	if (c->lingering)
		return discard(c, in.n);
	if (c->departing && in.n > c->owed)
		in.n = c->owed;
	limits_active(c);
	c->began = c->delayed ? c->delayed : c->worker->loop.now_us;
	c->delayed = 0;
	while (used < in.n && !c->closing && may_start_request(c)) {
		if (is_skipping(c)) {
			used += skip_data(c, slice_skip(in, used));
			if (is_skipping(c))
				break;
			complete = true;
			continue;
		}
		n = take_request(c, slice_skip(in, used));
		if (n == 0)
			break;
		complete = true;
		used += n;
	}
	client_turns_end(c);
	if (c->closing || (c->departing && may_start_request(c))) {
		client_drain(c);
		return in.n;
	}
	if (c->departing)
		c->owed -= used;
	worker_count(c->worker, COUNT_bytes_read, used);
	if (!may_start_request(c)) {
		c->paused = true;
		stream_pause(stream);
	}
	if (used < in.n || limits_have_grown(c, LIMITS_AFTER_READ))
		limits_weigh(c, buf_size(&stream->in) ? 0 : in.n - used);
	limits_unfinished(c, !c->paused && (used < in.n || is_skipping(c)), complete);
	return used;
}

void client_resume(struct client *c)
{
	c->paused = false;
	limits_unfinished(c, is_skipping(c), true);
	stream_resume(&c->stream);
}

/* Resumes only when well below the limits, so that it does not pause and resume for each request. */
static void maybe_resume(struct client *c)
{
	struct task *first = STAILQ_FIRST(&c->tasks);
	bool room;

	if (c->order.tasks == 0) {
		c->barrier = false;
		if (c->generation != c->worker->current) {
			c->generation->clients--;
			enter_generation(c);
		}
	}
	/* As after most replies. */
	if (!c->paused && !(first && first->resume))
		return;
	room = stream_waiting(&c->stream) <= window_buffer(c) / 2;
	if (room && first && first->resume)
		first->resume(first);
	if (c->paused && !c->closing && !c->barrier && !c->turn.waits && !c->slowed && room && window_lets_resume(c))
		client_resume(c);
}

void client_renew(struct client *c)
{
	client_turns_leave(c);
	c->barrier = true;
	maybe_resume(c);
}

void client_answered(struct client *c)
{
	if (limits_have_grown(c, LIMITS_WITHIN_TURN))
		limits_weigh(c, 0);
	maybe_resume(c);
	close_if_finished(c);
}

static void on_written(struct stream *stream, size_t n)
{
	struct client *c = client_of(stream);

	worker_count(c->worker, COUNT_bytes_written, n);
	c->produced += n;
	c->unsent = 0;
	if (n > 0) {
		limits_waits(c);
		limits_active(c);
	}
	limits_weigh(c, 0);
	maybe_resume(c);
	close_if_finished(c);
	move_when_quiet(c);
}

static void on_ended(struct stream *stream, int error)
{
	struct client *c = client_of(stream);

	if (error == EPROTO)
		client_log(c, stream_error(stream, error));
	/* Without an error the client has closed its sending side only: its requests are answered. */
	c->ended = true;
	if (error || c->lingering)
		client_close(c);
	else
		client_drain(c);
}

static void on_secured(struct stream *stream)
{
	limits_unfinished(client_of(stream), false, false);
}

static const struct stream_ops ops = { on_data, on_written, on_ended, on_secured, NULL };

void client_open(struct worker *w, int fd, struct tls *tls, bool is_new)
{
	struct client *c = xcalloc(1, sizeof(*c));

	c->worker = w;
	enter_generation(c);
	c->release.run = release;
	STAILQ_INIT(&c->tasks);
	stream_open(&c->stream, &w->loop, LOOP_CLIENTS, fd, &ops);
	TAILQ_INSERT_TAIL(&w->clients, c, link);
	if (is_new)
		client_auth_open(c);
	limits_open(c);
	if (tls) {
		stream_encrypt(&c->stream, tls);
		limits_weigh(c, 0);
		limits_unfinished(c, stream_is_securing(&c->stream), true);
	}
	if (w->draining)
		client_drain(c);
}
