#include "world.h"

#include <stdarg.h>

#include "histories.h"
#include "lists.h"
#include "protocol/commands.h"
#include "stored_set.h"
#include "wording.h"

enum {
	STEPS = 160,
	EVENTS_MAX = 100000,
	ITEM_MAX = 1500,
	WIDE_ITEM_MAX = 60000,
	LONG_TIME = 180000, /* milliseconds */
	AHEAD = 100000      /* the same: difference of the clocks of servers */
};

/* Small and large tables; some are packed. A block has three members. */
static const struct collection_options options[] = {
	{ .base_size = 96,
		.segment_size = 120,
		.log_size = 96,
		.table_size = 120,
		.pack_size = 1,
		.cache = 4096,
		.merges = 2,
		.block = 24 },
	{ .base_size = 96,
		.segment_size = 120,
		.log_size = 48,
		.table_size = 60,
		.pack_size = 1,
		.cache = 3000,
		.merges = 2,
		.block = 24 },
	{ .base_size = 96,
		.segment_size = 120,
		.log_size = 320,
		.table_size = 120,
		.cache = 1 << 16,
		.merges = 2,
		.block = 24 },
};

/* The same for long elements. */
static const struct collection_options wide_options[] = {
	{ .base_size = 576,
		.segment_size = 720,
		.log_size = 576,
		.table_size = 720,
		.pack_size = 1,
		.cache = 1 << 16,
		.merges = 2,
		.block = 24 },
	{ .base_size = 576,
		.segment_size = 720,
		.log_size = 288,
		.table_size = 360,
		.pack_size = 1,
		.cache = 40000,
		.merges = 2,
		.block = 24 },
	{ .base_size = 576,
		.segment_size = 720,
		.log_size = 1920,
		.table_size = 720,
		.cache = 1 << 19,
		.merges = 2,
		.block = 24 },
};

const struct collection_options *world_sizes(uint64_t seed)
{
	const struct collection_options *list = wording_is_plain() ? options : wide_options;

	return &list[seed % (sizeof(options) / sizeof(*options))];
}

void world_fail(struct world *w, const char *what, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	histories_fail(&w->violation, w->detail, sizeof(w->detail), what, format, ap);
	va_end(ap);
}

uint64_t world_random(struct world *w, uint64_t below)
{
	return lan_random(&w->lan, below);
}

bool world_chance(struct world *w, unsigned percent)
{
	return world_random(w, 100) < percent;
}

uint64_t world_now(const struct world *w)
{
	return lan_ms(&w->lan);
}

/* --- faults --- */

/* Items may be lost: checks all stored sets. */
static void look(struct world *w)
{
	if (w->form)
		form_time(w);
	else
		check_time(w);
}

static void evict(struct world *w)
{
	struct memcached_item *item = lan_any_item(&w->lan);

	if (item)
		memcached_remove(item);
	w->evictions++;
	look(w);
}

static void restart_server(struct world *w)
{
	int server = (int)world_random(w, SIM_SERVERS);

	memcached_restart(&w->lan.servers[server]);
	w->evictions++;
	look(w);
	lan_restart(&w->lan, server);
}

static uint64_t evictions_of_1000(const struct world *w)
{
	return w->mutation == MUTATION_BLIND_EXPIRE ? 60 : 3;
}

/* Servers restart more often at first: while cas ids are small, new ones soon equal old ones. */
static void trouble(struct world *w, int step)
{
	int proxy = (int)world_random(w, SIM_PROXIES), client;
	uint64_t dice = world_random(w, 1000);

	if (dice < 12) {
		lan_break(w->proxies[proxy], (int)world_random(w, SIM_SERVERS));
	} else if (dice < 16) {
		proxy_kill(w, proxy);
		for (client = 0; client < SIM_CLIENTS; client++) {
			if (w->client_proxy[client] == proxy)
				w->client_proxy[client] = (int)world_random(w, SIM_PROXIES);
		}
	} else if (w->mutation == MUTATION_NO_MARGIN) {
		return; /* a missing part shows the mutation only if none was evicted */
	} else if (dice < 16 + evictions_of_1000(w)) {
		evict(w);
	} else if (dice < 16 + evictions_of_1000(w) +
			(step < STEPS / 4 || w->mutation == MUTATION_STALE_CAS ? 31 : 3)) {
		restart_server(w);
	}
}

