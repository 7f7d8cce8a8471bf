#include "upstream/servers.h"

#include <stdlib.h>

#include "util/alloc.h"
#include "util/hash.h"
#include "util/random.h"

/* A route fills one cache line. Longer keys are looked up on the ring each time. */
enum { ROUTE_KEY = 61, ROUTES = 16384 };

/* A cached lookup on the ring, which otherwise computes an MD5. */
struct route {
	uint16_t server;
	uint8_t n; /* Bytes of the key; 0 for none. */
	char key[ROUTE_KEY];
};

/* A cached lookup on both rings, while keys move. */
struct moving_route {
	uint16_t server, former; /* Indexes in servers.list. */
	uint8_t n;
	char key[ROUTE_KEY - 2];
};

/* The rings between which keys move. */
struct moving {
	int64_t at;
	const struct ring *ring, *former;
	/* Indexes in servers.list by index in the former ring; `count` for a lost server. */
	uint16_t *servers;
	struct moving_route routes[ROUTES];
};

struct servers {
	struct loop *loop;
	const struct ring *ring;
	/*
	 * Indexed by hash of the key, without probing. NULL if there is one server, or if keys
	 * move.
	 */
	struct route *routes;
	struct moving *moving; /* NULL if no keys move. */
	uint64_t seed;
	const struct server_options *options;
	size_t *share, most; /* See servers_share(). */
	size_t noted; /* The share is computed again once a server has so many unanswered calls. */
	size_t counted; /* The calls of the fullest server when the share was computed. */
	int count, untried;
	void (*tried)(void *arg);
	void *tried_arg;
	struct server *list[];
};

static bool has_taken(const struct servers *servers, const struct server *server)
{
	for (int i = 0; i < servers->count; i++) {
		if (servers->list[i] == server)
			return true;
	}
	return false;
}

static bool is_at(const struct ring_server *one, const struct ring_server *other)
{
	return one->port == other->port && strcmp(one->host, other->host) == 0;
}

/* Compares the names that certificates must match. */
static bool has_name(const struct ring_server *one, const struct ring_server *other)
{
	return one->name && other->name ? strcmp(one->name, other->name) == 0
					: one->name == other->name;
}

/*
 * Returns a server of `before` at this place that `servers` does not have yet; NULL if there is
 * none.
 */
static struct server *find_former(const struct servers *before, const struct ring_server *where,
	const struct servers *servers)
{
	for (int i = 0; before && i < before->count; i++) {
		struct server *s = before->list[i];
		if (is_at(&s->where, where) && has_name(&s->where, where) && !has_taken(servers, s))
			return s;
	}
	return NULL;
}

/*
 * Returns the index of the first server of the ring at the same place, or the number of its
 * servers if there is none.
 */
static int index_in_ring(const struct ring *ring, const struct ring_server *where)
{
	int i = 0;

	while (i < ring_count(ring) && !is_at(ring_server(ring, i), where))
		i++;
	return i;
}

/* Returns all servers in their order, and stores their number in `count`. */
static const struct ring_server **list_servers(
	struct servers *servers, struct servers_rings rings, int *count)
{
	int most = ring_count(rings.ring) + (rings.former ? ring_count(rings.former) : 0);
	const struct ring_server **list = xcalloc((size_t)most, sizeof(const struct ring_server *));
	bool is_lost;

	*count = ring_count(rings.ring);
	for (int i = 0; i < *count; i++)
		list[i] = ring_server(rings.ring, i);
	for (int i = 0; rings.former && i < ring_count(rings.former); i++) {
		int at = index_in_ring(rings.ring, ring_server(rings.former, i));
		is_lost = rings.lost && rings.lost[i];
		if (at == ring_count(rings.ring) && !is_lost) {
			at = (*count)++;
			list[at] = ring_server(rings.former, i);
		}
		servers->moving->servers[i] = (uint16_t)at;
	}
	for (int i = 0; rings.lost && i < ring_count(rings.former); i++) {
		if (rings.lost[i])
			servers->moving->servers[i] = (uint16_t)*count;
	}
	return list;
}

static struct moving *moving_create(struct servers_rings rings)
{
	struct moving *moving = xcalloc(1, sizeof(*moving));

