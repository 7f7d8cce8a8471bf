#include "process/peers.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "util/alloc.h"
#include "util/clock.h"
#include "util/log.h"

struct peer {
	TAILQ_ENTRY(peer) link; /* In the order of the last requests. */
	struct peers *peers;
	struct bufferevent *stream;
	time_t since; /* Monotonic time of its last request, in seconds. */
	bool waits;   /* A request is not answered yet. */
	bool last;    /* No further request is handled. */
	bool ended;   /* It has closed its sending side. */
};

struct peers {
	struct event_base *base;
	const struct peers_kind *kind;
	void *arg;
	struct event *timer; /* Runs each second, while there are peers. */
	TAILQ_HEAD(, peer) list;
	int count;
};

static time_t now(void)
{
	return (time_t)(clock_us(CLOCK_MONOTONIC) / 1000000);
}

static void close_peer(struct peer *peer)
{
	TAILQ_REMOVE(&peer->peers->list, peer, link);
	peer->peers->count--;
	bufferevent_free(peer->stream);
	free(peer);
}

static void begin_time(struct peer *peer)
{
	peer->since = now();
	TAILQ_INSERT_TAIL(&peer->peers->list, peer, link);
}

static bool is_writing(const struct peer *peer)
{
	return evbuffer_get_length(bufferevent_get_output(peer->stream)) > 0;
}

/* Handles a request. Returns the result of peers_kind.request, or -1 if the request is too long. */
static ssize_t take(struct peer *peer)
{
	const struct peers_kind *kind = peer->peers->kind;
	struct evbuffer *in = bufferevent_get_input(peer->stream);
	size_t n = evbuffer_get_length(in), size = n < kind->size ? n : kind->size;
	ssize_t used;

	if (n == 0)
		return 0;
	peer->waits = true;
	used = kind->request(peer->peers->arg, peer, slice_of((char *)evbuffer_pullup(in, (ssize_t)size), size));
	if (used > 0) {
		evbuffer_drain(in, (size_t)used);
		TAILQ_REMOVE(&peer->peers->list, peer, link);
		begin_time(peer);
		return used;
	}
	peer->waits = false;
	return n > size ? -1 : used;
}

/* Handles requests until one is not answered at once, or an answer is being written. */
static void go_on(struct bufferevent *stream, void *arg)
{
	struct peer *peer = arg;
	ssize_t used = 1;

	(void)stream;
	while (used > 0 && !peer->waits && !peer->last && !is_writing(peer))
		used = take(peer);
	if (used < 0 || ((peer->last || peer->ended) && !peer->waits && !is_writing(peer)))
		close_peer(peer);
}

static void on_event(struct bufferevent *stream, short what, void *arg)
{
	struct peer *peer = arg;

	/* A peer that has closed its sending side still gets its answers. */
	peer->ended = what & BEV_EVENT_EOF;
	if (peer->ended)
		go_on(stream, peer);
	else
		close_peer(peer);
}

static void on_time(evutil_socket_t fd, short what, void *arg)
{
	struct peers *peers = arg;
	struct peer *peer;

	(void)fd;
	(void)what;
	while ((peer = TAILQ_FIRST(&peers->list)) && now() - peer->since >= peers->kind->seconds)
		close_peer(peer);
	if (!peer)
		event_del(peers->timer);
}

struct peers *peers_create(struct event_base *base, const struct peers_kind *kind, void *arg)
{
	struct peers *peers = xcalloc(1, sizeof(*peers));

	peers->base = base;
	peers->kind = kind;
	peers->arg = arg;
	TAILQ_INIT(&peers->list);
	peers->timer = event_new(base, -1, EV_PERSIST, on_time, peers);
	return peers;
}

void peers_take(int fd, struct tls *tls, void *arg)
{
	static const struct timeval second = { 1, 0 };
	struct peers *peers = arg;
	struct peer *peer = xcalloc(1, sizeof(*peer));

	(void)tls;
	if (peers->count == peers->kind->most) {
		log_rare("%s: more than %d connections; closing the one that was idle the longest", peers->kind->name,
			peers->count);
		close_peer(TAILQ_FIRST(&peers->list));
	}
	peer->peers = peers;
	peer->stream = bufferevent_socket_new(peers->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (peers->count++ == 0)
		event_add(peers->timer, &second);
	begin_time(peer);
	bufferevent_setcb(peer->stream, go_on, go_on, on_event, peer);
	bufferevent_setwatermark(peer->stream, EV_READ, 0, 2 * peers->kind->size);
	bufferevent_enable(peer->stream, EV_READ | EV_WRITE);
}

void peers_answer(struct peer *peer, struct slice text, bool last)
{
	peer->waits = false;
	peer->last = last;
	bufferevent_write(peer->stream, text.p, text.n);
}

void peers_answer_all(struct peers *peers, struct slice text)
{
	struct peer *peer;

	if (!peers)
		return;
	TAILQ_FOREACH(peer, &peers->list, link) {
		if (peer->waits)
			peers_answer(peer, text, false);
	}
}

void peers_destroy(struct peers *peers)
{
	struct peer *peer;

	if (!peers)
		return;
	while ((peer = TAILQ_FIRST(&peers->list)))
		close_peer(peer);
	event_free(peers->timer);
	free(peers);
}
