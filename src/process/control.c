#include "process/control.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "net/listener.h"
#include "util/alloc.h"

enum { PEERS_MAX = 16, LINE_MAX_BYTES = 256, TIMEOUT_S = 60 };

struct peer {
	TAILQ_ENTRY(peer) link;
	struct control *control;
	struct bufferevent *stream;
	bool waits, ended; /* for a reload; sends no more */
};

struct control {
	struct event_base *base;
	struct listener *listener;
	void (*reload)(void *arg);
	void *arg;
	TAILQ_HEAD(, peer) peers;
	int count;
};

static void close_peer(struct peer *peer)
{
	TAILQ_REMOVE(&peer->control->peers, peer, link);
	peer->control->count--;
	bufferevent_free(peer->stream);
	free(peer);
}

static void answer(struct peer *peer, const char *line)
{
	bufferevent_write(peer->stream, line, strlen(line));
}

/* What follows a `reload` waits until that is answered. Gives false if the peer was closed. */
static bool take_lines(struct peer *peer)
{
	struct evbuffer *in = bufferevent_get_input(peer->stream);
	char *line;

	while (!peer->waits && (line = evbuffer_readln(in, NULL, EVBUFFER_EOL_CRLF))) {
		peer->waits = strcmp(line, "reload") == 0;
		if (!peer->waits)
			answer(peer, "ERROR unknown command; there is: reload\r\n");
		free(line);
		if (peer->waits)
			peer->control->reload(peer->control->arg);
	}
	if (evbuffer_get_length(in) <= LINE_MAX_BYTES)
		return true;
	close_peer(peer);
	return false;
}

static void on_read(struct bufferevent *stream, void *arg)
{
	(void)stream;
	(void)take_lines(arg);
}

static void on_written(struct bufferevent *stream, void *arg)
{
	struct peer *peer = arg;

	if (take_lines(peer) && peer->ended && !peer->waits && evbuffer_get_length(bufferevent_get_output(stream)) == 0)
		close_peer(peer);
}

static void on_event(struct bufferevent *stream, short what, void *arg)
{
	struct peer *peer = arg;

	(void)stream;
	/* A peer that sends no more still wants its answer. */
	peer->ended = what & BEV_EVENT_EOF;
	if (!peer->ended || !peer->waits)
		close_peer(peer);
}

static void on_accepted(int fd, struct tls *tls, void *arg)
{
	static const struct timeval limit = { TIMEOUT_S, 0 };
	struct control *control = arg;
	struct peer *peer;

	(void)tls;
	if (control->count == PEERS_MAX) {
		close(fd);
		return;
	}
	peer = xcalloc(1, sizeof(*peer));
	peer->control = control;
	peer->stream = bufferevent_socket_new(control->base, fd, BEV_OPT_CLOSE_ON_FREE);
	TAILQ_INSERT_TAIL(&control->peers, peer, link);
	control->count++;
	bufferevent_setcb(peer->stream, on_read, on_written, on_event, peer);
	bufferevent_set_timeouts(peer->stream, &limit, &limit);
	bufferevent_setwatermark(peer->stream, EV_READ, 0, 2 * LINE_MAX_BYTES);
	bufferevent_enable(peer->stream, EV_READ | EV_WRITE);
}

struct control *control_create(
	struct event_base *base, const char *path, void (*reload)(void *arg), void *arg, char error[256])
{
	struct listener_place place = { .host = path, .mode = 0600 };
	struct control *control = xcalloc(1, sizeof(*control));

	control->base = base;
	control->reload = reload;
	control->arg = arg;
	TAILQ_INIT(&control->peers);
	control->listener = listener_create(base, &place, on_accepted, control, error);
	if (!control->listener) {
		free(control);
		return NULL;
	}
	listener_start(control->listener);
	return control;
}

void control_reloaded(struct control *control, bool good)
{
	struct peer *peer;

	if (!control)
		return;
	TAILQ_FOREACH(peer, &control->peers, link) {
		if (!peer->waits)
			continue;
		peer->waits = false;
		/* When this is written, the peer's next line is read. */
		answer(peer, good ? "OK\r\n" : "ERROR refused, all is as before; the log says why\r\n");
	}
}

void control_destroy(struct control *control)
{
	struct peer *peer;

	if (!control)
		return;
	listener_destroy(control->listener);
	while ((peer = TAILQ_FIRST(&control->peers)))
		close_peer(peer);
	free(control);
}
