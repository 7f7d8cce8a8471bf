#include "net/stream.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/linux.h"

enum {
	SPARE_MAX = 8 * 1024,
	HOLD_MAX = 8 * 1024,
	READ_MORE = 64 * 1024,
	READ_DIRECT = 16 * 1024,
	VECTORS_MAX = 64
};

enum { SLICE_US = 500 /* microseconds of a turn for handshakes; no step begins after that */ };

static void pass_input(struct stream *stream, struct slice in)
{
	size_t used = stream->ops->data(stream, in);

	if (!stream_is_open(stream))
		return;
	if (stream->in.data && in.p == buf_slice(&stream->in).p)
		buf_consume(&stream->in, used);
	else
		buf_add_slice(&stream->in, slice_skip(in, used));
	if (buf_size(&stream->in) == 0)
		buf_free(&stream->in);
}

/* The rest of the input is copied by pass_input, as it is not in `in` any more. */
struct buf stream_take_input(struct stream *stream, struct slice text)
{
	return buf_is_mostly(&stream->in, text) ? buf_take(&stream->in) : BUF_EMPTY;
}

/*
 * Makes the socket be read in the next turn even if it has no input, since OpenSSL has buffered
 * data or pending records.
 */
static void read_at_once(struct stream *stream)
{
	static const struct timeval none = { 0, 0 };

	event_add(&stream->read, &none);
	stream->watched = true;
}

/*
 * As recv(). The session itself may have to reply, and output may have been held until the end
 * of the handshake.
 */
static ssize_t receive_encrypted(struct stream *stream, void *to, size_t size)
{
	bool was_ready = tls_is_ready(stream->tls);
	ssize_t n = tls_read(stream->tls, to, size);
	int error = errno;

	if (!was_ready && stream->ops->secured)
		stream->ops->secured(stream);
	if (tls_has_output(stream->tls) ||
		(!was_ready && tls_is_ready(stream->tls) && stream_waiting(stream)))
		stream_dirty(stream);
	if (tls_stopped(stream->tls) && stream->reading)
		read_at_once(stream);
	errno = error;
	return n;
}

static ssize_t receive(struct stream *stream, void *to, size_t size)
{
	return stream->tls ? receive_encrypted(stream, to, size) : recv(stream->fd, to, size, 0);
}

/* Returns whether there is much input that the owner has not consumed. */
static bool has_much(const struct stream *stream)
{
	return buf_size(&stream->in) >= READ_DIRECT;
}

/*
 * Reads into the loop's scratch buffer, unless there is much unconsumed input. So an idle
 * connection owns no buffer; one with a partial line owns a small one.
 */
static ssize_t receive_some(struct stream *stream, struct slice *in)
{
	size_t before = buf_size(&stream->in);
	bool direct = has_much(stream);
	char *to = direct ? buf_reserve(&stream->in, READ_MORE) : stream->loop->scratch;
	ssize_t n = receive(stream, to, direct ? READ_MORE : LOOP_SCRATCH);
	size_t came = n > 0 ? (size_t)n : 0;

	if (direct)
		buf_commit(&stream->in, came);
	else if (before)
		buf_add(&stream->in, to, came);
	*in = direct || before ? buf_slice(&stream->in) : slice_of(to, came);
	return n;
}

/* Reads, and passes the input to the owner. */
static void read_input(struct stream *stream)
{
	struct slice in;
	ssize_t n = receive_some(stream, &in);

	if (n > 0) {
		pass_input(stream, in);
	} else if (n == 0) {
		stream_pause(stream);
		stream->ops->ended(stream, 0);
	} else if (errno != EAGAIN && errno != EINTR) {
		stream->ops->ended(stream, errno);
	}
}

/* --- the queue of handshakes --- */

/* Queues a handshake. Meanwhile the socket is not watched, since it would be ready in each turn. */
static void line_up(struct stream *stream)
{
	struct loop *loop = stream->loop;

	event_del(&stream->read);
	stream->watched = false;
	stream->handshake.waits = true;
	TAILQ_INSERT_TAIL(&loop->handshakes.line, stream, handshake.link);
	loop_later(loop, &loop->handshakes.job);
}

