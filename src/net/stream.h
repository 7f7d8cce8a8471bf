/*
 * A non-blocking socket. Input is passed to the owner as it arrives. Output is collected in a
 * buffer and written once at the end of the loop's turn. With a TLS session both are encrypted,
 * and output is held until the handshake is complete.
 *
 * A handshake with a client costs as much time as many requests. Therefore handshakes are
 * queued, and each turn spends half a millisecond on their steps, after all ready I/O.
 */
#ifndef NET_STREAM_H
#define NET_STREAM_H

#include <event2/event.h>
#include <event2/event_struct.h>

#include "net/loop.h"
#include "net/tls.h"
#include "util/buf.h"
#include "util/shared.h"

struct stream;

struct stream_ops {
	/* Returns the bytes of input consumed; the rest is passed again. May close the stream. */
	size_t (*data)(struct stream *stream, struct slice in);
	/* Called when `n` bytes were written, which may be 0. */
	void (*written)(struct stream *stream, size_t n);
	/* The peer sends no more (`error` is 0), or the connection failed; see stream_error(). */
	void (*ended)(struct stream *stream, int error);
	/* A TLS handshake made progress; see stream_is_securing(). Must not close the stream. */
	void (*secured)(struct stream *stream);
	/*
	 * Returns the bytes after `skip` for one TLS record, at most `max`. NULL: as many as
	 * fit.
	 */
	size_t (*together)(struct stream *stream, size_t skip, size_t max);
	/*
	 * Called before about `n` bytes are added to much unconsumed input. Returns whether they
	 * are not read now; the owner resumes the stream later. NULL: they are read.
	 */
	bool (*more)(struct stream *stream, size_t n);
};

struct stream {
	TAILQ_ENTRY(stream) link; /* In a dirty list or the held list of the loop. */
	struct {
		TAILQ_ENTRY(stream) link; /* In the loop's queue of handshakes. */
		bool waits;               /* The stream is in that queue. */
	} handshake;
	struct loop *loop;
	const struct stream_ops *ops;
	struct event read, write;
	struct loop_job kick; /* Passes `in` to the owner after a pause. */
	struct tls *tls;      /* Owned; NULL for plain text. */
	struct buf in, out;
	struct shared_chunks chunks; /* Shared texts between the bytes of `out`. */
	enum loop_rank rank;
	int fd;                             /* -1 if closed. */
	bool dirty, held, reading, writing; /* `writing`: until the socket is writable. */
	bool watched;                       /* `read` is added, even if the stream is paused. */
	bool more;                          /* More output is expected; see stream_expect(). */
	bool finishing;                     /* The socket is shut down after all output. */
};

/* Takes ownership of a connected, non-blocking socket and starts reading. `ops` is borrowed. */
void stream_open(struct stream *stream, struct loop *loop, enum loop_rank rank, int fd,
	const struct stream_ops *ops);

/* Takes ownership of a TLS session, new or of a detached stream, before any read or write. */
void stream_encrypt(struct stream *stream, struct tls *tls);

/* Closes the socket and discards unwritten output. Does nothing if the stream is closed. */
void stream_close(struct stream *stream);

/* Limits the unsent output in the kernel. Linux doubles the number for its own overhead. */
void stream_bound_kernel(struct stream *stream, int bytes);

/* Makes a later close reset the connection, so the kernel discards its unsent output. */
void stream_reset_on_close(struct stream *stream);

/* Closes the stream but not its socket, which the caller then owns, with its session in `tls`. */
int stream_detach(struct stream *stream, struct tls **tls);

/* Schedules a write of `out`. If called before `out` is filled, a spare buffer is reused. */
void stream_dirty(struct stream *stream);

/* Queues a text after `out` without copying it; holds a reference until it is written. */
void stream_share(struct stream *stream, struct shared *text);

/* Writes as much as the socket accepts. Called by the loop. */
void stream_flush(struct stream *stream);

/* The job loop.handshakes.job: does the next steps of handshakes. Called by the loop. */
void stream_shake_hands(struct loop_job *job);

/* Sets whether more output is expected soon. A small output may then be held back for it. */
void stream_expect(struct stream *stream, bool more);

/* Moves a dirty stream to the held list if more output is expected; otherwise returns false. */
bool stream_hold(struct stream *stream);

/* Returns whether all output is acknowledged and all input was read: a close loses nothing. */
bool stream_is_idle(const struct stream *stream);

/* Returns whether all output is acknowledged, or cannot be since the connection has failed. */
bool stream_has_delivered(const struct stream *stream);
/* Returns whether the connection has failed. A paused stream without output does not notice it. */
bool stream_is_broken(const struct stream *stream);

/* Returns whether the connection has failed or the peer sends no more, even with unread input. */
bool stream_has_ended(const struct stream *stream);

/*
 * Returns whether the socket has input, or room for pending output, that the loop has not
 * handled. If the stream reads, end of file and errors count as input. False if it is closed.
 */
bool stream_is_ready(const struct stream *stream);

/* Returns the text of an error that was passed to `ended`. Valid while the stream is open. */
const char *stream_error(const struct stream *stream, int error);

/* Shuts down the sending side, once all output is written. */
void stream_finish(struct stream *stream);

/* Stop and start reading. Each start passes unconsumed input to the owner again. */
void stream_pause(struct stream *stream);
void stream_resume(struct stream *stream);

/* Passes the unconsumed input to the owner now instead of at the end of the turn. */
void stream_kick(struct stream *stream);

/* Reads now, if there is much unconsumed input and the stream is not paused. */
void stream_read_more(struct stream *stream);

/*
 * Returns the buffer of the input that is being passed to the owner, if `text` is the greater part
 * of the input from there on, so that it need not be copied; otherwise an empty buffer. The caller
 * owns it, but must not free it before ops->data returns: the rest of the input is still in it.
 */
struct buf stream_take_input(struct stream *stream, struct slice text);

/* Returns the bytes of unwritten output. */
static inline size_t stream_waiting(const struct stream *stream)
{
	return buf_size(&stream->out) + stream->chunks.waiting;
}

/*
 * Returns the bytes of memory that the stream uses for unconsumed input and pending output.
 * Buffers count with their capacity, since the allocator may have recycled the part that is not
 * filled.
 */
static inline size_t stream_memory(const struct stream *stream)
{
	return stream->in.cap + stream->out.cap + stream->chunks.held +
		(stream->tls ? tls_memory(stream->tls) : 0);
}

/* Returns whether a TLS handshake is in progress; nothing can be written until it is complete. */
static inline bool stream_is_securing(const struct stream *stream)
{
	return stream->tls && !tls_is_ready(stream->tls);
}

static inline bool stream_is_open(const struct stream *stream)
{
	return stream->fd >= 0;
}

#endif