/* --- a history --- */

static bool is_quiet(struct world *w)
{
	return lan_next(&w->lan) == UINT64_MAX;
}

static void arrive(struct world *w)
{
	lan_step(&w->lan);
	if (w->ended)
		pipeline_run(w);
}

/* No call is under way for a long time: its connection would have broken. */
static uint64_t time_that_passes(struct world *w)
{
	bool is_long = world_chance(w, 5);

	return world_random(w, is_long && (w->form || is_quiet(w)) ? LONG_TIME : 1500);
}

void world_settle(struct world *w)
{
	pipeline_run(w);
	for (int events = 0; !is_quiet(w) && !w->violation; events++) {
		arrive(w);
		if (events > EVENTS_MAX)
			world_fail(w, "it does not come to an end", "after %d events", events);
	}
}

/* When everything is settled, each proxy must read exactly the truth. */
static void final_reads(struct world *w)
{
	for (int i = 0; i < SIM_PROXIES; i++) {
		for (int key = 0; key < SIM_KEYS; key++) {
			clients_issue(w, w->proxies[i], 0, key, COMMAND_SMEMBERS);
			world_settle(w);
		}
		for (int list = 0; list < SIM_LISTS && !w->form; list++) {
			clients_issue(w, w->proxies[i], 0, list, COMMAND_LRANGE);
			world_settle(w);
		}
	}
	lists_end(w);
	if (w->form)
		dates_quiet(w);
	else
		lives_end(w);
}

static void tear_down(struct world *w)
{
	struct sim_op *op;

	pipeline_close(w, NULL);
	for (int i = 0; i < SIM_PROXIES; i++)
		proxy_free(w->proxies[i]);
	while ((op = TAILQ_FIRST(&w->ops)))
		proxy_forget_op(op);
	lan_fini(&w->lan);
	truth_fini(&w->truth);
	lists_fini(w);
	stored_set_fini(w);
}

void world_run(struct world *w, const struct form *form, uint64_t seed, enum mutation mutation,
	bool verbose)
{
	memset(w, 0, sizeof(*w));
	w->form = form;
	w->mutation = mutation;
	wording_begin(form || mutation == MUTATION_FENCE || mutation == MUTATION_TABLE_BYTE ||
			(seed % 4 != 3 && mutation != MUTATION_NARROW &&
				mutation != MUTATION_LEASE_NARROW),
		"^0m0", "s", "i0", "l");
	w->options = world_sizes(seed);
	lan_init(&w->lan, &network_hooks, w, SIM_SERVERS,
		wording_is_plain() ? ITEM_MAX : WIDE_ITEM_MAX, seed);
	w->lan.verbose = verbose;
	w->skewed = !form && seed % 4 == 0;
	w->stray = !form && seed % 6 == 5 ? (int)(seed % SIM_PROXIES) : -1;
	for (int i = 0; w->skewed && i < SIM_SERVERS; i++)
		w->lan.servers[i].ahead = (uint64_t)(1 + i) * AHEAD;
	dates_init(w, seed);
	if (form)
		w->rules = (struct rules){ .collections = &form->rule, .collection_count = 1 };
	TAILQ_INIT(&w->ops);
	truth_init(&w->truth);
	lists_init(w);
	for (int i = 0; i < SIM_PROXIES; i++)
		w->proxies[i] = proxy_create(w, i);
	for (int i = 0; i < SIM_CLIENTS; i++)
		w->client_proxy[i] = i % SIM_PROXIES;
	pipeline_init(w);
	if (!form)
		lives_init(w, seed);
	expiring_init(w, seed);
	for (int step = 0; step < STEPS && !w->violation; step++) {
		clients_act(w);
		for (uint64_t n = world_random(w, 27); n > 0 && !is_quiet(w) && !w->violation; n--)
			arrive(w);
		if (is_quiet(w) && !w->violation)
			dates_quiet(w);
		trouble(w, step);
		pipeline_run(w);
		if (world_chance(w, w->mutation == MUTATION_NO_MARGIN ? 20 : 3))
			w->lan.now += time_that_passes(w) * 1000;
		expiring_act(w);
	}
	world_settle(w);
	if (!w->violation)
		final_reads(w);
	tear_down(w);
}
