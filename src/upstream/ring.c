/*
 * A ring is an array of points, sorted by hash, then by server. A key belongs to the first
 * point whose hash is not less than its own. Points and keys are divided into buckets by the
 * upper bits of their hashes; a table has the index of the first point of each bucket:
 *
 *   buckets    0   1   2   3 ...  end
 *              |    \   \__ \___
 *   points     . . . . . . . . . .  the first one once more
 *
 * So no binary search is needed, and a point is one word: the lower bits of its hash, and its
 * server. The time of a lookup is mostly memory latency, so it matters that the points are
 * small.
 */
#include "upstream/ring.h"

#include <assert.h>
#include <libhashkit/hashkit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/alloc.h"
#include "util/buf.h"
#include "util/check.h"

/* Constants of libmemcached. */
enum {
	PLAIN_POINTS = 100, /* Points of a server in an unweighted ring. */
	POINTS = 160,       /* Points of a server of average weight. */
	DIGEST_POINTS = 4,  /* Points from one MD5 digest. */
	DEFAULT_PORT = 11211
};

enum {
	SERVER_BITS = 10, /* Bits of a word for the server. */
	/*
	 * Log2 of the minimum number of buckets, so that the remaining bits of a hash fit in a
	 * word.
	 */
	LEAST_BUCKETS = 10,
	BUCKET_POINTS = 8 /* Maximum average number of points in a bucket: half a cache line. */
};

_Static_assert(RING_SERVERS_MAX <= 1 << SERVER_BITS, "a word has room for each server");

struct ring {
	struct ring_server *servers;
	int count;
	hashkit_st hash;    /* Hash function of keys. */
	size_t point_count; /* 0: the server is the hash modulo the number of servers. */
	uint32_t *points, *buckets;
	unsigned shift; /* Shift from a hash to its bucket. */
};

/* --- points --- */

struct points {
	struct ring_point *at;
	size_t n, cap;
};

static void add_point(struct points *points, uint32_t hash, int server)
{
	if (points->n == points->cap) {
		points->cap = points->cap ? 2 * points->cap : 1024;
		points->at = xrealloc(points->at, points->cap * sizeof(*points->at));
	}
	points->at[points->n++] = (struct ring_point){ hash, (uint16_t)server };
}

/* Returns the string that is hashed for one or several points. */
static struct slice name_points(const struct ring_server *server, size_t i, struct buf *name)
{
	buf_consume(name, buf_size(name));
	if (server->port == DEFAULT_PORT)
		buf_printf(name, "%s-%zu", server->host, i);
	else
		buf_printf(name, "%s:%u-%zu", server->host, server->port, i);
	return buf_slice(name);
}

static void add_plain_points(const struct ring_server *server, int index, struct points *points)
{
	struct buf name = BUF_EMPTY;

	for (size_t i = 0; i < PLAIN_POINTS; i++) {
		struct slice s = name_points(server, i, &name);
		add_point(points, libhashkit_one_at_a_time(s.p, s.n), index);
	}
	buf_free(&name);
}

static void add_digest(struct slice name, int index, struct points *points)
{
	unsigned char md5[4 * DIGEST_POINTS];

	libhashkit_md5_signature((const unsigned char *)name.p, name.n, md5);
	for (size_t i = 0; i < sizeof(md5); i += 4) {
		uint32_t low = (uint32_t)(md5[i] | md5[i + 1] << 8),
			 high = (uint32_t)(md5[i + 2] | md5[i + 3] << 8);
		add_point(points, low | high << 16, index);
	}
}

/* In libmemcached, a missing weight means 1. */
static uint32_t weight_of(const struct ring_server *server)
{
	return server->weight ? server->weight : 1;
}

/*
 * Adds the points of a server with this `share` of all weights. libmemcached rounds in single
 * precision: of 100 equal servers each has 39 digests, not 40.
 */
static void add_weighted_points(
	const struct ring_server *server, int index, float share, int count, struct points *points)
{
	size_t digests = (size_t)(share * POINTS / DIGEST_POINTS * (float)count + 0.0000000001F);
	struct buf name = BUF_EMPTY;

	for (size_t i = 0; i < digests; i++)
		add_digest(name_points(server, i, &name), index, points);
	buf_free(&name);
}

/* --- the ring --- */

static void copy_servers(struct ring *ring, const struct ring_server *servers)
{
	ring->servers = xcalloc((size_t)ring->count, sizeof(*servers));
	for (int i = 0; i < ring->count; i++) {
		ring->servers[i] = servers[i];
		ring->servers[i].host = xstrdup(servers[i].host);
		ring->servers[i].name = servers[i].name ? xstrdup(servers[i].name) : NULL;
	}
}

static uint32_t point_word(const struct ring *ring, uint32_t hash, uint16_t server)
{
	uint32_t lower = hash & (((uint32_t)1 << ring->shift) - 1);

	return lower << SERVER_BITS | server;
}

static void insert_word(uint32_t *first, uint32_t *end, uint32_t word)
{
	for (; end > first && end[-1] > word; end--)
		*end = end[-1];
	*end = word;
}

