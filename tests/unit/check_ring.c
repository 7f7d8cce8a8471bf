/*
 * Rings, compared with libmemcached: random pools, with all its distributions. Features that it
 * lacks are compared with its rules.
 */
#include <libmemcached/memcached.h>

#include "unit.h"
#include "upstream/ring.h"
#include "upstream/ring_string.h"
#include "util/buf.h"
#include "util/random.h"

enum { POOLS = 24, CASES = 50, KEYS = 300, SERVERS_MAX = 100 };

static uint64_t state;

static unsigned below(unsigned n)
{
	return (unsigned)(random_next(&state) % n);
}

/* --- pools of servers --- */

struct cluster {
	struct ring_server servers[RING_SERVERS_MAX];
	char hosts[RING_SERVERS_MAX][64];
	int count;
};

/* Most ports are the usual one or near it. */
static void choose_server(struct cluster *cluster, int i, unsigned weights)
{
	static const uint16_t ports[] = { 11211, 11211, 11212, 11210, 1, 65535, 0 };
	struct ring_server *s = &cluster->servers[i];

	s->host = cluster->hosts[i];
	s->port = ports[below(sizeof(ports) / sizeof(ports[0]))];
	s->weight = weights ? below(weights) : 1;
	if (s->port == 0)
		snprintf(s->host, sizeof(cluster->hosts[i]), "/run/memcached-%d.sock", i);
	else if (below(4))
		snprintf(s->host, sizeof(cluster->hosts[i]), "10.%u.0.%d", below(3), i);
	else
		snprintf(s->host, sizeof(cluster->hosts[i]), "cache-%d.example", i);
}

static void choose_cluster(struct cluster *cluster)
{
	static const unsigned weights[] = { 0, 0, 2, 5, 100000 };
	unsigned weight = weights[below(sizeof(weights) / sizeof(weights[0]))];

	cluster->count = (int)below(below(40) ? 12 : SERVERS_MAX) + 1;
	for (int i = 0; i < cluster->count; i++)
		choose_server(cluster, i, weight);
}

static size_t choose_key(char key[251])
{
	size_t n = below(8) ? below(24) + 1 : below(250) + 1;

	for (size_t i = 0; i < n; i++)
		key[i] = (char)(below(94) + '!');
	return n;
}

static void compare_keys(const struct ring *ring, const memcached_st *theirs)
{
	char key[251];

	for (int i = 0; i < KEYS; i++) {
		size_t n = choose_key(key);
		ck_assert_int_eq(ring_lookup(ring, slice_of(key, n)),
			(int)memcached_generate_hash(theirs, key, n));
	}
}

/* --- lists of servers --- */

/*
 * A weight counts for libmemcached's consistent hashing only if that was set before. But then each
 * server takes long.
 */
static memcached_st *their_cluster(
	const struct cluster *cluster, enum ring_distribution distribution)
{
	memcached_st *theirs = memcached_create(NULL);

	if (distribution == RING_CONSISTENT)
		memcached_behavior_set(
			theirs, MEMCACHED_BEHAVIOR_DISTRIBUTION, MEMCACHED_DISTRIBUTION_CONSISTENT);
	for (int i = 0; i < cluster->count; i++) {
		const struct ring_server *s = &cluster->servers[i];
		memcached_return_t rc = s->port
			? memcached_server_add_with_weight(theirs, s->host, s->port, s->weight)
			: memcached_server_add_unix_socket_with_weight(theirs, s->host, s->weight);
		ck_assert(memcached_success(rc));
	}
	if (distribution == RING_KETAMA)
		memcached_behavior_set(theirs, MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, 1);
	return theirs;
}

static void compare_cluster(const struct cluster *cluster, enum ring_distribution distribution)
{
	struct ring *ring = ring_create(cluster->servers, cluster->count, distribution);
	memcached_st *theirs = their_cluster(cluster, distribution);

	compare_keys(ring, theirs);
	memcached_free(theirs);
	ring_destroy(ring);
}

LOOP_TEST(pools, POOLS)
{
	struct cluster cluster;

	state = (uint64_t)_i;
	for (int i = 0; i < CASES; i++) {
		choose_cluster(&cluster);
		for (int distribution = RING_KETAMA; distribution <= RING_MODULA; distribution++)
			compare_cluster(&cluster, (enum ring_distribution)distribution);
	}
}

/* Of some numbers of equal servers each has 40 digests, of others 39. */
TEST(every_number_of_equal_servers)
{
	struct cluster cluster;

	state = 1;
	for (cluster.count = 1; cluster.count <= SERVERS_MAX; cluster.count++) {
		choose_server(&cluster, cluster.count - 1, 0);
		compare_cluster(&cluster, RING_KETAMA);
	}
}

