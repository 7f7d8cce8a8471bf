#include "upstream/servers.h"

#include <event2/event.h>
#include <event2/event_struct.h>
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
	const struct ring *ring;
	struct route *routes; /* by hash of the key, without probing; NULL if there is one server */
	uint64_t seed;
	struct resolver *resolver;
	struct loop *loop;
	struct event check; /* of the names, every dns_interval */
	int count, unsettled;
	void (*settled)(void *arg);
	void *settled_arg;
	struct servers_entry {
		struct server server;
		struct servers *servers;
	} entries[];
};

static void on_check(evutil_socket_t fd, short what, void *arg)
{
	struct servers *servers = arg;

	(void)fd;
	(void)what;
	loop_enter(servers->loop);
	for (int i = 0; i < servers->count; i++)
		server_check_name(&servers->entries[i].server);
}

static void set_check(struct servers *servers, uint64_t ms)
{
	struct timeval tv = { (time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000) };

	if (ms)
		event_add(&servers->check, &tv);
}

struct servers *servers_create(
	struct loop *loop, const struct ring *ring, const struct server_options *options, uint64_t *random)
{
	int count = ring_count(ring);
	struct servers *servers = xcalloc(1, sizeof(*servers) + (size_t)count * sizeof(struct servers_entry));

	servers->ring = ring;
	servers->count = count;
	servers->seed = random_next(random);
	if (count > 1 && count <= UINT16_MAX)
		servers->routes = xcalloc(ROUTES, sizeof(struct route));
	servers->loop = loop;
	servers->resolver = resolver_create(loop->base);
	event_assign(&servers->check, loop->base, -1, EV_PERSIST, on_check, servers);
	set_check(servers, options->dns_interval);
	for (int i = 0; i < count; i++) {
		servers->entries[i].servers = servers;
		server_init(
			&servers->entries[i].server, loop, ring_server(ring, i), options, servers->resolver, random);
	}
	return servers;
}

void servers_stop(struct servers *servers)
{
	event_del(&servers->check);
	for (int i = 0; i < servers->count; i++)
		server_fini(&servers->entries[i].server);
	servers_drain(servers);
}

/* A waiter that gets a failure may make another call, to any server: repeat until there are none. */
void servers_drain(struct servers *servers)
{
	for (int i = 0; i < servers->count; i++) {
		if (server_drain(&servers->entries[i].server))
			i = -1;
	}
}

void servers_free(struct servers *servers)
{
	resolver_destroy(servers->resolver);
	free(servers->routes);
	free(servers);
}

static void one_settled(struct server *server)
{
	struct servers *servers = ((struct servers_entry *)server)->servers;

	if (--servers->unsettled == 0)
		servers->settled(servers->settled_arg);
}

void servers_start(struct servers *servers, void (*settled)(void *arg), void *arg)
{
	servers->unsettled = servers->count;
	servers->settled = settled;
	servers->settled_arg = arg;
	for (int i = 0; i < servers->count; i++)
		server_start(&servers->entries[i].server, one_settled);
}

int servers_index(struct servers *servers, struct slice key)
{
	struct route *route;

	if (!servers->routes || key.n > ROUTE_KEY)
		return ring_lookup(servers->ring, key);
	route = &servers->routes[hash_key(key, servers->seed) % ROUTES];
	if (!slice_equal(slice_of(route->key, route->n), key)) {
		route->server = (uint16_t)ring_lookup(servers->ring, key);
		route->n = (uint8_t)key.n;
		memcpy(route->key, key.p, key.n);
	}
	return route->server;
}

void servers_call(struct servers *servers, const struct call *call, struct waiter *waiter)
{
	int index = call->server == CALL_ANY_SERVER ? servers_index(servers, call->key) : call->server;

	server_call(&servers->entries[index].server, call, waiter);
}

bool servers_have_room(const struct servers *servers, int index)
{
	return server_has_room(&servers->entries[index].server);
}

void servers_await_room(struct servers *servers, int index, struct loop_job *job)
{
	servers->entries[index].server.wants_room = job;
}

int servers_count(const struct servers *servers)
{
	return servers->count;
}

const struct server *servers_get(const struct servers *servers, int index)
{
	return &servers->entries[index].server;
}