static void leave_line(struct stream *stream)
{
	if (stream->handshake.waits)
		TAILQ_REMOVE(&stream->loop->handshakes.line, stream, handshake.link);
	stream->handshake.waits = false;
}

/*
 * Returns whether the client has closed its side before its first message was read. Such a
 * handshake cannot succeed, so it should not delay others.
 */
static bool has_given_up(const struct stream *stream)
{
	struct pollfd at = { .fd = stream->fd, .events = POLLRDHUP };

	return !tls_has_begun(stream->tls) && poll(&at, 1, 0) > 0;
}

static void take_step(struct stream *stream)
{
	leave_line(stream);
	if (!stream->reading)
		return;
	if (has_given_up(stream)) {
		stream->ops->ended(stream, 0);
		return;
	}
	event_add(&stream->read, NULL);
	stream->watched = true;
	read_input(stream);
}

void stream_shake_hands(struct loop_job *job)
{
	struct loop *loop = (struct loop *)((char *)job - offsetof(struct loop, handshakes.job));
	uint64_t begun = clock_us(CLOCK_MONOTONIC);
	struct stream *stream;

	while ((stream = TAILQ_FIRST(&loop->handshakes.line)) &&
		clock_us(CLOCK_MONOTONIC) - begun < SLICE_US)
		take_step(stream);
	if (stream)
		loop_after(loop, job, 0);
}

/* --- reading --- */

static void stream_on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct stream *stream = arg;

	(void)fd;
	if (!stream->reading) {
		event_del(&stream->read);
		stream->watched = false;
		return;
	}
	/*
	 * Input that was read before the pause is passed first: if the end of input overtook
	 * it, it would be lost.
	 */
	if (loop_is_queued(&stream->kick)) {
		if (what & EV_TIMEOUT)
			read_at_once(stream);
		return;
	}
	loop_enter(stream->loop);
	/* A timeout has also removed the event. */
	if (what & EV_TIMEOUT)
		event_add(&stream->read, NULL);
	if (stream->tls && tls_is_accepting(stream->tls))
		line_up(stream);
	else if (!has_much(stream) || !stream->ops->more || !stream->ops->more(stream, READ_MORE))
		read_input(stream);
}

static void stream_on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct stream *stream = arg;

	(void)fd;
	(void)what;
	loop_enter(stream->loop);
	stream->writing = false;
	stream_dirty(stream);
}

void stream_read_more(struct stream *stream)
{
	if (stream->reading && has_much(stream) && !loop_is_queued(&stream->kick))
		read_input(stream);
}

static void stream_on_kick(struct loop_job *job)
{
	struct stream *stream = (struct stream *)((char *)job - offsetof(struct stream, kick));

	if (buf_size(&stream->in))
		pass_input(stream, buf_slice(&stream->in));
}

void stream_kick(struct stream *stream)
{
	if (!loop_is_queued(&stream->kick))
		return;
	loop_forget(stream->loop, &stream->kick);
	stream_on_kick(&stream->kick);
}

void stream_open(struct stream *stream, struct loop *loop, enum loop_rank rank, int fd,
	const struct stream_ops *ops)
{
	*stream = (struct stream){
		.loop = loop, .ops = ops, .rank = rank, .fd = fd, .kick = { .run = stream_on_kick }
	};
	shared_chunks_init(&stream->chunks, &loop->shared_again);
	event_assign(
		&stream->read, loop->base, fd, EV_READ | EV_PERSIST, stream_on_readable, stream);
	event_assign(&stream->write, loop->base, fd, EV_WRITE, stream_on_writable, stream);
	stream_resume(stream);
}

void stream_encrypt(struct stream *stream, struct tls *tls)
{
	stream->tls = tls;
	tls_attach(tls, stream->fd);
	if (!tls_is_accepting(tls))
		read_at_once(stream);
}

