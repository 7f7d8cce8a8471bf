#include "upstream/servers.h"

#include <stdlib.h>

#include "util/alloc.h"
#include "util/hash.h"
#include "util/random.h"

/* A route fills a cache line. Longer keys are looked up in the ring each time. */
enum { ROUTE_KEY = 61, ROUTES = 16384 };

/* A cached lookup of the ring, which computes an md5. */
struct route {
	uint16_t server;
	uint8_t n; /* bytes of the key; 0 for none */
	char key[ROUTE_KEY];
};

struct servers {
	struct loop *loop;
	const struct ring *ring;
	struct route *routes; /* by hash of the key, without probing; NULL if there is one server */
	uint64_t seed;
	struct loop_job check; /* of the names, every dns_interval */
	const struct server_options *options;
	int count, unsettled;
	void (*settled)(void *arg);
	void *settled_arg;
	struct server *list[];
};

static bool has(const struct servers *servers, const struct server *server)
{
	for (int i = 0; i < servers->count; i++) {
		if (servers->list[i] == server)
			return true;
	}
	return false;
}

/* A server of `before` at this place that the new ones do not have yet; NULL if there is none. */
static struct server *find(const struct servers *before, const struct ring_server *where, const struct servers *servers)
{
	for (int i = 0; before && i < before->count; i++) {
		struct server *s = before->list[i];
		if (s->where.port == where->port && strcmp(s->where.host, where->host) == 0 && !has(servers, s))
			return s;
	}
	return NULL;
}

static void plan_check(struct servers *servers)
{
	if (servers->options->dns_interval)
		loop_after(servers->loop, &servers->check, servers->options->dns_interval);
}

static void on_check(struct loop_job *job)
{
	struct servers *servers = (struct servers *)((char *)job - offsetof(struct servers, check));

	plan_check(servers);
	for (int i = 0; i < servers->count; i++)
		server_check_name(servers->list[i]);
}

struct servers *servers_create(struct loop *loop, struct resolver *resolver, const struct ring *ring,
	const struct server_options *options, uint64_t *random, const struct servers *before)
{
	int count = ring_count(ring);
	struct servers *servers = xcalloc(1, sizeof(*servers) + (size_t)count * sizeof(servers->list[0]));

	servers->loop = loop;
	servers->ring = ring;
	servers->count = count;
	servers->seed = random_next(random);
	if (count > 1 && count <= UINT16_MAX)
		servers->routes = xcalloc(ROUTES, sizeof(struct route));
	servers->options = options;
	servers->check.run = on_check;
	plan_check(servers);
	for (int i = 0; i < count; i++) {
		servers->list[i] = find(before, ring_server(ring, i), servers);
		if (servers->list[i])
			servers->list[i]->users++;
		else
			servers->list[i] = server_create(loop, ring_server(ring, i), options, resolver, random);
	}
	return servers;
}

void servers_stop(struct servers *servers, bool all)
{
	loop_forget(servers->loop, &servers->check);
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
	free(servers->routes);
	free(servers);
}

static void one_settled(void *arg)
{
	struct servers *servers = arg;

	if (--servers->unsettled == 0)
		servers->settled(servers->settled_arg);
}

/* One more than there are, so that the last one settles behind the loop. */
void servers_start(struct servers *servers, void (*settled)(void *arg), void *arg)
{
	servers->unsettled = 1;
	servers->settled = settled;
	servers->settled_arg = arg;
	for (int i = 0; i < servers->count; i++) {
		if (servers->list[i]->users > 1)
			continue;
		servers->unsettled++;
		server_start(servers->list[i], one_settled, servers);
	}
	one_settled(servers);
}

/* The item lies so many servers `behind` that at the place of a key, which is its own or that of its collection. */
static int look_up(const struct servers *servers, struct slice key)
{
	uint16_t next[SERVER_PLACES];
	unsigned behind;
	struct slice place = servers->options->place(key, &behind);

	if (behind == 0)
		return ring_lookup(servers->ring, place);
	/* If there are not so many servers, counting goes on at the first. */
	return next[(int)behind % ring_spread(servers->ring, place, (int)behind + 1, next)];
}

int servers_index(struct servers *servers, struct slice key)
{
	struct route *route;

	if (servers->count == 1)
		return 0;
	if (!servers->routes || key.n > ROUTE_KEY)
		return look_up(servers, key);
	route = &servers->routes[hash_key(key, servers->seed) % ROUTES];
	if (!slice_equal(slice_of(route->key, route->n), key)) {
		route->server = (uint16_t)look_up(servers, key);
		route->n = (uint8_t)key.n;
		memcpy(route->key, key.p, key.n);
	}
	return route->server;
}

void servers_call(struct servers *servers, const struct call *call, struct waiter *waiter)
{
	int index = call->server == CALL_ANY_SERVER ? servers_index(servers, call->key) : call->server;

	server_call(servers->list[index], call, waiter);
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

void servers_reset_latencies(struct servers *servers)
{
	for (int i = 0; i < servers->count; i++)
		histogram_reset(&servers->list[i]->stats.latency);
}