/* Counts the points of each bucket, and sorts each bucket by insertion. */
static void set_points(struct ring *ring, const struct ring_point *points, size_t n)
{
	size_t bits = LEAST_BUCKETS, buckets;
	uint32_t *ends, sum = 0;

	while (n > (size_t)BUCKET_POINTS << bits)
		bits++;
	buckets = (size_t)1 << bits;
	ring->shift = (unsigned)(32 - bits);
	ring->point_count = n;
	ring->points = xcalloc(n + 1, sizeof(*ring->points));
	ring->buckets = xcalloc(buckets + 1, sizeof(*ring->buckets));
	ends = xcalloc(buckets, sizeof(*ends));
	for (size_t i = 0; i < n; i++)
		ends[points[i].hash >> ring->shift]++;
	for (size_t b = 0; b < buckets; b++) {
		ring->buckets[b] = sum;
		sum += ends[b];
		ends[b] = ring->buckets[b];
	}
	ring->buckets[buckets] = sum;
	for (size_t i = 0; i < n; i++) {
		size_t b = points[i].hash >> ring->shift;
		uint32_t word = point_word(ring, points[i].hash, points[i].server);
		insert_word(ring->points + ring->buckets[b], ring->points + ends[b]++, word);
	}
	ring->points[n] = ring->points[0];
	free(ends);
}

struct ring *ring_create_of_points(const struct ring_server *servers, int count, int hash,
	const struct ring_point *points, size_t n)
{
	struct ring *ring = xcalloc(1, sizeof(*ring));
	hashkit_return_t set;

	assert(count > 0 && count <= RING_SERVERS_MAX);
	ring->count = count;
	copy_servers(ring, servers);
	hashkit_create(&ring->hash);
	set = hashkit_set_function(&ring->hash, (hashkit_hash_algorithm_t)hash);
	assert(hashkit_success(set));
	(void)set;
	if (n)
		set_points(ring, points, n);
	return ring;
}

/*
 * As in libmemcached, consistent hashing also uses weighted points if any server has a weight.
 * The hash function of keys stays the same.
 */
struct ring *ring_create(
	const struct ring_server *servers, int count, enum ring_distribution distribution)
{
	int hash = distribution == RING_KETAMA ? HASHKIT_HASH_MD5 : HASHKIT_HASH_DEFAULT;
	bool weighted = distribution == RING_KETAMA;
	struct points points = { 0 };
	uint64_t total = 0;
	struct ring *ring;

	for (int i = 0; i < count; i++) {
		total += weight_of(&servers[i]);
		weighted = weighted || weight_of(&servers[i]) > 1;
	}
	for (int i = 0; i < count && distribution != RING_MODULA; i++) {
		float share = (float)weight_of(&servers[i]) / (float)total;
		if (weighted)
			add_weighted_points(&servers[i], i, share, count, &points);
		else
			add_plain_points(&servers[i], i, &points);
	}
	ring = ring_create_of_points(servers, count, hash, points.at, points.n);
	free(points.at);
	return ring;
}

void ring_destroy(struct ring *ring)
{
	if (!ring)
		return;
	for (int i = 0; i < ring->count; i++) {
		free(ring->servers[i].host);
		free(ring->servers[i].name);
	}
	free(ring->servers);
	free(ring->points);
	free(ring->buckets);
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

/* --- keys --- */

/*
 * Returns the index of the first point whose hash is not less than `hash`, after the last point
 * the first one.
 */
static size_t find_point(const struct ring *ring, uint32_t hash)
{
	const uint32_t *bucket = &ring->buckets[hash >> ring->shift];
	uint32_t least = point_word(ring, hash, 0);
	size_t i = bucket[0];

	while (i < bucket[1] && ring->points[i] < least)
		i++;
	return i;
}

static uint16_t server_at(const struct ring *ring, size_t point)
{
	return ring->points[point] & ((1 << SERVER_BITS) - 1);
}

int ring_lookup(const struct ring *ring, struct slice key)
{
	uint32_t hash;

	if (ring->count == 1)
		return 0;
	hash = hashkit_digest(&ring->hash, key.p, key.n);
	return ring->point_count ? server_at(ring, find_point(ring, hash))
				 : (int)(hash % (uint32_t)ring->count);
}

static bool has_server(const uint16_t *servers, int n, uint16_t server)
{
	for (int i = 0; i < n; i++) {
		if (servers[i] == server)
			return true;
	}
	return false;
}

int ring_spread(const struct ring *ring, struct slice key, int n, uint16_t *out)
{
	int count = 1, most = n < ring->count ? n : ring->count;
	size_t first;

	assert(n > 0);
	out[0] = (uint16_t)ring_lookup(ring, key);
	if (!ring->point_count) {
		for (; count < most; count++)
			out[count] = (uint16_t)((out[0] + count) % ring->count);
		return count;
	}
	first = find_point(ring, hashkit_digest(&ring->hash, key.p, key.n));
	/* A server with a small weight may have no point. */
	for (size_t i = 1; i < ring->point_count && count < most; i++) {
		uint16_t server = server_at(ring, (first + i) % ring->point_count);
		if (!has_server(out, count, server))
			out[count++] = server;
	}
	return count;
}

uint64_t ring_fingerprint(const struct ring *ring)
{
	enum { KEYS = 1024 };
	struct buf places = BUF_EMPTY;
	uint64_t sum;

	for (int i = 0; i < KEYS; i++) {
		char key[16];
		int n = snprintf(key, sizeof(key), "key-%d", i);
		const struct ring_server *s =
			ring_server(ring, ring_lookup(ring, slice_of(key, (size_t)n)));
		buf_printf(&places, "%s %u\n", s->host, s->port);
	}
	sum = check_of(buf_slice(&places));
	buf_free(&places);
	return sum;
}
