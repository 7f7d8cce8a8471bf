/*
 * A non-blocking socket. Input is passed to the owner as it comes. Output is collected in a buffer, and written once at the end
 * of the loop's turn. With a TLS session both are encrypted, and output waits for the end of the handshake.
 *
 * Handshakes with clients take the time of many requests. So they stand in a line, and a turn takes steps for half a millisecond, behind
 * all I/O that is ready.
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
	 * Takes input. Gives the number of bytes consumed; the others come again, with more behind them. The owner may close the
	 * stream in this call, whose result is then ignored.
	 */
	size_t (*data)(struct stream *stream, struct slice in);
	/* A write took `n` bytes, which may be 0. */
	void (*written)(struct stream *stream, size_t n);
	/* The peer sends no more (error is 0), or the connection broke (error is an errno, see stream_error). */
	void (*ended)(struct stream *stream, int error);
	/* The handshake of a TLS session went on; stream_is_securing says whether it is done. May not close the stream. */
	void (*secured)(struct stream *stream);
	/* How many bytes behind the first `skip` unwritten ones belong in one TLS record, up to `max`; NULL for as many as fit. */
	size_t (*together)(struct stream *stream, size_t skip, size_t max);
};

struct stream {
	TAILQ_ENTRY(stream) link; /* in a dirty list of the loop, or in its held list */
	struct {
		TAILQ_ENTRY(stream) link; /* in the loop's line of handshakes */
		bool waits;               /* is there */
	} handshake;
	struct loop *loop;
	const struct stream_ops *ops;
	struct event read, write;
	struct loop_job kick; /* passes `in` to the owner after a pause */
	struct tls *tls;      /* owned; NULL for plain text */
	struct buf in, out;
	struct shared_chunks chunks; /* in `out` */
	enum loop_rank rank;
	int fd;                             /* -1 when closed */
	bool dirty, held, reading, writing; /* writing: waits for the socket to take more */
	bool watched;                       /* `read` is added, maybe though the stream is paused */
	bool more;                          /* as stream_expect says */
	bool finishing;                     /* the socket is shut down once all is written */
};

/* Takes a connected, non-blocking socket, and starts reading. `ops` is borrowed. */
void stream_open(struct stream *stream, struct loop *loop, enum loop_rank rank, int fd, const struct stream_ops *ops);

/* Takes a TLS session, new or of a detached stream, and carries on its handshake. Called before anything was read or written. */
void stream_encrypt(struct stream *stream, struct tls *tls);

/* Closes the socket, and discards unwritten output. Does nothing if the stream is closed. */
void stream_close(struct stream *stream);

/* Bounds the bytes of output that the kernel holds for the peer. Linux doubles the number, to have room for its own data. */
void stream_bound_kernel(struct stream *stream, int bytes);

/* From now on a close resets the connection: the kernel discards what it holds for the peer. */
void stream_reset_on_close(struct stream *stream);

/* Closes an open stream, but gives its socket, open, to the caller, and in `tls` its session, or NULL. */
int stream_detach(struct stream *stream, struct tls **tls);

/* Has `out` written at the end of the turn. Called before `out` is filled, it reuses a spare buffer. */
void stream_dirty(struct stream *stream);

/* Has a text written behind the bytes in `out`, without a copy. Holds a reference until it is written. */
void stream_share(struct stream *stream, struct shared *text);

/* Writes as much as the socket takes. For the loop. */
void stream_flush(struct stream *stream);

/* The job loop.handshakes.job: takes the next steps of handshakes. For the loop. */
void stream_shake_hands(struct loop_job *job);

/* Says whether more output will come soon. Then a small output may be held for it. */
void stream_expect(struct stream *stream, bool more);

/* Moves a dirty stream to the held list, if it expects more. Gives false if it does not. For the loop. */
bool stream_hold(struct stream *stream);

/* Whether the peer's system has all that was written, and all that it sent was read: then a close loses nothing. */
bool stream_is_settled(const struct stream *stream);

/* Whether the peer's system has all that was written; or it never will, since the connection broke. */
bool stream_has_delivered(const struct stream *stream);
/* Whether the connection broke, which a stream that is paused and writes nothing does not notice. */
bool stream_is_broken(const struct stream *stream);

/* The same, or that the peer sends no more, whether all of it was read or not. */
bool stream_has_ended(const struct stream *stream);

/*
 * Whether the socket has input, or takes output that waits, of which the loop does not know yet. An end or an error of a stream that
 * reads is input too. A stream that is closed has nothing.
 */
bool stream_is_ready(const struct stream *stream);

/* The text of an error that `ended` was given, valid as long as the stream is open. */
const char *stream_error(const struct stream *stream, int error);

/* Tells the peer that nothing more will be written. */
void stream_finish(struct stream *stream);

/* Stops and starts reading. A start, even of a stream that reads already, passes unconsumed input to the owner again. */
void stream_pause(struct stream *stream);
void stream_resume(struct stream *stream);

/* Passes the input that waits for a start to the owner now, not at the end of the turn. */
void stream_kick(struct stream *stream);

/* Bytes of unwritten output. */
static inline size_t stream_waiting(const struct stream *stream)
{
	return buf_size(&stream->out) + stream->chunks.waiting;
}

/*
 * Bytes of memory that the stream takes: for input that was not consumed, and for output that waits. A buffer counts with its capacity:
 * the allocator may have recycled the memory that it does not fill.
 */
static inline size_t stream_memory(const struct stream *stream)
{
	return stream->in.cap + stream->out.cap + stream->chunks.held + (stream->tls ? tls_memory(stream->tls) : 0);
}

/* Whether the handshake of a TLS session is under way: until it is done nothing can be written. */
static inline bool stream_is_securing(const struct stream *stream)
{
	return stream->tls && !tls_is_ready(stream->tls);
}

static inline bool stream_is_open(const struct stream *stream)
{
	return stream->fd >= 0;
}

#endif