/* --- configuration strings --- */

static const char *const hashes[] = { "MD5", "CRC", "FNV1_64", "FNV1A_64", "FNV1_32", "FNV1A_32",
	"MURMUR", "JENKINS" };

static void add_hash(struct buf *text)
{
	buf_printf(text, "--HASH=%s ", hashes[below(sizeof(hashes) / sizeof(hashes[0]))]);
}

static void add_servers(const struct cluster *cluster, struct buf *text)
{
	for (int i = 0; i < cluster->count; i++) {
		const struct ring_server *s = &cluster->servers[i];
		if (s->port == 0)
			buf_printf(text, "--SOCKET=\"%s\"", s->host);
		else
			buf_printf(text, "--SERVER=%s:%u", s->host, s->port);
		if (s->weight != 1)
			buf_printf(text, "/?%u", s->weight);
		BUF_ADD(text, " ");
	}
}

/* The meaning of an option may depend on the options before it. */
static void choose_string(const struct cluster *cluster, struct buf *text)
{
	static const char *const distributions[] = { "consistent", "consistent", "modula",
		"consistent,MD5" };
	const char *distribution = distributions[below(4)];
	unsigned place = below(3), hash = below(4), sorted = below(6);

	buf_consume(text, buf_size(text));
	if (hash == 0)
		add_hash(text);
	if (sorted == 0)
		BUF_ADD(text, "--SORT-HOSTS ");
	if (place == 0)
		buf_printf(text, "--DISTRIBUTION=%s ", distribution);
	add_servers(cluster, text);
	if (hash == 1)
		add_hash(text);
	if (place == 1)
		buf_printf(text, "--DISTRIBUTION=%s ", distribution);
	if (sorted == 1)
		BUF_ADD(text, "--SORT-HOSTS ");
	if (hash == 2)
		add_hash(text);
	BUF_ADD(text, "--TCP-NODELAY");
	buf_add(text, "", 1);
}

LOOP_TEST(strings, POOLS)
{
	struct buf text = BUF_EMPTY;
	char error[256];
	struct cluster cluster;

	state = (uint64_t)_i + 100;
	for (int i = 0; i < CASES; i++) {
		choose_cluster(&cluster);
		choose_string(&cluster, &text);
		const char *configuration = buf_slice(&text).p;
		memcached_st *theirs = memcached(configuration, strlen(configuration));
		struct ring *ring = ring_from_string(configuration, error);
		ck_assert_msg(theirs && ring, "%s: %s", configuration, error);
		ck_assert_int_eq(ring_count(ring), cluster.count);
		compare_keys(ring, theirs);
		memcached_free(theirs);
		ring_destroy(ring);
	}
	buf_free(&text);
}

static void refused(const char *configuration, const char *why)
{
	char error[256] = "";

	ck_assert_ptr_null(ring_from_string(configuration, error));
	ck_assert_msg(strstr(error, why), "%s", error);
}

TEST(strings_that_are_refused)
{
	struct buf many = BUF_EMPTY;

	refused("--SERVER=host-a --DISTRIBUTION=random", "random distribution");
	refused("--SERVER=host-a --SERVER=host-b --SERVER=host-a", "listed twice");
	refused("--DISTRIBUTION=consistent", "no servers");
	refused("--SERVER=host-a --SERVER=host-b --NAMESPACE=\"x\" --HASH-WITH-NAMESPACE",
		"does not support");
	refused("--NONSENSE", "");
	for (int i = 0; i <= SERVERS_MAX; i++)
		buf_printf(&many, "--SERVER=host-%d ", i);
	BUF_ADD(&many, "--DISTRIBUTION=consistent");
	buf_add(&many, "", 1);
	refused(buf_slice(&many).p, "101 servers: ");
	buf_free(&many);
}

/* --- more servers than libmemcached supports --- */

/*
 * Equal servers have roughly equal parts of the keys; each has some; and an additional one takes
 * keys, but moves none between others.
 */
TEST(a_thousand_servers)
{
	enum { MANY = RING_SERVERS_MAX, TRIES = 100 * MANY };
	static int keys[MANY];
	struct cluster cluster = { .count = MANY };
	struct ring *all, *fewer;
	int moved = 0;

	state = 3;
	for (int i = 0; i < MANY; i++)
		choose_server(&cluster, i, 0);
	all = ring_create(cluster.servers, MANY, RING_CONSISTENT);
	fewer = ring_create(cluster.servers, MANY - 1, RING_CONSISTENT);
	for (int i = 0; i < TRIES; i++) {
		char key[251];
		struct slice k = slice_of(key, choose_key(key));
		int server = ring_lookup(all, k), before = ring_lookup(fewer, k);
		keys[server]++;
		moved += server != before;
		ck_assert(server == before || server == MANY - 1);
	}
	ck_assert_int_eq(moved, keys[MANY - 1]);
	for (int i = 0; i < MANY; i++)
		ck_assert(keys[i] > 30 && keys[i] < 250);
	ring_destroy(all);
	ring_destroy(fewer);
}

