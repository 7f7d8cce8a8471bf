#include "worker/generation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collection/account.h"
#include "collection/machines.h"
#include "collection/text/part_key.h"
#include "command/lookup.h"
#include "measure/meter.h"
#include "upstream/address.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/random.h"
#include "waiting/push_board.h"
#include "waiting/waiting.h"

/* --- functions for machines and tasks --- */

/* Bytes from which a table is packed. A smaller one saves little of its item. */
enum { PACK_SIZE = 1024 };

static void generation_call(struct env *env, const struct call *call, struct waiter *waiter)
{
	servers_call(((struct generation *)env)->servers, call, waiter);
}

static void generation_move_call(struct env *env, const struct call *call, struct waiter *waiter)
{
	moves_call(((struct generation *)env)->moving.moves, call, waiter);
}

static void generation_send_moved(struct env *env, const struct call *call, struct waiter *waiter)
{
	struct generation *g =
		(struct generation *)((char *)env - offsetof(struct generation, moving));

	servers_call(g->servers, call, waiter);
}

static void generation_call_moved_later(struct env *env, struct waiter *waiter, unsigned ms)
{
	loop_wake(((struct moving_calls *)env)->all->loop, waiter, ms);
}

static int generation_place(void *arg, struct slice key, int *former)
{
	return servers_place(arg, key, former);
}

/* The same as the two functions above, for `fresh`. */
static void generation_call_server(struct env *env, const struct call *call, struct waiter *waiter)
{
	struct generation *g = (struct generation *)env;

	if (g->moving.moves)
		moves_call(g->moving.moves, call, waiter);
	else
		servers_call(g->servers, call, waiter);
}

/* The same for `copies`, and with them for `fresh`. */
static void generation_copies_call(struct env *env, const struct call *call, struct waiter *waiter)
{
	copies_call(((struct generation *)env)->copies, call, waiter);
}

static void generation_call_copied(struct env *env, const struct call *call, struct waiter *waiter)
{
	if (((struct generation *)env)->copies)
		generation_copies_call(env, call, waiter);
	else
		generation_call_server(env, call, waiter);
}

static int generation_place_copy(void *arg, struct slice key, int *former)
{
	const struct generation *g = arg;
	int here = *former = servers_index(g->servers, key);

	if (g->moving.moves)
		here = servers_place(g->servers, key, former);
	/* A lost server has nothing. */
	if (*former >= servers_count(g->servers))
		*former = here;
	return here;
}

static struct slice generation_server_name(void *arg, int server)
{
	const char *name = servers_name(((struct generation *)arg)->servers, server);

	return slice_of(name, strlen(name));
}

static int64_t generation_server_started(void *arg, int server)
{
	return servers_get(((struct generation *)arg)->servers, server)->abilities.started;
}

static uint64_t generation_unix_us(void *arg)
{
	const struct generation *g = arg;

	return clock_us(CLOCK_REALTIME) + (uint64_t)(g->clock_ahead * 1000);
}

static void generation_fresh_call(struct env *env, const struct call *call, struct waiter *waiter)
{
	fresh_call(((struct generation *)env)->fresh, call, waiter);
}

static uint64_t generation_fresh_clock(struct env *env)
{
	(void)env;
	return loop_clock();
}

static uint64_t generation_fresh_not_before(struct env *env)
{
	(void)env;
	return loop_clock_not_before();
}

static void generation_on_fresh(struct loop_job *job)
{
	static const struct result nothing;
	struct waiter *waiter = ((struct fresh_job *)job)->waiter;

	waiter->done(waiter, &nothing);
}

static void generation_soon(struct env *env, struct waiter *waiter, bool later)
{
	struct generation *g = (struct generation *)env;

	g->fresh_job.waiter = waiter;
	if (later)
		loop_after(g->all->loop, &g->fresh_job.job, 0);
	else
		loop_later(g->all->loop, &g->fresh_job.job);
}

/* A generation of other settings, in any worker, may write without noting that in the slots. */
static bool generation_is_only_one(struct env *env)
{
	struct generation *g = (struct generation *)env;

	return atomic_load(&g->all->fresh_slots->generations) ==
		atomic_load(&g->settings->generations);
}

