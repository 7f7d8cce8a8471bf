#include "upstream/ring.h"

#include <libmemcached/memcached.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/alloc.h"
#include "util/buf.h"
#include "util/check.h"

struct ring {
	memcached_st *hash;
	struct ring_server *servers; /* in libmemcached's order */
	int count;
};

static void list_servers(struct ring *ring)
{
	ring->count = (int)memcached_server_count(ring->hash);
	ring->servers = xcalloc((size_t)ring->count, sizeof(*ring->servers));
	for (int i = 0; i < ring->count; i++) {
		const memcached_instance_st *server = memcached_server_instance_by_position(ring->hash, (uint32_t)i);
		ring->servers[i].host = xstrdup(memcached_server_name(server));
		ring->servers[i].port = (uint16_t)memcached_server_port(server);
	}
}

static struct ring *new_ring(memcached_st *hash, char error[256])
{
	struct ring *ring;

	if (memcached_server_count(hash) == 0) {
		snprintf(error, 256, "no server is named");
		memcached_free(hash);
		return NULL;
	}
	ring = xcalloc(1, sizeof(*ring));
	ring->hash = hash;
	list_servers(ring);
	return ring;
}

static void set_distribution(memcached_st *hash, enum ring_distribution distribution)
{
	switch (distribution) {
	case RING_KETAMA:
		memcached_behavior_set(hash, MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, 1);
		break;
	case RING_CONSISTENT:
		memcached_behavior_set(hash, MEMCACHED_BEHAVIOR_DISTRIBUTION, MEMCACHED_DISTRIBUTION_CONSISTENT);
		break;
	case RING_MODULA:
		memcached_behavior_set(hash, MEMCACHED_BEHAVIOR_DISTRIBUTION, MEMCACHED_DISTRIBUTION_MODULA);
		break;
	}
}

/* libmemcached aborts when its table of points is full. */
enum { CONTINUUM_SERVERS = 100 };

static bool is_too_many(int count, char error[256])
{
	if (count <= CONTINUUM_SERVERS)
		return false;
	snprintf(error, 256, "%d servers: libmemcached takes at most %d, unless the distribution is modula", count,
		CONTINUUM_SERVERS);
	return true;
}

struct ring *ring_create(
	const struct ring_server *servers, int count, enum ring_distribution distribution, char error[256])
{
	memcached_return_t rc = MEMCACHED_SUCCESS;
	memcached_st *hash;

	if (distribution != RING_MODULA && is_too_many(count, error))
		return NULL;
	hash = memcached_create(NULL);
	if (!hash)
		abort();
	set_distribution(hash, distribution);
	for (int i = 0; i < count && memcached_success(rc); i++) {
		const struct ring_server *s = &servers[i];
		if (s->port)
			rc = memcached_server_add_with_weight(hash, s->host, s->port, s->weight);
		else
			rc = memcached_server_add_unix_socket_with_weight(hash, s->host, s->weight);
	}
	if (memcached_success(rc))
		return new_ring(hash, error);
	snprintf(error, 256, "libmemcached: %s", memcached_strerror(hash, rc));
	memcached_free(hash);
	return NULL;
}

static int count_words(const char *text, const char *word)
{
	int count = 0;

	for (; (text = strcasestr(text, word)); text += strlen(word))
		count++;
	return count;
}

static bool names_one_twice(const struct ring *ring)
{
	for (int i = 0; i < ring->count; i++)
		for (int j = 0; j < i; j++)
			if (ring->servers[i].port == ring->servers[j].port &&
				strcmp(ring->servers[i].host, ring->servers[j].host) == 0)
				return true;
	return false;
}

struct ring *ring_create_from_string(const char *configuration, char error[256])
{
	size_t n = strlen(configuration);
	int servers = count_words(configuration, "--SERVER=") + count_words(configuration, "--SOCKET=");
	memcached_st *hash;
	struct ring *ring;

	if (count_words(configuration, "CONSISTENT") && is_too_many(servers, error))
		return NULL;

	if (libmemcached_check_configuration(configuration, n, error, 256) != MEMCACHED_SUCCESS)
		return NULL;
	hash = memcached(configuration, n);
	if (!hash) {
		snprintf(error, 256, "libmemcached does not accept the configuration");
		return NULL;
	}
	ring = new_ring(hash, error);
	if (ring && names_one_twice(ring)) {
		snprintf(error, 256, "a server is named twice");
		ring_destroy(ring);
		return NULL;
	}
	return ring;
}

void ring_destroy(struct ring *ring)
{
	if (!ring)
		return;
	for (int i = 0; i < ring->count; i++)
		free(ring->servers[i].host);
	free(ring->servers);
	memcached_free(ring->hash);
	free(ring);
}

int ring_count(const struct ring *ring)
{
	return ring->count;
}

const struct ring_server *ring_server(const struct ring *ring, int index)
{
	return &ring->servers[index];
}

int ring_lookup(const struct ring *ring, struct slice key)
{
	if (ring->count == 1)
		return 0;
	return (int)memcached_generate_hash(ring->hash, key.p, key.n);
}

uint64_t ring_fingerprint(const struct ring *ring)
{
	enum { KEYS = 1024 };
	struct buf places = BUF_EMPTY;
	uint64_t sum;

	for (int i = 0; i < KEYS; i++) {
		char key[16];
		int n = snprintf(key, sizeof(key), "key-%d", i);
		const struct ring_server *s = ring_server(ring, ring_lookup(ring, slice_of(key, (size_t)n)));
		buf_printf(&places, "%s %u\n", s->host, s->port);
	}
	sum = check_of(buf_slice(&places));
	buf_free(&places);
	return sum;
}
