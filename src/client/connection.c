#include "client/connection.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "client/auth.h"
#include "client/log.h"
#include "client/protocols.h"
#include "client/state.h"
#include "client/turns.h"
#include "command/start.h"
#include "command/target.h"
#include "net/tls.h"
#include "util/alloc.h"
#include "util/escape.h"
#include "util/heap.h"

enum {
	/* Part of client_memory that the kernel may use for the buffers of all clients. */
	KERNEL_PART = 4,
	KERNEL_LEAST = 16 << 10, /* Minimum bytes for one client. */
	KERNEL_MOST = 256 << 10,
	/*
	 * Bytes of a line that is kept until its data were discarded; a longer one is refused
	 * at once.
	 */
	REFUSED_LINE = 2048
};

static struct client *client_of(struct stream *stream)
{
	return (struct client *)stream;
}

static void enter_generation(struct client *c)
{
	c->generation = c->clients->generation;
	generation_enter(c->generation);
}

/* --- the end of a connection --- */

static void connection_release(struct loop_job *job)
{
	client_release((struct client *)((char *)job - offsetof(struct client, release)));
}

static void mark_closed(struct client *c)
{
	c->state = CLIENT_CLOSED;
	c->users = 1; /* Dropped in connection_release(). */
	account_close(&c->account, c->clients->loop->now);
}

/* Removes the client from all lists and counters of the worker. */
static void leave_worker(struct client *c)
{
	client_turn_close(c);
	free(c->input.refused);
	c->input.refused = NULL;
	request_progress_end(&c->input.progress);
	generation_leave(c->generation);
	bounds_close(c);
	loop_later(c->clients->loop, &c->release);
}

/* Marks all tasks as abandoned. Frees the ones that are done and only waited for earlier ones. */
static void abandon_tasks(struct client *c)
{
	struct task *task;

	while ((task = STAILQ_FIRST(&c->tasks))) {
		STAILQ_REMOVE_HEAD(&c->tasks, link);
		account_hold(&c->account, 0, task->spilled);
		task->spilled = 0;
		task->owner = NULL;
		c->users++;
		if (task->done)
			client_free_task(task);
		else if (task->resume)
			task->resume(task);
	}
	c->order = (struct order){ 0 };
}

void client_close(struct client *c)
{
	struct clients *all = c->clients;

	if (c->state == CLIENT_CLOSED)
		return;
	mark_closed(c);
	abandon_tasks(c);
	auth_end(c);
	stream_close(&c->stream);
	leave_worker(c);
	atomic_fetch_sub(&all->total->connections, 1);
	client_count(c, COUNT_closed_connections, 1);
	all->ops->idle(all->arg);
}

static bool is_answered(const struct client *c)
{
	return c->order.tasks == 0 && stream_waiting(&c->stream) == 0;
}

/* Returns whether the client can move, as another worker would need none of its state. */
static bool is_quiet(const struct client *c)
{
	return is_answered(c) && buf_size(&c->stream.in) == 0 && !client_is_skipping(c) &&
		!c->pauses && c->state == CLIENT_OPEN && !c->input.has_ended && !c->auth;
}

static void hand_over_when_quiet(struct client *c)
{
	struct clients *all = c->clients;
	struct tls *tls;
	int fd;

	if (!c->destination || all->draining || !is_quiet(c))
		return;
	client_count(c, COUNT_moved_connections, 1);
	mark_closed(c);
	fd = stream_detach(&c->stream, &tls);
	leave_worker(c);
	all->ops->hand_over(c->destination, fd, tls);
}

/*
 * A close with unread input resets the connection, and the kernel then drops all replies that
 * the peer's kernel has not acknowledged. While the daemon shuts down, a request may arrive at
 * any moment.
 */
static void close_if_finished(struct client *c)
{
	if (c->state != CLIENT_CLOSING || !is_answered(c))
		return;
	/*
	 * A client that sends no more has usually closed its connection, so the kernel need not
	 * be queried.
	 */
	if (c->input.has_ended || (!c->clients->draining && stream_is_idle(&c->stream)))
		client_close(c);
	else
		client_linger(c);
}

/* Requests that were read and are delayed by earlier ones or by turns are still carried out. */
void client_drain(struct client *c)
{
	if (c->state != CLIENT_OPEN)
		return;
	if (stream_is_securing(&c->stream)) {
		client_close(c);
	} else if (c->pauses && !c->auth && buf_size(&c->stream.in)) {
		client_depart(c);
	} else {
		client_turn_leave(c);
		client_stop(c);
	}
}