/* While clients send requests, sliced work pauses for a millisecond between two slices. */
static void generation_call_later(struct env *env, struct waiter *waiter, unsigned ms)
{
	struct generation *g = (struct generation *)env;
	uint64_t bytes_read = meter_get(g->all->meter, COUNT_bytes_read);
	bool busy = bytes_read != g->bytes_seen;

	g->bytes_seen = bytes_read;
	loop_wake(g->all->loop, waiter, ms ? ms : busy);
}

/*
 * Once a slice is over, each check in it finds that at once. One result may wake many tasks, and
 * none of them may do another grain of work.
 */
static bool generation_is_over(struct env *env)
{
	bool is_over = work_is_over(&((struct generation *)env)->all->loop->work);

	env->grain = is_over ? 0 : WORK_GRAIN;
	return is_over;
}

static void generation_pause(struct env *env, struct waiter *waiter, const struct account *account)
{
	loop_wake_in_turn(
		((struct generation *)env)->all->loop, account ? account->payer : NULL, waiter);
}

static void generation_note_size(
	struct env *env, struct slice key, uint64_t members, uint64_t bytes)
{
	notes_add_large(&((struct generation *)env)->all->meter->notes, key, members, bytes,
		env->unix_time);
}

static int64_t generation_server_time(struct env *env, struct slice key)
{
	return servers_time(((struct generation *)env)->servers, key);
}

/*
 * A client of an earlier generation may push to a list on which clients of the current one are
 * blocked.
 */
static void generation_on_push(struct env *env, struct slice key)
{
	struct generations *all = ((struct generation *)env)->all;

	waiting_pushed(all->current->host.waiting, key);
	if (push_board_note(all->pushes.board, key))
		all->pushes.tell(all->pushes.arg);
}

static void generation_on_due(struct env *env, struct slice key, int64_t seconds)
{
	struct generations *all = ((struct generation *)env)->all;

	waiting_due(all->current->host.waiting, key, (uint64_t)seconds * 1000);
}

static void generation_tell(struct env *env)
{
	struct generations *all = ((struct generation *)env)->all;

	all->pushes.tell(all->pushes.arg);
}

static void count_rule(
	struct generation *g, const struct collection_rule *rule, enum rule_fact fact)
{
	if (rule != &rules_default_collection)
		rule_count_add(g->rule_counts[rule - g->settings->config.rules.collections], fact);
}

static void generation_on_read(struct env *env, const struct collection_rule *rule, bool exists)
{
	count_rule((struct generation *)env, rule, exists ? RULE_hits : RULE_misses);
}

/* With plain_verbs the lanes count, since a get reads the set or list. */
static void generation_on_lookup(struct host *host, unsigned counter, struct slice key)
{
	struct generation *g = generation_of(host);
	const struct collection_rule *rule = rules_collection(host->env.rules, key);

	_Static_assert(COUNT_cas_badval - COUNT_get_hits == LOOKUPS - 1,
		"the meter has the counters in this order");
	meter_count(g->all->meter, (enum counter)(COUNT_get_hits + counter), 1);
	if (!rule->plain_verbs && (counter == LOOKUP_get_hits || counter == LOOKUP_get_misses))
		count_rule(g, rule, counter == LOOKUP_get_hits ? RULE_hits : RULE_misses);
}

static void take_rule_counts(struct generation *g)
{
	const struct rules *rules = &g->settings->config.rules;

	g->rule_counts = xcalloc(rules->collection_count, sizeof(struct rule_count *));
	for (size_t i = 0; i < rules->collection_count; i++)
		g->rule_counts[i] =
			rule_counts_take(&g->all->meter->rules, rules->collections[i].prefix);
}

static void drop_rule_counts(struct generation *g)
{
	for (size_t i = 0; i < g->settings->config.rules.collection_count; i++)
		rule_counts_drop(&g->all->meter->rules, g->rule_counts[i]);
	free(g->rule_counts);
}

/* `make check-slow` defines another value. */
#ifndef BACKGROUND_PAUSE
#define BACKGROUND_PAUSE 0
#endif

