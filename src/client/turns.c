#include "client/turns.h"

#include <assert.h>
#include <stdlib.h>

#include "client/window.h"
#include "util/alloc.h"
#include "worker/generation.h"

/* Of one server. */
struct server_turns {
	struct turns turns;
	struct loop_job job; /* gives the next turn */
	struct generation *generation;
	int server;
};

static struct client *client_of(struct turn *turn)
{
	return (struct client *)((char *)turn - offsetof(struct client, turn));
}

/* One client at a time: it sends its requests before this runs again, so they count for the next one. */
static void give_turn(struct loop_job *job)
{
	struct server_turns *at = (struct server_turns *)((char *)job - offsetof(struct server_turns, job));
	struct client *c;

	if (turns_are_empty(&at->turns))
		return;
	if (!servers_have_room(at->generation->servers, at->server)) {
		servers_await_room(at->generation->servers, at->server, &at->job);
		return;
	}
	c = client_of(turns_next(&at->turns));
	c->turn_at = at;
	/* Nobody else would notice that it has gone, and what it asks for would take the time of others. */
	if (stream_is_broken(&c->stream))
		client_close(c);
	else
		client_resume(c);
	loop_later(&at->generation->worker->loop, &at->job);
}

void client_turns_init(struct generation *g)
{
	int count = servers_count(g->servers);

	g->turns = xcalloc((size_t)count, sizeof(*g->turns));
	for (int i = 0; i < count; i++) {
		g->turns[i].generation = g;
		g->turns[i].server = i;
		g->turns[i].job.run = give_turn;
		turns_init(&g->turns[i].turns);
	}
}

void client_turns_fini(struct generation *g)
{
	for (int i = 0; g->turns && i < servers_count(g->servers); i++) {
		assert(turns_are_empty(&g->turns[i].turns));
		loop_forget(&g->worker->loop, &g->turns[i].job);
		servers_forget_room(g->servers, i, &g->turns[i].job);
	}
	free(g->turns);
	g->turns = NULL;
}

static void wait_at(struct client *c, struct server_turns *at)
{
	loop_later(&c->worker->loop, &at->job);
	turns_wait(&at->turns, &c->turn);
	c->turn_at = at;
}

static bool has_turn(const struct client *c)
{
	return c->turn_at && c->turn.credit > 0;
}

/* A client that has a turn at one server goes ahead of those that wait at another, so no two wait for each other. */
static bool must_wait_at(const struct client *c, const struct server_turns *at)
{
	if (has_turn(c) && at == c->turn_at)
		return false;
	return !servers_have_room(at->generation->servers, at->server) ||
		(!has_turn(c) && !turns_are_empty(&at->turns));
}

/* Those of the server whose value is read; NULL if the key is a command that reads no value. */
static struct server_turns *turns_of(struct generation *g, struct slice key)
{
	key = command_key_item(&g->host.env.rules->commands, key);
	return key.n ? &g->turns[servers_index(g->servers, key)] : NULL;
}

/* Each value is expected to have `size` bytes. */
static bool must_wait(struct client *c, const struct request *request, uint64_t size)
{
	size_t keys = request->keys ? request->keys : 1;
	struct slice rest = request->rest, key = request->key;

	/* A base64 key is looked for at the server of its text: it takes its turn, though maybe not where it is. */
	for (size_t i = 0; i < keys && i < ORDER_KEYS_FIRST; i++) {
		struct server_turns *at = turns_of(c->generation, key);
		if (at && must_wait_at(c, at)) {
			wait_at(c, at);
			return true;
		}
		key = slice_token(&rest);
	}
	if (has_turn(c))
		turn_charge(&c->turn, size * (keys < ORDER_KEYS_FIRST ? keys : ORDER_KEYS_FIRST));
	else
		turn_free_of_charge(&c->turn);
	return false;
}

bool client_turns_must_wait(struct client *c, const struct request *request)
{
	uint32_t size = window_expected(c);

	return size && command_reads_values(request->command) && must_wait(c, request, size);
}

void client_turns_end(struct client *c)
{
	if (!c->turn.waits)
		c->turn_at = NULL;
}

void client_turns_leave(struct client *c)
{
	if (c->turn.waits)
		turns_leave(&c->turn_at->turns, &c->turn);
	c->turn_at = NULL;
}