/* --- requests --- */

static void start_request(struct client *c, struct parsed *parsed)
{
	meter_request(c->clients->meter, &parsed->request);
	c->input.protocol->start(c, parsed);
}

static void refuse_denied(struct client *c, const struct request *request)
{
	client_count(c, COUNT_cmd_refused, 1);
	task_start_refused(client_host(c), request, c);
}

/* Translates a slice of the request at `from` to its copy at `to`. */
static struct slice moved_slice(struct slice s, const char *from, const char *to)
{
	return s.n ? slice_of(to + (s.p - from), s.n) : slice_of(to, 0);
}

/*
 * Refuses the request at the front of `in`. If it has data, the reply is sent after they were
 * discarded.
 */
static void refuse_after_data(struct client *c, const struct parsed *parsed, struct slice in)
{
	const struct request *request = &parsed->request;
	struct client_refused *kept;

	client_skip(c, request);
	if (!client_is_skipping(c) || request->consumed > REFUSED_LINE) {
		refuse_denied(c, request);
		return;
	}
	c->input.refused = kept = xmalloc(sizeof(*kept) + request->consumed);
	memcpy(kept->line, in.p, request->consumed);
	kept->parsed.request = *request;
	kept->parsed.request.key = moved_slice(request->key, in.p, kept->line);
	kept->parsed.request.rest = moved_slice(request->rest, in.p, kept->line);
	if (request->reply) {
		kept->parsed.reply = *request->reply;
		kept->parsed.reply.asked =
			memcpy(kept->parsed.asked, parsed->asked, sizeof(parsed->asked));
		kept->parsed.request.reply = &kept->parsed.reply;
	}
}

/* Sends the reply to a refused request, as its data were discarded. */
static void end_skip(struct client *c)
{
	struct client_refused *kept = c->input.refused;

	c->input.refused = NULL;
	if (kept)
		refuse_denied(c, &kept->parsed.request);
	free(kept);
}

void client_refuse(struct client *c, const char *error)
{
	const struct request request = { .error = error };

	c->input.began = c->clients->loop->now_us;
	if (!c->input.protocol || !c->input.protocol->frames)
		refuse_denied(c, &request);
	client_drain(c);
}

/* Leaves the request unparsed. Its delay counts from the time when it was received. Returns 0. */
static size_t delay(struct client *c)
{
	c->input.delayed = c->input.began;
	return 0;
}

/*
 * Refuses a denied command without any other effect: a command whose data are too large would
 * delete its item.
 */
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

/*
 * Logs input that is not a command, or that closes the client. Not inline, as its arrays would
 * slow down every request.
 */
static __attribute__((noinline)) void log_nonsense(
	const struct client *c, struct slice in, bool closes)
{
	enum { SHOWN = 40 };
	char name[CLIENT_NAME], text[ESCAPE_SIZE(SHOWN)];

	bool rare = log_level() < LOG_LEVEL_INFO || !closes;

	client_name(c, name);
	escape_text(text, rare ? slice_cut(&in, '\r') : in, SHOWN);
	if (rare)
		log_rare("client %s: unknown command or protocol: %s", name, text);
	else if (c->input.protocol->frames)
		log_info("client %s: closed: %s protocol error", name, c->input.protocol->name);
	else
		log_info("client %s: closed: it sent an HTTP request: %s", name, text);
}

static enum request_status parse_input(struct client *c, struct slice in, struct parsed *out)
{
	const struct config *config = client_config(c);
	struct request_limits limits = { config->max_line, config->max_value, config->max_keys };
	enum request_status status = c->input.protocol->parse(in, &limits, &c->input.progress, out);

	return check_denied(config, status, &out->request);
}

/* Takes a request off the front of `in`. Returns its size, or 0 if it is incomplete or delayed. */
static size_t take_request(struct client *c, struct slice in)
{
	struct parsed parsed;
	struct request *request = &parsed.request;
	struct order_needs needs;

	/* As in memcached, the first byte of the connection selects the protocol. */
	if (!c->input.protocol)
		c->input.protocol = protocol_of((unsigned char)in.p[0]);
	if (c->auth)
		return c->input.protocol->authenticate(c, in);
	switch (parse_input(c, in, &parsed)) {
	case REQUEST_MORE:
		return 0;
	case REQUEST_HANGUP:
		log_nonsense(c, in, true);
		client_stop(c);
		break;
	case REQUEST_FATAL:
		request->noreply = false;
		if (!request->command)
			log_nonsense(c, in, false);
		refuse_denied(c, request);
		client_stop(c);
		break;
	case REQUEST_REFUSED:
		if (request_discards(request) && order_must_wait(&c->order, request)) {
			client_pause(c, PAUSE_ORDER);
			return delay(c);
		}
		if (!request->command)
			log_nonsense(c, in, false);
		refuse_after_data(c, &parsed, in);
		break;
	case REQUEST_READY:
		target_resolve(client_host(c)->env.rules, request, &needs);
		if (order_must_wait(&c->order, request)) {
			client_pause(c, PAUSE_ORDER);
			return delay(c);
		}
		if (client_turn_must_wait(c, request))
			return delay(c);
		start_request(c, &parsed);
	}
	request_progress_end(&c->input.progress);
	return request->consumed;
}