/*
 * A result that is too large for the memory of clients should be an error, rather than a reason
 * to close the client.
 */
static size_t result_max(const struct config *config)
{
	size_t most = config->client_memory - config->client_memory / 8;

	return most && most < config->max_result ? most : config->max_result;
}

/* Bytes in each room of a worker: a part of client_memory. */
static size_t room_limit(const struct generation *g)
{
	enum { PART = 8, UNLIMITED = 256 << 20 };
	size_t all = g->settings->config.client_memory;

	return (all ? all : UNLIMITED) / PART / g->all->threads;
}

/* Bytes for results in memory: a part of the worker's share of cache_memory, without rules none. */
static size_t fresh_limit(const struct generation *g)
{
	enum { PART = 4 };

	return g->settings->config.rules.fresh
		? g->settings->config.cache_memory / g->all->threads / PART
		: 0;
}

static void init_host(struct generation *g)
{
	const struct config *config = &g->settings->config;
	struct generations *all = g->all;

	g->host = *all->functions;
	g->host.env = (struct env){
		.call = generation_call,
		.later = generation_call_later,
		.is_over = generation_is_over,
		.pause = generation_pause,
		.grain = WORK_GRAIN,
		.measured = generation_note_size,
		.was_read = generation_on_read,
		.server_time = generation_server_time,
		.pushed = generation_on_push,
		.due = generation_on_due,
		.now = all->loop->now,
		.unix_time = all->loop->unix_time,
		.random = random_next(&all->random),
		.seed = random_next(&all->random),
		.background_pause = BACKGROUND_PAUSE,
		.rules = &config->rules,
		.options = &g->collection_options,
		.pool = &all->pool,
		.large = all->large,
		.rooms = &all->rooms,
	};
	g->host.looked_up = generation_on_lookup;
	g->collection_options = (struct collection_options){
		.base_size = config->base_size,
		.segment_size = config->segment_size,
		.log_size = config->log_size,
		.table_size = config->table_size,
		.pack_size = config->packed_tables ? PACK_SIZE : 0,
		.cache = config->cache_memory / all->threads - fresh_limit(g),
		.result_max = result_max(config),
		.merges = config->merges,
		.lease_time = config->lease_time,
	};
	rooms_set_limit(&all->rooms, room_limit(g));
	g->host.lanes = lanes_create(&g->host.env, &machines);
	g->host.waiting = waiting_create(&g->host.env, all->pushes.board, config->max_waiting,
		g->host.calls_max, generation_tell);
}

/* Routes the calls of lanes and tasks through `fresh`. */
static void init_fresh(struct generation *g)
{
	g->fresh_job.job.run = generation_on_fresh;
	g->fresh = fresh_create(&(struct fresh_options){
		.env = &g->host.env,
		.call = generation_call_copied,
		.clock = generation_fresh_clock,
		.not_before = generation_fresh_not_before,
		.soon = generation_soon,
		.usable = generation_is_only_one,
		.slots = g->all->fresh_slots,
		.stats = &g->all->fresh,
		.limit = fresh_limit(g),
	});
	g->host.env.call = generation_fresh_call;
}

/* Routes the calls of lanes and tasks through `copies`. */
static void init_copies(struct generation *g)
{
	g->copies = copies_create(&(struct copies_options){
		.env = &g->host.env,
		.call = generation_call_server,
		.place = generation_place_copy,
		.name = generation_server_name,
		.started = generation_server_started,
		.clock = generation_unix_us,
		.arg = g,
		.servers = servers_count(g->servers),
		.timeout = COPIES_TIMEOUT,
	});
	g->host.env.call = generation_copies_call;
}

/* Routes the calls of lanes and tasks through `moves`. */
static void init_moving(struct generation *g)
{
	const struct settings *settings = g->settings;
	struct moving_calls *m = &g->moving;

	m->all = g->all;
	m->env = g->host.env;
	m->env.call = generation_send_moved;
	m->env.server_time = NULL;
	m->env.later = generation_call_moved_later;
	m->env.random = random_next(&g->all->random);
	m->moves = moves_create(&(struct moves_options){
		.env = &m->env,
		.place = generation_place,
		.arg = g->servers,
		.at = settings->move_at,
		.margin = (int64_t)settings->config.move_margin,
	});
	g->host.env.call = generation_move_call;
}

