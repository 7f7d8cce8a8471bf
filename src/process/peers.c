#include "process/peers.h"

#include <assert.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>

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
	bool lingers; /* Its input is discarded until it closes the connection. */
	size_t discarded;
};

struct peers {
	struct event_base *base;
	const struct peers_kind *kind;
	void *arg;
	struct event *timer; /* Runs each second, while there are peers. */
	TAILQ_HEAD(, peer) list;
	int count;
};

static time_t now_seconds(void)
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
	peer->since = now_seconds();
	TAILQ_INSERT_TAIL(&peer->peers->list, peer, link);
}

static bool is_writing(const struct peer *peer)
{
	return evbuffer_get_length(bufferevent_get_output(peer->stream)) > 0;
}

static struct evbuffer *input_of(const struct peer *peer)
{
	return bufferevent_get_input(peer->stream);
}

/* Handles a request. Returns its bytes, or 0 if it is incomplete. */
static size_t pass_request(struct peer *peer)
{
	const struct peers_kind *kind = peer->peers->kind;
	size_t n = evbuffer_get_length(input_of(peer)), size = n < kind->size ? n : kind->size,
	       used;

	if (n == 0)
		return 0;
	peer->waits = true;
	used = kind->request(peer->peers->arg, peer,
		slice_of((char *)evbuffer_pullup(input_of(peer), (ssize_t)size), size));
	assert(used > 0 || size < kind->size);
	if (used > 0) {
		evbuffer_drain(input_of(peer), used);
		TAILQ_REMOVE(&peer->peers->list, peer, link);
		begin_time(peer);
	} else {
		peer->waits = false;
	}
	return used;
}

/*
 * Answers a peer whose incomplete request will not be completed. Returns false if there is none,
 * or if such requests are not answered.
 */
static bool cut_off(struct peer *peer, bool late)
{
	const struct peers_kind *kind = peer->peers->kind;
	size_t n = evbuffer_get_length(input_of(peer));

	if (n == 0 || !kind->cut_off || peer->waits || peer->last || is_writing(peer))
		return false;
	evbuffer_drain(input_of(peer), n);
	TAILQ_REMOVE(&peer->peers->list, peer, link);
	begin_time(peer);
	kind->cut_off(peer->peers->arg, peer, late);
	return true;
}

static void discard_input(struct peer *peer)
{
	size_t n = evbuffer_get_length(input_of(peer));

	evbuffer_drain(input_of(peer), n);
	peer->discarded += n;
	if (peer->ended || peer->discarded > PEERS_DISCARD)
		close_peer(peer);
}

/*
 * Handles requests until one is not answered at once, or an answer is being written. Once the
 * last answer is written, waits for the peer to close the connection.
 */
static void peers_on_progress(struct bufferevent *stream, void *arg)
{
	struct peer *peer = arg;
	size_t used = 1;

	while (used > 0 && !peer->waits && !peer->last && !is_writing(peer))
		used = pass_request(peer);
	if (peer->ended && used == 0)
		(void)cut_off(peer, false);
	if (peer->waits || is_writing(peer))
		return;
	if (peer->last && !peer->lingers) {
		shutdown(bufferevent_getfd(stream), SHUT_WR);
		peer->lingers = true;
	}
	if (peer->last)
		discard_input(peer);
	else if (peer->ended)
		close_peer(peer);
}

static void peers_on_event(struct bufferevent *stream, short what, void *arg)
{
	struct peer *peer = arg;

	/* A peer that has closed its sending side still gets its answers. */
	peer->ended = what & BEV_EVENT_EOF;
	if (peer->ended)
		peers_on_progress(stream, peer);
	else
		close_peer(peer);
}

static void peers_on_time(evutil_socket_t fd, short what, void *arg)
{
	struct peers *peers = arg;
	struct peer *peer;

	(void)fd;
	(void)what;
	while ((peer = TAILQ_FIRST(&peers->list)) &&
		now_seconds() - peer->since >= peers->kind->seconds) {
		if (!cut_off(peer, true))
			close_peer(peer);
	}
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
	peers->timer = event_new(base, -1, EV_PERSIST, peers_on_time, peers);
	return peers;
}

/*
 * Returns whether the peer has sent something that is about to be read: not if it is throttled, as
 * it could then keep its place.
 */
static bool has_sent(const struct peer *peer)
{
	struct pollfd at = { .fd = bufferevent_getfd(peer->stream), .events = POLLIN };

	return !peer->lingers && !peer->waits && !is_writing(peer) && poll(&at, 1, 0) > 0;
}

/* The sockets of a turn are not handled in the order in which their peers have sent. */
static struct peer *idle_longest(const struct peers *peers)
{
	struct peer *peer;

	TAILQ_FOREACH(peer, &peers->list, link) {
		if (!has_sent(peer))
			return peer;
	}
	return TAILQ_FIRST(&peers->list);
}

void peers_take(int fd, struct tls *tls, void *arg)
{
	static const struct timeval second = { 1, 0 };
	struct peers *peers = arg;
	struct peer *peer = xcalloc(1, sizeof(*peer));

	(void)tls;
	if (peers->count == peers->kind->most) {
		log_rare("%s: more than %d connections; closing the one that was idle the longest",
			peers->kind->name, peers->count);
		close_peer(idle_longest(peers));
	}
	peer->peers = peers;
	peer->stream = bufferevent_socket_new(peers->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (peers->count++ == 0)
		event_add(peers->timer, &second);
	begin_time(peer);
	bufferevent_setcb(peer->stream, peers_on_progress, peers_on_progress, peers_on_event, peer);
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
