#include "upstream/server_former.h"

#include <stddef.h>
#include <stdlib.h>

#include "net/countdown.h"
#include "util/alloc.h"
#include "util/log.h"

/* A server that sends a byte now and then may take so many times the limit. */
enum { LONGEST = 30 };

struct server_former {
	struct stream stream;
	struct pipeline pipeline;
	struct pipeline_peer peer;
	struct countdown timer;
	struct loop_job closing;
	uint64_t timeout, since, progress; /* milliseconds */
	size_t awaited;                    /* its share of loop.awaited */
	enum result_status why;            /* why calls that are left fail */
	void (*gone)(void *arg);
	void *arg;
};

static struct server_former *former_of(struct stream *stream)
{
	return (struct server_former *)((char *)stream - offsetof(struct server_former, stream));
}

static void pipeline_changed(struct server_former *f)
{
	f->stream.loop->awaited += f->pipeline.count - f->awaited;
	f->awaited = f->pipeline.count;
}

void server_former_destroy(struct server_former *f)
{
	if (!f)
		return;
	if (f->pipeline.count)
		log_warn("upstream %s: its former address: %zu calls fail", f->peer.server, f->pipeline.count);
	loop_forget(f->stream.loop, &f->closing);
	countdown_stop(&f->timer);
	stream_close(&f->stream);
	f->peer.now = f->stream.loop->now_us;
	pipeline_fail(&f->pipeline, f->why, &f->peer);
	pipeline_changed(f);
	pipeline_free(&f->pipeline);
	free(f);
}

static void on_closing(struct loop_job *job)
{
	struct server_former *f = (struct server_former *)((char *)job - offsetof(struct server_former, closing));
	void (*gone)(void *arg) = f->gone;
	void *arg = f->arg;

	server_former_destroy(f);
	gone(arg);
}

/* At the end of the turn, since the stream may be in use here. */
static void close_later(struct server_former *f, enum result_status why)
{
	f->why = why;
	loop_later(f->stream.loop, &f->closing);
}

static size_t on_data(struct stream *stream, struct slice in)
{
	struct server_former *f = former_of(stream);
	ssize_t n;

	f->peer.now = stream->loop->now_us;
	n = pipeline_read(&f->pipeline, in, &f->peer);

	pipeline_changed(f);
	f->progress = loop_clock();
	if (n < 0 || f->pipeline.count == 0) {
		stream_pause(stream);
		close_later(f, RESULT_LOST);
	}
	return n < 0 ? in.n : (size_t)n;
}

static void on_written(struct stream *stream, size_t n)
{
	struct server_former *f = former_of(stream);

	pipeline_written(&f->pipeline, n);
	if (n)
		f->progress = loop_clock();
}

static void on_ended(struct stream *stream, int error)
{
	(void)error;
	close_later(former_of(stream), RESULT_LOST);
}

/* As for the server's own connection. */
static size_t together(struct stream *stream, size_t skip, size_t max)
{
	return pipeline_together(&former_of(stream)->pipeline, skip, max);
}

static const struct stream_ops stream_ops = { on_data, on_written, on_ended, NULL, together };

static void on_time(void *arg)
{
	struct server_former *f = arg;
	uint64_t now = f->stream.loop->now, silent = f->progress + f->timeout, slow = f->since + LONGEST * f->timeout;
	uint64_t due = silent < slow ? silent : slow;

	if (now < due)
		countdown_start(&f->timer, due - now);
	else if (!f->timer.again || stream_is_ready(&f->stream))
		countdown_again(&f->timer);
	else
		close_later(f, RESULT_TIMED_OUT);
}

struct server_former *server_former_create(struct stream *stream, struct pipeline *pipeline, struct pipeline_peer peer,
	uint64_t timeout, void (*gone)(void *arg), void *arg)
{
	struct server_former *f = xcalloc(1, sizeof(*f));
	struct buf in = stream->in, out = stream->out;
	struct loop *loop = stream->loop;
	struct tls *tls;
	int fd;

	stream->in = stream->out = BUF_EMPTY;
	fd = stream_detach(stream, &tls);
	stream_open(&f->stream, loop, LOOP_SERVERS, fd, &stream_ops);
	if (tls)
		stream_encrypt(&f->stream, tls);
	f->stream.in = in;
	f->stream.out = out;
	f->pipeline = *pipeline;
	*pipeline = (struct pipeline){ 0 };
	f->peer = peer;
	f->timeout = timeout;
	f->since = f->progress = loop->now;
	f->why = RESULT_LOST;
	f->gone = gone;
	f->arg = arg;
	f->closing.run = on_closing;
	countdown_init(&f->timer, loop, on_time, f);
	pipeline_changed(f);
	if (buf_size(&out))
		stream_dirty(&f->stream);
	if (f->pipeline.count)
		countdown_start(&f->timer, timeout);
	else
		close_later(f, RESULT_LOST);
	return f;
}