/* --- one generation --- */

struct generation *generation_create(struct generations *all, struct settings *settings)
{
	struct generation *g = xcalloc(1, sizeof(*g));

	g->all = all;
	g->settings = settings_share(settings);
	atomic_fetch_add(&all->fresh_slots->generations, 1);
	atomic_fetch_add(&settings->generations, 1);
	take_rule_counts(g);
	init_host(g);
	g->servers = servers_create(all->loop, all->resolver,
		(struct servers_rings){
			settings->ring, settings->former, settings->lost, settings->move_at },
		&all->options, &all->random, all->current ? all->current->servers : NULL);
	g->host.env.servers = servers_count(g->servers);
	servers_share(g->servers, &g->host.calls_max, ORDER_CALLS_MAX);
	if (settings->former)
		init_moving(g);
	if (settings->config.rules.copies)
		init_copies(g);
	if (settings->config.rules.fresh)
		init_fresh(g);
	return g;
}

static bool nothing_moves(const struct generation *g)
{
	return !g->moving.moves || moves_idle(g->moving.moves);
}

static bool is_unused(const struct generation *g)
{
	return g->users == 0 && lanes_idle(g->host.lanes) && waiting_idle(g->host.waiting) &&
		nothing_moves(g) && (!g->copies || copies_idle(g->copies));
}

static void free_generation(struct generation *g)
{
	copies_destroy(g->copies);
	if (g->moving.moves)
		moves_destroy(g->moving.moves);
	servers_free(g->servers);
	waiting_destroy(g->host.waiting);
	lanes_destroy(g->host.lanes);
	fresh_destroy(g->fresh);
	buf_free(&g->host.spare);
	drop_rule_counts(g);
	atomic_fetch_sub(&g->settings->generations, 1);
	atomic_fetch_sub(&g->all->fresh_slots->generations, 1);
	settings_release(g->settings);
	free(g);
}

/* --- counters --- */

static void add_stats(struct lanes_stats *sum, const struct generation *g)
{
	const struct lanes_stats *s = lanes_statistics(g->host.lanes);

#define LANES(name, ...) sum->name += s->name;
#include "measure/facts.def"
}

static void add_moves(struct moves_stats *sum, const struct generation *g)
{
	const struct moves_stats *s;

	if (!g->moving.moves)
		return;
	s = moves_statistics(g->moving.moves);
#define MOVES(name, metric, help, member) sum->member += s->member;
#include "measure/facts.def"
}

static void publish_moves(struct generations *all)
{
	struct moves_stats s = all->past.moves;
	const struct generation *g;

	add_moves(&s, all->current);
	TAILQ_FOREACH(g, &all->retired, link)
		add_moves(&s, g);
#define MOVES(name, metric, help, member) meter_set(all->meter, COUNT_##name, s.member);
#include "measure/facts.def"
}

static void add_copies(struct copies_stats *sum, const struct generation *g)
{
	struct copies_stats s;

	if (!g->copies)
		return;
	s = copies_statistics(g->copies);
#define COPIES(name, metric, help, member) sum->member += s.member;
#include "measure/facts.def"
	sum->waiting += s.waiting;
}

static void publish_copies(struct generations *all)
{
	uint64_t lost = meter_get(all->meter, COUNT_lost_sets);
	struct copies_stats s = all->past.copies;
	const struct generation *g;

	add_copies(&s, all->current);
	TAILQ_FOREACH(g, &all->retired, link)
		add_copies(&s, g);
	if (s.incomplete > lost)
		log_warn("%llu sets with two copies were not whole, and count as missing",
			(unsigned long long)(s.incomplete - lost));
#define COPIES(name, metric, help, member) meter_set(all->meter, COUNT_##name, s.member);
#include "measure/facts.def"
	meter_set(all->meter, COUNT_repairs_waiting, s.waiting);
}