	moving->at = rings.at;
	moving->ring = rings.ring;
	moving->former = rings.former;
	moving->servers = xcalloc((size_t)ring_count(rings.former), sizeof(moving->servers[0]));
	return moving;
}

struct servers *servers_create(struct loop *loop, struct resolver *resolver,
	struct servers_rings rings, const struct server_options *options, uint64_t *random,
	const struct servers *before)
{
	int most = ring_count(rings.ring) + (rings.former ? ring_count(rings.former) : 0), count;
	struct servers *servers =
		xcalloc(1, sizeof(*servers) + (size_t)most * sizeof(servers->list[0]));
	const struct ring_server **list;

	servers->loop = loop;
	servers->ring = rings.ring;
	servers->seed = random_next(random);
	if (rings.former)
		servers->moving = moving_create(rings);
	else if (most > 1)
		servers->routes = xcalloc(ROUTES, sizeof(struct route));
	servers->options = options;
	list = list_servers(servers, rings, &count);
	servers->count = count;
	for (int i = 0; i < count; i++) {
		servers->list[i] = find_former(before, list[i], servers);
		if (servers->list[i])
			servers->list[i]->users++;
		else
			servers->list[i] = server_create(loop, list[i], options, resolver, random);
	}
	free(list);
	return servers;
}

void servers_stop(struct servers *servers, bool all)
{
	for (int i = 0; i < servers->count; i++) {
		if (all || servers->list[i]->users == 1)
			server_stop(servers->list[i]);
	}
}

void servers_free(struct servers *servers)
{
	for (int i = 0; i < servers->count; i++) {
		if (--servers->list[i]->users == 0)
			server_free(servers->list[i]);
	}
	if (servers->moving)
		free(servers->moving->servers);
	free(servers->moving);
	free(servers->routes);
	free(servers);
}

static void servers_on_tried(void *arg)
{
	struct servers *servers = arg;

	if (--servers->untried == 0)
		servers->tried(servers->tried_arg);
}

/*
 * `untried` is one more than the number of servers, so that `tried` is called after the
 * loop.
 */
void servers_start(struct servers *servers, void (*tried)(void *arg), void *arg)
{
	servers->untried = 1;
	servers->tried = tried;
	servers->tried_arg = arg;
	for (int i = 0; i < servers->count; i++) {
		if (servers->list[i]->users > 1)
			continue;
		servers->untried++;
		server_start(servers->list[i], servers_on_tried, servers);
	}
	servers_on_tried(servers);
}

/*
 * Returns the server of a key on a ring. The place of a key is the key itself or that of its
 * collection; the server is `behind` servers further on the ring.
 */
static int look_up_place(const struct servers *servers, const struct ring *ring, struct slice key)
{
	uint16_t next[SERVER_PLACES];
	unsigned behind;
	struct slice place = servers->options->place(key, &behind);

	if (behind == 0)
		return ring_lookup(ring, place);
	/* If the ring has fewer servers, counting wraps around. */
	return next[(int)behind % ring_spread(ring, place, (int)behind + 1, next)];
}

/* Returns the server of a key of at most ROUTE_KEY bytes. */
static inline int find_route(const struct servers *servers, struct slice key)
{
	struct route *route = &servers->routes[hash_key(key, servers->seed) % ROUTES];

	if (!slice_equal(slice_of(route->key, route->n), key)) {
		route->server = (uint16_t)look_up_place(servers, servers->ring, key);
		route->n = (uint8_t)key.n;
		memcpy(route->key, key.p, key.n);
	}
	return route->server;
}

int servers_place(struct servers *servers, struct slice key, int *former)
{
	struct moving *moving = servers->moving;
	struct moving_route *route = &moving->routes[hash_key(key, servers->seed) % ROUTES], other;
	bool fits = key.n <= sizeof(route->key);

	if (!fits || !slice_equal(slice_of(route->key, route->n), key)) {
		route = fits ? route : &other;
		route->server = (uint16_t)look_up_place(servers, moving->ring, key);
		route->former = moving->servers[look_up_place(servers, moving->former, key)];
		if (fits) {
			route->n = (uint8_t)key.n;
			memcpy(route->key, key.p, key.n);
		}
	}
	*former = route->former;
	return route->server;
}

