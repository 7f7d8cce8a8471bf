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
	/*
	 * Called with input. Returns the number of bytes consumed; the rest is passed again
	 * together with further input. The owner may close the stream in this call; the result
	 * is then ignored.
	 */
	size_t (*data)(struct stream *stream, struct slice in);
	/* Called when `n` bytes were written, which may be 0. */
	void (*written)(struct stream *stream, size_t n);
	/*
	 * Called when the peer has closed its side (`error` is 0) or the connection has failed
	 * (`error` is an errno; see stream_error()).
	 */
	void (*ended)(struct stream *stream, int error);
	/*
	 * Called when a TLS handshake has made progress; stream_is_securing() returns false
	 * when it is complete. Must not close the stream.
	 */
	void (*secured)(struct stream *stream);
	/*
	 * Returns how many bytes after the first `skip` unwritten ones belong in one TLS
	 * record, at most `max`. NULL means as many as fit.
	 */
	size_t (*together)(struct stream *stream, size_t skip, size_t max);
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
	int fd; /* -1 if closed. */
	/* `writing`: output is pending until the socket is writable. */
	bool dirty, held, reading, writing;
	/* The event `read` is added, possibly although the stream is paused. */
	bool watched;
	bool more; /* More output is expected; see stream_expect(). */
	/* The socket is shut down once all output is written. */
	bool finishing;
};

/* Takes ownership of a connected, non-blocking socket and starts reading. `ops` is borrowed. */
void stream_open(struct stream *stream, struct loop *loop, enum loop_rank rank, int fd, const struct stream_ops *ops);

/*
 * Takes ownership of a TLS session, either new or of a detached stream, and continues its
 * handshake. Must be called before anything is read or written.
 */
void stream_encrypt(struct stream *stream, struct tls *tls);

/* Closes the socket and discards unwritten output. Does nothing if the stream is closed. */
void stream_close(struct stream *stream);

/*
 * Limits the bytes of unsent output in the kernel. Linux doubles the number to leave room for
 * its own data.
 */
void stream_bound_kernel(struct stream *stream, int bytes);

/* Makes a later close reset the connection, so the kernel discards its unsent output. */
void stream_reset_on_close(struct stream *stream);

/*
 * Closes an open stream without closing its socket. Returns the socket and stores its TLS
 * session, or NULL, in `tls`; the caller owns both.
 */
int stream_detach(struct stream *stream, struct tls **tls);

/*
 * Schedules `out` to be written at the end of the turn. If called before `out` is filled, a
 * spare buffer is reused.
 */
void stream_dirty(struct stream *stream);

/*
 * Queues a text after the bytes in `out`, without copying it. Holds a reference until it is
 * written.
 */
void stream_share(struct stream *stream, struct shared *text);

/* Writes as much as the socket accepts. Called by the loop. */
void stream_flush(struct stream *stream);

/* The job loop.handshakes.job: does the next steps of handshakes. Called by the loop. */
void stream_shake_hands(struct loop_job *job);

/* Sets whether more output is expected soon. A small output may then be held back for it. */
void stream_expect(struct stream *stream, bool more);

/*
 * Moves a dirty stream to the held list if it expects more output; otherwise returns false.
 * Called by the loop.
 */
bool stream_hold(struct stream *stream);

/*
 * Returns whether the peer's kernel has acknowledged all output and all input was read, so that
 * a close loses nothing.
 */
bool stream_is_settled(const struct stream *stream);

/*
 * Returns whether the peer's kernel has acknowledged all output, or never will because the
 * connection has failed.
 */
bool stream_has_delivered(const struct stream *stream);
/*
 * Returns whether the connection has failed. A paused stream without output does not notice
 * this by itself.
 */
bool stream_is_broken(const struct stream *stream);

/*
 * Returns whether the connection has failed or the peer has closed its side, even if unread
 * input is left.
 */
bool stream_has_ended(const struct stream *stream);

/*
 * Returns whether the socket has input, or room for pending output, that the loop has not
 * handled yet. For a stream that is reading, end of file and errors count as input. Returns
 * false if the stream is closed.
 */
bool stream_is_ready(const struct stream *stream);

/* Returns the text of an error that was passed to `ended`. Valid while the stream is open. */
const char *stream_error(const struct stream *stream, int error);

/* Shuts down the sending side, once all output is written. */
void stream_finish(struct stream *stream);

/*
 * Stop and start reading. A start passes unconsumed input to the owner again, even if the
 * stream was already reading.
 */
void stream_pause(struct stream *stream);
void stream_resume(struct stream *stream);

/* Passes the unconsumed input to the owner now instead of at the end of the turn. */
void stream_kick(struct stream *stream);

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
	return stream->in.cap + stream->out.cap + stream->chunks.held + (stream->tls ? tls_memory(stream->tls) : 0);
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