static void unlist(struct stream *stream)
{
	struct stream_list *list =
		stream->held ? &stream->loop->held : &stream->loop->dirty[stream->rank];

	if (stream->dirty)
		TAILQ_REMOVE(list, stream, link);
	stream->dirty = stream->held = false;
}

int stream_detach(struct stream *stream, struct tls **tls)
{
	int fd = stream->fd;

	event_del(&stream->read);
	event_del(&stream->write);
	unlist(stream);
	leave_line(stream);
	loop_forget(stream->loop, &stream->kick);
	stream->fd = -1;
	*tls = stream->tls;
	stream->tls = NULL;
	buf_free(&stream->in);
	buf_free(&stream->out);
	shared_chunks_free(&stream->chunks);
	return fd;
}

void stream_close(struct stream *stream)
{
	struct tls *tls;
	int fd;

	if (!stream_is_open(stream))
		return;
	fd = stream_detach(stream, &tls);
	tls_destroy(tls);
	close(fd);
}

void stream_bound_kernel(struct stream *stream, int bytes)
{
	setsockopt(stream->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

void stream_reset_on_close(struct stream *stream)
{
	struct linger none = { .l_onoff = 1 };

	setsockopt(stream->fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
}

/*
 * Releases the empty output buffer after a write of `n` bytes, so that idle connections own
 * none. A stream to a server keeps a buffer that is well used, since a new one would have to
 * grow in each turn.
 */
static void release_output(struct stream *stream, size_t n)
{
	struct loop *loop = stream->loop;

	if (stream->rank == LOOP_SERVERS && n >= stream->out.cap / 8)
		return;
	if (stream->out.cap > SPARE_MAX || loop->spares.count == LOOP_SPARES) {
		buf_free(&stream->out);
		return;
	}
	loop->spares.at[loop->spares.count++] = stream->out;
	stream->out = BUF_EMPTY;
}

static bool is_worth_holding(const struct stream *stream)
{
	return stream->more && stream_waiting(stream) <= HOLD_MAX;
}

void stream_dirty(struct stream *stream)
{
	struct loop *loop = stream->loop;

	if (!stream->out.data && loop->spares.count)
		stream->out = loop->spares.at[--loop->spares.count];
	if (stream->held && !is_worth_holding(stream))
		unlist(stream);
	if (stream->dirty || stream->writing)
		return;
	stream->dirty = true;
	TAILQ_INSERT_TAIL(&loop->dirty[stream->rank], stream, link);
}

void stream_expect(struct stream *stream, bool more)
{
	stream->more = more;
	if (stream->held)
		stream_dirty(stream);
}

bool stream_hold(struct stream *stream)
{
	if (!is_worth_holding(stream))
		return false;
	unlist(stream);
	stream->dirty = stream->held = true;
	TAILQ_INSERT_TAIL(&stream->loop->held, stream, link);
	return true;
}

void stream_share(struct stream *stream, struct shared *text)
{
	stream_dirty(stream);
	shared_chunks_add(&stream->chunks, &stream->out, text);
}

static size_t stream_together(void *arg, size_t skip, size_t max)
{
	struct stream *stream = arg;

	return stream->ops->together(stream, skip, max);
}

static ssize_t send_chunks(struct stream *stream)
{
	struct iovec vectors[VECTORS_MAX];
	struct msghdr message = { .msg_iov = vectors };
	int count = shared_chunks_vectors(&stream->chunks, &stream->out, vectors, VECTORS_MAX);

	if (stream->tls)
		return tls_write(stream->tls, vectors, count,
			stream->ops->together ? stream_together : NULL, stream);
	message.msg_iovlen = (size_t)count;
	return sendmsg(stream->fd, &message, MSG_NOSIGNAL);
}

/* A server may have replied before its connection failed. These replies are read first. */
static void fail_stream(struct stream *stream, int error)
{
	struct slice in;

	while (stream->rank == LOOP_SERVERS && stream_is_open(stream) &&
		receive_some(stream, &in) > 0)
		pass_input(stream, in);
	if (stream_is_open(stream))
		stream->ops->ended(stream, error);
}

/*
 * Returns whether output is pending because the socket is not writable. During a handshake,
 * pending output does not count.
 */
static bool is_blocked(const struct stream *stream)
{
	if (!stream->tls)
		return stream_waiting(stream) > 0;
	return tls_has_output(stream->tls) || (stream_waiting(stream) && tls_is_ready(stream->tls));
}

void stream_flush(struct stream *stream)
{
	struct slice out = buf_slice(&stream->out);
	ssize_t n = 0;

	assert(stream->dirty);
	unlist(stream);
	if (stream->chunks.waiting || stream->tls)
		n = send_chunks(stream);
	else if (out.n)
		n = send(stream->fd, out.p, out.n, MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		fail_stream(stream, errno);
		return;
	}
	if (n > 0)
		shared_chunks_written(&stream->chunks, &stream->out, (size_t)n);
	if (is_blocked(stream)) {
		stream->writing = true;
		event_add(&stream->write, NULL);
	} else if (stream->finishing) {
		shutdown(stream->fd, SHUT_WR);
	}
	if (stream_waiting(stream) == 0)
		release_output(stream, out.n);
	stream->ops->written(stream, n > 0 ? (size_t)n : 0);
}

static bool is_acknowledged(const struct stream *stream)
{
	int unsent = 0;

	return !linux_unsent(stream->fd, &unsent) ||
		(unsent == 0 && !(stream->tls && tls_has_output(stream->tls)));
}

bool stream_is_idle(const struct stream *stream)
{
	int unread = 0;

	if (ioctl(stream->fd, FIONREAD, &unread) < 0)
		return true;
	return unread == 0 && !(stream->tls && tls_has_input(stream->tls)) &&
		is_acknowledged(stream);
}

static bool has_come(const struct stream *stream, short events)
{
	struct pollfd at = { .fd = stream->fd, .events = events };

	return poll(&at, 1, 0) > 0 && at.revents & (POLLERR | events);
}

/*
 * While the socket is still watched, no event has arrived since the pause began, not even an
 * error. POLLHUP is no error: a Unix socket also reports it if the peer has sent all its
 * requests and has read all replies so far.
 */
bool stream_is_broken(const struct stream *stream)
{
	return !stream->watched && has_come(stream, 0);
}

bool stream_has_delivered(const struct stream *stream)
{
	/* POLLHUP means only that both sides have shut down. */
	return is_acknowledged(stream) || has_come(stream, 0);
}

bool stream_has_ended(const struct stream *stream)
{
	return has_come(stream, POLLHUP | POLLRDHUP);
}

bool stream_is_ready(const struct stream *stream)
{
	struct pollfd at = { .fd = stream->fd };

	if (!stream_is_open(stream))
		return false;
	if (stream->reading && stream->tls && tls_has_input(stream->tls))
		return true;
	at.events = (short)((stream->reading ? POLLIN : 0) | (stream->writing ? POLLOUT : 0));
	return at.events && poll(&at, 1, 0) > 0 && at.revents & at.events;
}

const char *stream_error(const struct stream *stream, int error)
{
	const char *reason = stream->tls ? tls_reason(stream->tls) : NULL;

	return reason ? reason : strerror(error);
}

void stream_finish(struct stream *stream)
{
	if (!stream->tls) {
		shutdown(stream->fd, SHUT_WR);
		return;
	}
	tls_finish(stream->tls);
	stream->finishing = true;
	stream_dirty(stream);
}

void stream_pause(struct stream *stream)
{
	/*
	 * Most pauses end before any input arrives. So the socket is watched until it does,
	 * which saves two system calls.
	 */
	stream->reading = false;
}

static void start_reading(struct stream *stream)
{
	stream->reading = true;
	if (stream->tls && tls_has_input(stream->tls))
		read_at_once(stream);
	else if (!stream->watched)
		event_add(&stream->read, NULL);
	stream->watched = true;
}

void stream_resume(struct stream *stream)
{
	if (!stream->reading)
		start_reading(stream);
	if (buf_size(&stream->in))
		loop_later(stream->loop, &stream->kick);
}
