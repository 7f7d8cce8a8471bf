#include "upstream/ring_string.h"

#include <libmemcached/memcached.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "upstream/ring.h"
#include "util/alloc.h"

/*
 * A point of libmemcached. Weights, and the hash of points if `--HASH` follows the servers, can
 * be read only from its points. This struct is not in its headers; therefore agrees() checks
 * that the points are interpreted correctly.
 */
struct memcached_continuum_item_st {
	uint32_t index, value;
};

static struct ring *copy_ring(const memcached_st *hash, int count)
{
	struct ring_server *servers = xcalloc((size_t)count, sizeof(*servers));
	size_t n = hash->distribution == MEMCACHED_DISTRIBUTION_MODULA
		? 0
		: hash->ketama.continuum_points_counter;
	struct ring_point *points = xcalloc(n + 1, sizeof(*points));
	struct ring *ring;

	for (int i = 0; i < count; i++) {
		const memcached_instance_st *server =
			memcached_server_instance_by_position(hash, (uint32_t)i);
		/* Borrowed; ring_create_of_points() copies it. */
		servers[i].host = (char *)memcached_server_name(server);
		servers[i].port = (uint16_t)memcached_server_port(server);
	}
	for (size_t i = 0; i < n; i++) {
		points[i].hash = hash->ketama.continuum[i].value;
		points[i].server = (uint16_t)hash->ketama.continuum[i].index;
	}
	ring = ring_create_of_points(
		servers, count, hashkit_get_function(&hash->hashkit), points, n);
	free(servers);
	free(points);
	return ring;
}

static bool agrees(const struct ring *ring, const memcached_st *hash)
{
	enum { KEYS = 256 };

	for (int i = 0; i < KEYS; i++) {
		char key[16];
		size_t n = (size_t)snprintf(key, sizeof(key), "key-%d", i);
		if (ring_lookup(ring, slice_of(key, n)) !=
			(int)memcached_generate_hash(hash, key, n))
			return false;
	}
	return true;
}

static bool names_one_twice(const struct ring *ring)
{
	for (int i = 0; i < ring_count(ring); i++) {
		const struct ring_server *s = ring_server(ring, i);
		for (int j = 0; j < i; j++) {
			if (s->port == ring_server(ring, j)->port &&
				strcmp(s->host, ring_server(ring, j)->host) == 0)
				return true;
		}
	}
	return false;
}

/* Returns the ring, or NULL with the reason in `error`. */
static struct ring *ring_of(const memcached_st *hash, char error[256])
{
	uint32_t count = memcached_server_count(hash);
	struct ring *ring;

	if (count == 0 || count > RING_SERVERS_MAX) {
		snprintf(error, 256, count ? "more than %d servers" : "no servers",
			RING_SERVERS_MAX);
		return NULL;
	}
	if (hash->distribution == MEMCACHED_DISTRIBUTION_RANDOM) {
		snprintf(error, 256, "random distribution of keys is not supported");
		return NULL;
	}
	ring = copy_ring(hash, (int)count);
	if (names_one_twice(ring))
		snprintf(error, 256, "a server is listed twice");
	else if (!agrees(ring, hash))
		snprintf(error, 256,
			"setlistd does not support the key distribution of the configuration "
			"string");
	else
		return ring;
	ring_destroy(ring);
	return NULL;
}

static int count_words(const char *text, const char *word)
{
	int count = 0;

	for (; (text = strcasestr(text, word)); text += strlen(word))
		count++;
	return count;
}

/* libmemcached aborts when its table of points is full. */
static bool has_too_many_points(const char *configuration, char error[256])
{
	enum { SERVERS = 100 };
	int servers =
		count_words(configuration, "--SERVER=") + count_words(configuration, "--SOCKET=");

	if (servers <= SERVERS || !strcasestr(configuration, "CONSISTENT"))
		return false;
	snprintf(error, 256,
		"%d servers: a configuration string of libmemcached with consistent distribution "
		"has at most %d; list "
		"them one by one",
		servers, SERVERS);
	return true;
}

/*
 * libmemcached's error begins with an address in memory and ends with a position in its source;
 * both are removed.
 */
static void keep_the_reason(char error[256])
{
	char *end = strstr(error, " -> "), *address = strstr(error, "(0x"),
	     *begin = address ? strstr(address, ") ") : NULL;

	if (end)
		*end = '\0';
	if (begin)
		memmove(error, begin + 2, strlen(begin + 2) + 1);
}

struct ring *ring_from_string(const char *configuration, char error[256])
{
	size_t n = strlen(configuration);
	memcached_st *hash;
	struct ring *ring;

	if (has_too_many_points(configuration, error))
		return NULL;
	if (libmemcached_check_configuration(configuration, n, error, 256) != MEMCACHED_SUCCESS) {
		keep_the_reason(error);
		return NULL;
	}
	hash = memcached(configuration, n);
	if (!hash) {
		snprintf(error, 256, "libmemcached rejects the configuration string");
		return NULL;
	}
	ring = ring_of(hash, error);
	memcached_free(hash);
	return ring;
}
