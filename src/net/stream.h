/*
 * One non-blocking socket: what comes in is handed to its owner as it is, what goes out is gathered in a buffer and written
 * once at the end of the loop's turn. The only place that reads and writes sockets.
 */
#ifndef NET_STREAM_H
#define NET_STREAM_H

#include <event2/event.h>
#include <event2/event_struct.h>

#include "net/loop.h"
#include "net/shared_chunks.h"
#include "util/buf.h"

struct stream;

struct stream_ops {
	/*
	 * Bytes have come; gives how many of them were used up. The rest comes again, with more behind it. The owner may close
	 * the stream in here, and then what it gives does not matter.
	 */
	size_t (*data)(struct stream *stream, struct slice in);
	/* `n` bytes were written. */
	void (*written)(struct stream *stream, size_t n);
	/* The peer will send no more (error is 0), or the connection broke (error is an errno). */
	void (*ended)(struct stream *stream, int error);
};

struct stream {
	TAILQ_ENTRY(stream) link; /* among the loop's dirty or held ones */
	struct loop *loop;
	const struct stream_ops *ops;
	struct event read, write;
	struct loop_job kick; /* hands over again what is in `in` */
	struct buf in, out;
	struct shared_chunks chunks; /* in what is to be written */
	enum loop_rank rank;
	int fd; /* -1 when closed */
	bool dirty, held, reading, writing;
	bool more; /* what is in `out` is worth holding back */
};

/* Takes a connected, non-blocking socket. Reading begins at once. */
void stream_open(struct stream *stream, struct loop *loop, enum loop_rank rank, int fd, const struct stream_ops *ops);

/* Closes the socket and forgets what was not written. Fine on a closed one. */
void stream_close(struct stream *stream);

/* Gives the socket of an open stream back, and closes the stream without it. */
int stream_detach(struct stream *stream);

/* Says that something is put into `out`: it is written at the end of the turn. To say so before is cheaper. */
void stream_dirty(struct stream *stream);

/* Has a text written behind what is in `out`, without a copy. Holds it. */
void stream_share(struct stream *stream, struct shared *text);

/* Writes now what can be written. For the loop. */
void stream_flush(struct stream *stream);

/* Says whether more will be put into `out` soon, for which what is there already is worth holding back. */
void stream_expect(struct stream *stream, bool more);

/* Puts the writing off where it is worth it; false, with nothing done, where not. For the loop. */
bool stream_hold(struct stream *stream);

/* Stops and starts reading. What was read already and not used up is handed over again after a start. */
void stream_pause(struct stream *stream);
void stream_resume(struct stream *stream);

/* Bytes that wait to be written. */
static inline size_t stream_waiting(const struct stream *stream)
{
	return buf_size(&stream->out) + stream->chunks.waiting;
}

static inline bool stream_is_open(const struct stream *stream)
{
	return stream->fd >= 0;
}

#endif
