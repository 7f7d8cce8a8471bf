#include "worker/generation.h"

#include <stdlib.h>

#include "admin.h"
#include "client/reply.h"
#include "client/turns.h"
#include "collection/machines.h"
#include "util/alloc.h"
#include "util/random.h"

static void send_call(struct env *env, const struct call *call, struct waiter *waiter)
{
	servers_call(((struct generation *)env)->servers, call, waiter);
}

static void call_later(struct env *env, struct waiter *waiter, unsigned ms)
{
	worker_later(((struct generation *)env)->worker, waiter, ms);
}

static bool denies(const struct host *host, enum command_id command)
{
	const struct generation *g = (const struct generation *)host;

	return command_set_has(&worker_config(g->worker)->deny, command);
}

static void start_inside(const struct request *request, void *owner)
{
	admin_start(owner, request);
}

static void note_size(struct env *env, struct slice key, uint64_t members, uint64_t bytes)
{
	notes_add_large(&((struct generation *)env)->worker->meter.notes, key, members, bytes, env->unix_time);
}

/* A share of a server's queue, so that one client leaves room for others. */
static size_t calls_max(const struct config *config)
{
	enum { SHARE = 4 };
	size_t share = config->server_queue / SHARE;

	return share < ORDER_CALLS_MAX ? share : ORDER_CALLS_MAX;
}

/* `make check-slow` has another. */
#ifndef BACKGROUND_PAUSE
#define BACKGROUND_PAUSE 0
#endif

static void init_host(struct generation *g)
{
	const struct config *config = &g->settings->config;
	struct worker *w = g->worker;

	g->host = (struct host){
		.env = {
			.call = send_call,
			.later = call_later,
			.measured = note_size,
			.now = w->loop.now,
			.unix_time = w->loop.unix_time,
			.random = random_next(&w->random),
			.seed = random_next(&w->random),
			.servers = ring_count(g->settings->ring),
			.background_pause = BACKGROUND_PAUSE,
			.rules = &config->rules,
			.options = &g->collection_options,
			.pool = &w->pool,
			.large = w->daemon->large,
		},
		.begin = client_task_begin,
		.reply = client_task_reply,
		.share = client_task_share,
		.room = client_task_room,
		.hold = client_task_hold,
		.use = client_task_use,
		.denies = denies,
		.start_inside = start_inside,
		.done = client_task_done,
		.calls_max = calls_max(config),
	};
	g->collection_options = (struct collection_options){
		.base_size = config->base_size,
		.segment_size = config->segment_size,
		.log_size = config->log_size,
		.table_size = config->table_size,
		.cache = config->cache_memory / w->daemon->threads,
		.result_max = config->max_result,
		.merges = config->merges,
	};
	g->host.lanes = lanes_create(&g->host.env, &machines);
}

struct generation *generation_create(struct worker *w, struct settings *settings, const struct generation *before)
{
	struct generation *g = xcalloc(1, sizeof(*g));

	g->worker = w;
	g->settings = settings_share(settings);
	init_host(g);
	g->servers = servers_create(
		&w->loop, w->resolver, settings->ring, &w->server_options, &w->random, before ? before->servers : NULL);
	client_turns_init(g);
	return g;
}

void generation_retire(struct generation *g)
{
	client_turns_fini(g);
}

bool generation_is_idle(const struct generation *g)
{
	return g->clients == 0 && g->tasks == 0 && lanes_idle(g->host.lanes);
}

void generation_destroy(struct generation *g)
{
	client_turns_fini(g);
	servers_free(g->servers);
	lanes_destroy(g->host.lanes);
	buf_free(&g->host.spare);
	settings_release(g->settings);
	free(g);
}