/* Copies the counters of the lanes to the meter, where other threads may read them. */
static void publish_counts(struct generations *all)
{
	uint64_t incomplete = meter_get(all->meter, COUNT_incomplete_sets);
	size_t cache = machines_cache_memory(all->current->host.lanes);
	struct lanes_stats s = all->past.lanes;
	const struct generation *g;

	add_stats(&s, all->current);
	TAILQ_FOREACH(g, &all->retired, link) {
		add_stats(&s, g);
		cache += machines_cache_memory(g->host.lanes);
	}
	if (s.incomplete_sets > incomplete)
		log_warn("%llu sets have lost a part, and count as missing",
			(unsigned long long)(s.incomplete_sets - incomplete));
#define LANES(name, ...) meter_set(all->meter, COUNT_##name, s.name);
#include "measure/facts.def"
	meter_set(all->meter, COUNT_cache_bytes, cache + all->fresh.bytes);
	meter_set(all->meter, COUNT_waiting_clients, waiting_count(all->current->host.waiting));
}

static void publish_fresh(struct generations *all)
{
	meter_set(all->meter, COUNT_fresh_hits, all->fresh.hits);
	meter_set(all->meter, COUNT_fresh_shared, all->fresh.shared);
	meter_set(all->meter, COUNT_fresh_misses, all->fresh.misses);
	meter_set(all->meter, COUNT_fresh_bytes, all->fresh.bytes);
}

/* --- all generations --- */