/*
 * Discards the data of a refused request. Returns the number of bytes. A lone CR is kept until
 * the next byte arrives.
 */
static size_t skip_data(struct client *c, struct slice in)
{
	size_t n = in.n < c->input.skip.bytes ? in.n : c->input.skip.bytes;

	c->input.skip.bytes -= n;
	in = slice_skip(in, n);
	if (c->input.skip.bytes || in.n == 0 || slice_equal(in, SLICE("\r")))
		return n;
	if (c->input.skip.line_end)
		n += slice_starts(in, SLICE("\r\n")) ? 2 : in.p[0] == '\n';
	c->input.skip.line_end = false;
	return n;
}

/*
 * Discards input of a lingering client. Without this a client that sends all its requests
 * before it reads replies could not proceed.
 */
static size_t discard(struct client *c, size_t n)
{
	c->input.is_silent = false;
	c->input.skip.bytes -= n < c->input.skip.bytes ? n : c->input.skip.bytes;
	if (c->input.skip.bytes == 0)
		stream_pause(&c->stream);
	return n;
}

/*
 * Shorter input is carried out at once, so that a client that sends little is not delayed by
 * clients that send much.
 */
enum { SHORT_INPUT = 4096 };

/*
 * Makes a client that sends much yield when the requests of this turn have used up their time;
 * `used` bytes of its input were carried out.
 */
static void give_way(struct client *c, size_t used)
{
	if (!work_input_is_over(&c->clients->loop->work, used))
		return;
	(void)delay(c);
	client_turn_give_way(c);
}

/* Carries out requests from the front of `in`. Returns their size. */
static size_t carry_out_all(struct client *c, struct slice in, bool *complete)
{
	size_t used = 0, n;

	while (used < in.n && client_may_start(c)) {
		if (client_is_skipping(c)) {
			used += skip_data(c, slice_skip(in, used));
			if (client_is_skipping(c))
				break;
			end_skip(c);
			*complete = true;
			continue;
		}
		n = take_request(c, slice_skip(in, used));
		if (n == 0)
			break;
		*complete = true;
		used += n;
		if (in.n - used > SHORT_INPUT)
			give_way(c, n);
	}
	return used;
}

static size_t connection_on_data(struct stream *stream, struct slice in)
{
	struct client *c = client_of(stream);
	bool complete = false;
	size_t used = 0;

	if (c->state == CLIENT_LINGERING)
		return discard(c, in.n);
	if (c->state == CLIENT_DEPARTING && in.n > c->input.owed)
		in.n = c->input.owed;
	bounds_active(c);
	account_change(&c->account);
	if (!c->pauses) {
		c->input.began = c->input.delayed ? c->input.delayed : c->clients->loop->now_us;
		c->input.delayed = 0;
		if (in.n > SHORT_INPUT)
			give_way(c, in.n);
		used = carry_out_all(c, in, &complete);
		client_turn_end(c);
		client_count(c, COUNT_bytes_read, used);
	}
	if (c->state == CLIENT_DEPARTING) {
		c->input.owed -= used;
		/* A pause after the last request would not end in a call of this function. */
		if (c->input.owed == 0 || client_may_start(c))
			client_stop(c);
	}
	if (client_is_closing(c)) {
		client_turn_leave(c);
		return in.n;
	}
	if (!client_may_start(c))
		client_hold(c, in.n - used);
	bounds_unfinished(c, !c->pauses && (used < in.n || client_is_skipping(c)), complete);
	return used;
}

/*
 * Makes room for a large request when little of it was received: the buffer would be copied as it
 * grows, until it is large. Memory that is not used yet costs nothing.
 */
static void make_room(struct client *c)
{
	struct buf *in = &c->stream.in;

	if (c->input.progress.needed > HEAP_LARGE / 2 && in->cap < HEAP_LARGE)
		(void)buf_reserve(in, HEAP_LARGE - buf_size(in));
}