/* Of a ring in plain sight, and at its end. */
TEST(points_in_plain_sight)
{
	static const struct ring_point points[] = { { 40, 2 }, { 10, 0 }, { 20, 1 }, { 20, 0 },
		{ UINT32_MAX - 7, 1 }, { 0x80000000, 2 } };
	struct cluster cluster = { .count = 3 };
	struct ring *ring;

	state = 4;
	for (int i = 0; i < 3; i++)
		choose_server(&cluster, i, 0);
	ring = ring_create_of_points(cluster.servers, 3, MEMCACHED_HASH_MURMUR3, points, 6);
	for (int i = 0; i < 10000; i++) {
		char key[251];
		struct slice k = slice_of(key, choose_key(key));
		uint32_t hash = memcached_generate_hash_value(k.p, k.n, MEMCACHED_HASH_MURMUR3);
		ck_assert_int_eq(ring_lookup(ring, k), hash > 40 && hash <= 0x80000000 ? 2 : 1);
	}
	ring_destroy(ring);
}

/* --- several servers of a key --- */

/*
 * The servers of a key, as one after the other is removed. The keys of a removed server go to the
 * next one on the ring.
 */
static void follow(const struct cluster *cluster, struct slice key, int n, const uint16_t *spread)
{
	struct cluster rest = *cluster;

	for (int i = 0; i < n; i++) {
		struct ring *ring = ring_create(rest.servers, rest.count, RING_CONSISTENT);
		const struct ring_server *s = ring_server(ring, ring_lookup(ring, key));
		const struct ring_server *t = &cluster->servers[spread[i]];
		ck_assert(strcmp(s->host, t->host) == 0 && s->port == t->port);
		for (int j = 0; j < rest.count; j++) {
			if (strcmp(rest.servers[j].host, t->host) == 0)
				rest.servers[j] = rest.servers[--rest.count];
		}
		ring_destroy(ring);
	}
}

TEST(spread)
{
	enum { MOST = 6 };
	uint16_t out[MOST];
	struct cluster cluster;

	state = 5;
	for (int i = 0; i < 200; i++) {
		char key[251];
		struct slice k = slice_of(key, choose_key(key));
		int n = (int)below(MOST) + 1;
		cluster.count = (int)below(9) + 1;
		for (int j = 0; j < cluster.count; j++)
			choose_server(&cluster, j, 0);
		struct ring *ring = ring_create(cluster.servers, cluster.count, RING_CONSISTENT);
		int most = n < cluster.count ? n : cluster.count;
		ck_assert_int_eq(ring_spread(ring, k, n, out), most);
		follow(&cluster, k, most, out);
		ring_destroy(ring);
	}
}

TEST(spread_of_modula)
{
	struct cluster cluster = { .count = 4 };
	struct ring *ring;
	uint16_t out[6];

	state = 6;
	for (int i = 0; i < 4; i++)
		choose_server(&cluster, i, 0);
	ring = ring_create(cluster.servers, 4, RING_MODULA);
	for (int i = 0; i < 100; i++) {
		char key[251];
		struct slice k = slice_of(key, choose_key(key));
		ck_assert_int_eq(ring_spread(ring, k, 6, out), 4);
		for (int j = 0; j < 4; j++)
			ck_assert_int_eq(out[j], (ring_lookup(ring, k) + j) % 4);
	}
	ring_destroy(ring);
}

/* A server of a small weight has no point, and so no key. */
TEST(spread_passes_over_servers_without_points)
{
	struct cluster cluster = { .count = 3 };
	struct ring *ring;
	uint16_t out[3];

	state = 7;
	for (int i = 0; i < 3; i++)
		choose_server(&cluster, i, 0);
	cluster.servers[0].weight = cluster.servers[2].weight = 99999;
	ring = ring_create(cluster.servers, 3, RING_KETAMA);
	for (int i = 0; i < 100; i++) {
		char key[251];
		ck_assert_int_eq(ring_spread(ring, slice_of(key, choose_key(key)), 3, out), 2);
		ck_assert(out[0] != 1 && out[1] == 2 - out[0]);
	}
	ring_destroy(ring);
}
