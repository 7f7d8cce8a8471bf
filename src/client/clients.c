#include "client/clients.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/auth.h"
#include "client/bounds.h"
#include "client/connection.h"
#include "client/log.h"
#include "client/turns.h"
#include "util/heap.h"
#include "util/linux.h"

enum {
	IDLE_LEAST_MS = 1000, /* A client that was idle for less is not replaced. */
	/*
	 * A client that has disconnected cannot be told from one that has only sent its last
	 * request, until a reply is written to it. So only a few such clients may have requests
	 * that take long.
	 */
	ENDED_MOST = 32,
	/*
	 * Part of client_memory: when closed clients have freed so much, memory is returned to
	 * the system.
	 */
	GIVE_BACK_PART = 4,
	GIVE_BACK_MOST = 16 << 20, /* Or so many bytes, if that is less. */
};

/* Closes a client that has exceeded a limit. */
static void close_for(struct client *c, enum counter counter, const char *why)
{
	char name[CLIENT_NAME];

	client_name(c, name);
	log_warn("client %s: closed: %s; it used %zu bytes of memory", name, why, bounds_memory(c));
	client_count(c, counter, 1);
	/* Otherwise the kernel keeps unsent bytes for minutes if the client reads nothing. */
	if (stream_waiting(&c->stream))
		stream_reset_on_close(&c->stream);
	client_close(c);
}

/* --- memory --- */

/*
 * malloc keeps freed memory per thread. Returns it to the system, so that the process uses
 * little more than is counted.
 */
static void give_back(struct clients *all)
{
	size_t part = all->config->client_memory / GIVE_BACK_PART;

	if (all->gone < (part && part < GIVE_BACK_MOST ? part : GIVE_BACK_MOST))
		return;
	all->gone = 0;
	heap_give_back();
}

void clients_reclaim(struct clients *all)
{
	struct client *c;

	/* A reload may have removed the limit meanwhile. */
	if (all->config->client_memory == 0)
		return;
	while (atomic_load_explicit(&all->total->bytes, memory_order_relaxed) >
		all->config->client_memory) {
		if (all->ops->reclaim(all->arg))
			return;
		c = bounds_largest(all);
		if (!c)
			return;
		close_for(c, COUNT_closed_memory_clients,
			"client_memory is exceeded, and this client uses the most");
	}
	give_back(all);
}

/* --- time --- */

static void close_late(struct client *c)
{
	if (bounds_is_slow(c)) {
		close_for(c, COUNT_closed_slow_clients, "it does not read its replies");
	} else if (stream_is_securing(&c->stream)) {
		client_log(c, "closed: its TLS handshake timed out");
		client_count(c, COUNT_closed_unfinished_clients, 1);
		client_close(c);
	} else if (bounds_is_unfinished(c)) {
		client_log(c, "closed: its request was not complete in time");
		client_count(c, COUNT_closed_unfinished_clients, 1);
		client_refuse(c, "CLIENT_ERROR request not complete in time");
	} else {
		client_log(c, "closed: it did not authenticate in time");
		client_count(c, COUNT_closed_unfinished_clients, 1);
		client_refuse(c, "CLIENT_ERROR not authenticated in time");
	}
}

static void clients_check(struct client *c)
{
	if (bounds_has_lingered(c) || bounds_is_gone(c))
		client_close(c);
	else if (bounds_is_late(c, bounds_is_slow(c) || bounds_is_unfinished(c) || auth_is_late(c)))
		close_late(c);
}

static void close_idle(struct clients *all)
{
	uint64_t timeout = all->config->idle_timeout;
	struct client *c;

	while (timeout && (c = bounds_first_idle(all, timeout))) {
		client_log(c, "closed: it was idle");
		client_count(c, COUNT_closed_idle_clients, 1);
		client_close(c);
	}
}

static void clients_close_ended(struct client *c)
{
	close_for(c, COUNT_closed_memory_clients,
		"too many clients that have sent all their requests wait for memory");
}

static void clients_tick(struct clients *all)
{
	close_idle(all);
	bounds_end(all, ENDED_MOST, clients_close_ended);
	give_back(all);
}

/* --- places --- */