static int generation_compare_times(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Marks the servers that are absent, for the metrics. Without copies, none is. */
static void mark_absent(struct generation *g)
{
	for (int i = 0; i < servers_count(g->servers); i++)
		servers_mark_absent(g->servers, i, g->copies && copies_is_absent(g->copies, i));
}

/*
 * Stamps are by our own clock, unless that differs too much from most of the servers' clocks: then
 * they are by the median of those.
 */
static void correct_clock(struct generation *g)
{
	enum { MOST_AHEAD_MS = 2000 };
	int64_t *times, ahead;
	uint64_t now = g->all->loop->now;
	int count = 0;

	times = xcalloc((size_t)servers_count(g->servers) + 1, sizeof(*times));
	for (int i = 0; i < servers_count(g->servers); i++) {
		const struct server *server = servers_get(g->servers, i);
		times[count] = atomic_load(&server->stats.clock_offset);
		count += times[count] != 0;
	}
	qsort(times, (size_t)count, sizeof(*times), generation_compare_times);
	ahead = count
		? times[count / 2] + (int64_t)now + 500 - (int64_t)(clock_us(CLOCK_REALTIME) / 1000)
		: 0;
	g->clock_ahead = llabs(ahead) > MOST_AHEAD_MS ? ahead : 0;
	free(times);
}

/* Once a second, for keys with two copies. */
static void look_at_servers(struct generation *g)
{
	enum { LOOK_MS = 1000 };
	uint64_t now = g->all->loop->now;

	if (now < g->looked + LOOK_MS)
		return;
	g->looked = now;
	correct_clock(g);
	if (g == g->all->current)
		mark_absent(g);
}

static void set_clock(struct generation *g)
{
	servers_turn(g->servers);
	if (g->copies)
		look_at_servers(g);
	g->host.env.now = g->all->loop->now;
	g->host.env.connects = g->all->connects;
	g->host.env.unix_time = g->all->loop->unix_time;
	if (!g->moving.moves)
		return;
	g->moving.env.now = g->host.env.now;
	g->moving.env.connects = g->host.env.connects;
	g->moving.env.unix_time = g->host.env.unix_time;
}

void generations_turn(struct generations *all)
{
	struct generation *g;

	set_clock(all->current);
	TAILQ_FOREACH(g, &all->retired, link)
		set_clock(g);
	publish_counts(all);
	if (all->current->moving.moves || !TAILQ_EMPTY(&all->retired))
		publish_moves(all);
	if (all->current->copies || !TAILQ_EMPTY(&all->retired))
		publish_copies(all);
	if (all->current->fresh || !TAILQ_EMPTY(&all->retired))
		publish_fresh(all);
}

/*
 * Background work does not report its end, so a timer checks for it. A later reload does not
 * delay the timer.
 */
static void set_retire_timer(struct generations *all)
{
	enum { LOOK_MS = 100 };

	if (!TAILQ_EMPTY(&all->retired) && !loop_is_queued(&all->retire))
		loop_after(all->loop, &all->retire, LOOK_MS);
}

static void generation_on_retire(struct loop_job *job)
{
	struct generations *all =
		(struct generations *)((char *)job - offsetof(struct generations, retire));
	struct generation *g, *next;

	for (g = TAILQ_FIRST(&all->retired); g; g = next) {
		next = TAILQ_NEXT(g, link);
		if (!is_unused(g))
			continue;
		TAILQ_REMOVE(&all->retired, g, link);
		add_stats(&all->past.lanes, g);
		add_moves(&all->past.moves, g);
		add_copies(&all->past.copies, g);
		all->past.copies.waiting = 0;
		servers_stop(g->servers, false);
		free_generation(g);
	}
	publish_moves(all);
	publish_copies(all);
	publish_fresh(all);
	set_retire_timer(all);
}

void generations_enter(struct generations *all, struct generation *g)
{
	struct generation *before = all->current;

	all->current = g;
	set_clock(g);
	mark_absent(g);
	if (before) {
		TAILQ_INSERT_TAIL(&all->retired, before, link);
		if (before->copies)
			copies_stop(before->copies);
		waiting_end(before->host.waiting);
	}
	set_retire_timer(all);
}

void generations_look_for_pushes(struct generations *all)
{
	waiting_look(all->current->host.waiting);
}

void generations_end_waits(struct generations *all)
{
	waiting_end(all->current->host.waiting);
}

bool generations_are_idle(const struct generations *all)
{
	const struct generation *g;

	TAILQ_FOREACH(g, &all->retired, link) {
		if (!lanes_idle(g->host.lanes) || !nothing_moves(g))
			return false;
	}
	return lanes_idle(all->current->host.lanes) && nothing_moves(all->current);
}

void generations_set_options(struct generations *all, const struct settings *settings)
{
	const struct config *config = &settings->config;

	all->options = (struct server_options){
		.connect_timeout = config->connect_timeout,
		.request_timeout = config->request_timeout,
		.retry_min = config->retry_min,
		.retry_max = config->retry_max > config->retry_min ? config->retry_max
								   : config->retry_min,
		.queue = config->server_queue,
		.value_max = config->max_value,
		.answer = &all->meter->answer,
		.connects = &all->connects,
		.place = part_key_place,
		.news = all->news,
		.tls = config->server_tls ? settings->tls : NULL,
	};
	_Static_assert((int)PART_ALL_PLACES <= (int)SERVER_PLACES, "a server looks up each place");
	snprintf(all->options.login, sizeof(all->options.login), "%s", config->server_login);
}

void generations_init(struct generations *all, struct names *names)
{
	TAILQ_INIT(&all->retired);
	all->resolver = resolver_create(all->loop, names);
	rooms_init(&all->rooms);
	all->retire.run = generation_on_retire;
}

/* Stops the servers. Calls that are pending until keys move are continued, and fail. */
static void stop_calls(struct generation *g)
{
	if (g->copies)
		copies_stop(g->copies);
	servers_stop(g->servers, true);
	g->moving.env.unix_time = g->settings->move_at;
}

/*
 * loop_finish() also runs the calls made by failed calls, and frees the clients that were
 * closed in the last turn.
 */
void generations_stop(struct generations *all, struct generation *next)
{
	struct generation *g;

	loop_forget(all->loop, &all->retire);
	if (next)
		TAILQ_INSERT_TAIL(&all->retired, next, link);
	stop_calls(all->current);
	TAILQ_FOREACH(g, &all->retired, link)
		stop_calls(g);
	loop_finish(all->loop);
}

void generations_fini(struct generations *all)
{
	struct generation *g;

	while ((g = TAILQ_FIRST(&all->retired))) {
		TAILQ_REMOVE(&all->retired, g, link);
		free_generation(g);
	}
	free_generation(all->current);
	resolver_destroy(all->resolver);
	pool_free(&all->pool);
}