/*
 * A client that has sent a part of a long request gives way before more of it is read: reading and
 * moving it takes time, too.
 */
static bool connection_on_more(struct stream *stream, size_t n)
{
	struct client *c = client_of(stream);

	make_room(c);
	if (c->pauses || c->state != CLIENT_OPEN || !work_input_is_over(&c->clients->loop->work, n))
		return false;
	(void)delay(c);
	client_turn_give_way(c);
	client_hold(c, buf_size(&stream->in));
	return true;
}

/* --- once per turn --- */

/*
 * Lets a task that waits for room write more of its reply. If that completes it, the next task
 * becomes the first.
 */
static void resume_task(struct client *c)
{
	struct task *task, *last = NULL;

	while ((task = STAILQ_FIRST(&c->tasks)) && task != last && task->resume &&
		stream_waiting(&c->stream) <= window_buffer(c) / 2) {
		last = task;
		task->resume(task);
	}
}

static void change_generation(struct client *c)
{
	generation_leave(c->generation);
	enter_generation(c);
}

void client_end_turn(struct client *c)
{
	resume_task(c);
	bounds_weigh(c);
	if (c->order.tasks == 0 && c->generation != c->clients->generation)
		change_generation(c);
	if (c->pauses)
		client_look_for_room(c);
	close_if_finished(c);
	hand_over_when_quiet(c);
	account_end_turn(&c->account);
}

void client_renew(struct client *c)
{
	if (c->order.tasks)
		client_pause(c, PAUSE_ORDER);
	else
		change_generation(c);
	client_go_on(c, PAUSE_TURN);
}

/*
 * The disconnect of a paused client is detected only here. Its requests would take time from
 * other clients.
 */
void client_take_turn(struct client *c)
{
	if (stream_is_broken(&c->stream))
		client_close(c);
	else
		client_go_on(c, PAUSE_TURN);
}

static void connection_on_written(struct stream *stream, size_t n)
{
	struct client *c = client_of(stream);

	client_count(c, COUNT_bytes_written, n);
	c->output.produced += n;
	c->output.unsent = 0;
	if (n > 0) {
		bounds_progress(c);
		bounds_active(c);
	}
	account_change(&c->account);
}

static void connection_on_ended(struct stream *stream, int error)
{
	struct client *c = client_of(stream);

	if (error == EPROTO)
		client_notice(c, stream_error(stream, error));
	/*
	 * Without an error the client has only closed its sending side: its requests are
	 * answered.
	 */
	c->input.has_ended = true;
	account_change(&c->account);
	if (error || c->state == CLIENT_LINGERING)
		client_close(c);
	else
		client_drain(c);
}

static void connection_on_secured(struct stream *stream)
{
	struct client *c = client_of(stream);

	account_change(&c->account);
	if (stream_is_securing(stream))
		return;
	client_count(c, COUNT_tls_handshakes, 1);
	bounds_unfinished(c, false, false);
}

static const struct stream_ops ops = {
	connection_on_data,
	connection_on_written,
	connection_on_ended,
	connection_on_secured,
	NULL,
	connection_on_more,
};

/*
 * Limits the kernel's buffers, which otherwise grow to 4 MB per client. Clients that do not
 * read would use up the memory for TCP of the whole machine, and then all its sockets stall.
 */
static void bound_kernel(struct client *c)
{
	size_t limit = client_config(c)->client_memory;
	size_t share =
		limit / KERNEL_PART / ((size_t)atomic_load(&c->clients->total->connections) + 1);

	if (!limit || share > KERNEL_MOST)
		share = KERNEL_MOST;
	stream_bound_kernel(&c->stream, share < KERNEL_LEAST ? KERNEL_LEAST : (int)share);
}

void client_open(struct clients *all, int fd, struct tls *tls, bool is_new)
{
	struct client *c = xcalloc(1, sizeof(*c));

	c->clients = all;
	c->account.changed = &all->changed;
	enter_generation(c);
	c->release.run = connection_release;
	STAILQ_INIT(&c->tasks);
	stream_open(&c->stream, all->loop, LOOP_CLIENTS, fd, &ops);
	bound_kernel(c);
	bounds_open(c);
	window_open(c);
	client_turn_open(c);
	if (is_new)
		auth_open(c);
	if (tls) {
		stream_encrypt(&c->stream, tls);
		account_change(&c->account);
		bounds_unfinished(c, stream_is_securing(&c->stream), true);
	}
	if (all->draining)
		client_drain(c);
}