bool clients_replace(struct clients *all)
{
	struct client *c = auth_oldest(all, IDLE_LEAST_MS);

	if (c) {
		close_for(c, COUNT_replaced_clients,
			"max_connections is reached, and it is not authenticated");
		return true;
	}
	c = all->config->replace_idle ? bounds_first_idle(all, IDLE_LEAST_MS) : NULL;
	if (c)
		close_for(c, COUNT_replaced_clients,
			"max_connections is reached, and it was idle the longest");
	return c;
}

uint64_t clients_oldest(const struct clients *all)
{
	return atomic_load_explicit(&all->oldest, memory_order_relaxed);
}

bool clients_have_stranger(const struct clients *all)
{
	return clients_oldest(all) < BOUNDS_AUTHENTICATED;
}

static bool may_connect(const struct config *config, uid_t uid)
{
	if (uid == 0 || uid == geteuid())
		return true;
	for (size_t i = 0; i < config->socket_users.count; i++) {
		if (config->socket_users.at[i] == uid)
			return true;
	}
	return false;
}

bool clients_admit(const struct config *config, int fd)
{
	static const char refused[] = "ERROR this user may not connect\r\n";
	uid_t user = (uid_t)-1;
	int domain = AF_UNIX;
	socklen_t n = sizeof(domain);

	if (config->socket_users.count == 0)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 && domain != AF_UNIX)
		return true;
	if (linux_peer(fd, &user) && may_connect(config, user))
		return true;
	log_info("connection refused: user %u is not in socket_users", (unsigned)user);
	(void)!send(fd, refused, sizeof(refused) - 1, MSG_NOSIGNAL);
	close(fd);
	return false;
}

/* --- hand-over to other workers --- */

/* A single busy client stays. */
void clients_hand_over(struct clients *all, void *to, unsigned most)
{
	struct client *c;
	unsigned busy = 0;

	TAILQ_FOREACH(c, &all->all, link) {
		if (c->output.watched != c->output.produced && busy++ % 2 == 1)
			c->destination = to;
		if (busy == 2 * most)
			return;
	}
}

void clients_watch(struct clients *all)
{
	struct client *c;

	TAILQ_FOREACH(c, &all->all, link)
		c->output.watched = c->output.produced;
}

/* --- all --- */

void clients_end_turn(struct clients *all)
{
	struct account *account;

	while ((account = TAILQ_FIRST(&all->changed)))
		client_end_turn(client_of_account(account));
}

void clients_open(struct clients *all, int fd, struct tls *tls, bool is_new)
{
	client_open(all, fd, tls, is_new);
}

void clients_drain(struct clients *all)
{
	struct client *c, *next;

	all->draining = true;
	for (c = TAILQ_FIRST(&all->all); c; c = next) {
		next = TAILQ_NEXT(c, link);
		client_drain(c);
	}
}

void clients_close(struct clients *all)
{
	struct client *c;

	while ((c = TAILQ_FIRST(&all->all)))
		client_close(c);
}

void clients_set_config(struct clients *all, const struct config *config)
{
	all->config = config;
	bounds_renew(all);
}

void clients_set_generation(struct clients *all, struct generation *generation)
{
	struct client *c, *next;

	TAILQ_FOREACH(c, &all->all, link)
		client_turn_leave(c);
	client_turns_close(all);
	all->generation = generation;
	client_turns_open(all, client_take_turn);
	for (c = TAILQ_FIRST(&all->all); c; c = next) {
		next = TAILQ_NEXT(c, link);
		client_renew(c);
	}
}

static const struct bounds_ops ops = {
	clients_check,
	clients_tick,
	clients_reclaim,
};

void clients_init(struct clients *all, const struct config *config, struct generation *generation)
{
	all->config = config;
	all->generation = generation;
	TAILQ_INIT(&all->all);
	TAILQ_INIT(&all->changed);
	TAILQ_INIT(&all->strangers);
	bounds_init(all, &ops);
	client_turns_open(all, client_take_turn);
}

void clients_fini(struct clients *all)
{
	client_turns_close(all);
	bounds_fini(all);
	buf_free(&all->trash);
	while (all->spills.count)
		buf_free(&all->spills.at[--all->spills.count]);
}