int servers_index(struct servers *servers, struct slice key)
{
	if (servers->count == 1)
		return 0;
	if (servers->routes && key.n <= ROUTE_KEY)
		return find_route(servers, key);
	if (servers->moving) {
		int former, here = servers_place(servers, key, &former);
		bool is_early =
			servers->loop->unix_time < servers->moving->at && former < servers->count;
		return is_early ? former : here;
	}
	return look_up_place(servers, servers->ring, key);
}

int64_t servers_time(struct servers *servers, struct slice key)
{
	int index = servers_index(servers, key);
	struct server *server = index < servers->count ? servers->list[index] : NULL;
	uint64_t now = servers->loop->now;
	struct waiter *waiter = server ? server_clock_read(&server->link->clock, now) : NULL;

	if (waiter)
		server_call(server, &(struct call){ .verb = CALL_STATS }, waiter);
	return server ? server_clock_time(&server->link->clock, now) : 0;
}

/* Answers a call to a lost server: reads miss, and writes fail. */
static void answer_for_lost(struct servers *servers, const struct call *call, struct waiter *waiter)
{
	struct result result = { .status = RESULT_UNAVAILABLE,
		.server = servers_name(servers, servers->count) };

	if (call->verb == CALL_META ? slice_starts(call->line, SLICE("mg "))
				    : !call_stores(call->verb))
		result.status = RESULT_MISS;
	loop_answer(servers->loop, waiter, &result);
}

/*
 * The share is a quarter of an empty queue, and shrinks with the square of the free part. So n
 * clients that send as much as they may leave 1 / (1 + n / 4) of the queue to others, even if
 * nothing is answered.
 */
static void note_calls(struct servers *servers, size_t fullest)
{
	enum { SHARE = 4, STEPS = 64 };
	size_t queue = servers->options->queue, left = fullest < queue ? queue - fullest : 0;
	size_t share = (size_t)((uint64_t)left * left / queue / SHARE);

	share = share < servers->most ? share : servers->most;
	*servers->share = share ? share : 1;
	servers->counted = fullest;
	servers->noted = fullest + left / STEPS + 1;
}

void servers_call(struct servers *servers, const struct call *call, struct waiter *waiter)
{
	int index =
		call->server == CALL_ANY_SERVER ? servers_index(servers, call->key) : call->server;

	if (index < servers->count) {
		server_call(servers->list[index], call, waiter);
		if (servers->list[index]->link->pipeline.count >= servers->noted)
			note_calls(servers, servers->list[index]->link->pipeline.count);
	} else {
		answer_for_lost(servers, call, waiter);
	}
}

/* Looks at the servers only if one had many calls: usually the share is as it is without calls. */
void servers_turn(struct servers *servers)
{
	size_t fullest = 0;

	if (!servers->counted)
		return;

	for (int i = 0; i < servers->count; i++) {
		size_t calls = servers->list[i]->link->pipeline.count;
		fullest = calls > fullest ? calls : fullest;
	}
	note_calls(servers, fullest);
}

void servers_share(struct servers *servers, size_t *share, size_t most)
{
	servers->share = share;
	servers->most = most;
	note_calls(servers, 0);
}

bool servers_have_room(const struct servers *servers, int index)
{
	return server_has_room(servers->list[index]);
}

void servers_await_room(struct servers *servers, int index, struct loop_job *job)
{
	servers->list[index]->room.wanted = job;
}

void servers_forget_room(struct servers *servers, int index, const struct loop_job *job)
{
	if (servers->list[index]->room.wanted == job)
		servers->list[index]->room.wanted = NULL;
}

int servers_count(const struct servers *servers)
{
	return servers->count;
}

const struct server *servers_get(const struct servers *servers, int index)
{
	return servers->list[index];
}

void servers_mark_absent(struct servers *servers, int index, bool absent)
{
	atomic_store(&servers->list[index]->stats.absent, absent);
}

const char *servers_name(const struct servers *servers, int index)
{
	return index < servers->count ? servers->list[index]->name : "lost";
}

void servers_reset_latencies(struct servers *servers)
{
	for (int i = 0; i < servers->count; i++)
		histogram_reset(&servers->list[i]->stats.latency);
}
