#include "client/turns.h"

#include <assert.h>
#include <stdlib.h>

#include "client/state.h"
#include "util/alloc.h"

enum {
	TURN_BYTES = 1 << 20,
	WRITES = 16 << 10,   /* Bytes of a request for which a client takes turns. */
	REWRITTEN = 64 << 10 /* Bytes of rewrites for which a client takes turns. */
};

/* The turns of one server. */
struct server_turns {
	struct turns turns;
	struct loop_job job; /* Grants the next turn. */
	struct loop *loop;
	struct servers *servers;
	int server;
	void (*take)(struct client *client);
};

/*
 * Takes one client at a time: it sends its requests before this runs again, so they count for
 * the next client.
 */
static void turns_on_turn(struct loop_job *job)
{
	struct server_turns *at =
		(struct server_turns *)((char *)job - offsetof(struct server_turns, job));
	struct client *c;

	if (turns_are_empty(&at->turns))
		return;
	if (!servers_have_room(at->servers, at->server)) {
		servers_await_room(at->servers, at->server, &at->job);
		return;
	}
	c = (struct client *)((char *)turns_next(&at->turns) - offsetof(struct client, turn.turn));
	c->turn.at = at;
	at->take(c);
	loop_later(at->loop, &at->job);
}

void client_turns_open(struct clients *all, void (*take)(struct client *client))
{
	struct servers *servers = all->generation->servers;
	int count = servers_count(servers);

	all->turns = xcalloc((size_t)count, sizeof(*all->turns));
	for (int i = 0; i < count; i++) {
		all->turns[i] = (struct server_turns){ .job.run = turns_on_turn,
			.loop = all->loop,
			.servers = servers,
			.server = i,
			.take = take };
		turns_init(&all->turns[i].turns, TURN_BYTES);
	}
}

void client_turns_close(struct clients *all)
{
	struct servers *servers = all->generation->servers;

	for (int i = 0; i < servers_count(servers); i++) {
		assert(turns_are_empty(&all->turns[i].turns));
		loop_forget(all->loop, &all->turns[i].job);
		servers_forget_room(servers, i, &all->turns[i].job);
	}
	free(all->turns);
	all->turns = NULL;
}

static void wait_at(struct client *c, struct server_turns *at)
{
	loop_later(at->loop, &at->job);
	turns_wait(&at->turns, &c->turn.turn);
	c->turn.at = at;
	client_pause(c, PAUSE_TURN);
}

static bool has_turn(const struct client *c)
{
	return c->turn.at && c->turn.turn.credit > 0;
}

/*
 * A client with a turn at one server precedes clients that are queued at another, so no two
 * wait for each other.
 */
static bool must_wait_at(const struct client *c, const struct server_turns *at)
{
	if (has_turn(c) && at == c->turn.at)
		return false;
	return !servers_have_room(at->servers, at->server) ||
		(!has_turn(c) && !turns_are_empty(&at->turns));
}

/* NULL if there is no key. */
static struct server_turns *turns_of_item(struct clients *all, struct slice key)
{
	return key.n ? &all->turns[servers_index(all->generation->servers, key)] : NULL;
}

/* The same for a key that is a command. Not inline, since other keys need no memory. */
static __attribute__((noinline)) struct server_turns *turns_of_command(
	struct clients *all, const struct command_keys *keys, struct slice key)
{
	char room[KEY_MAX];

	return turns_of_item(all, command_key_item(keys, key, room));
}

/*
 * Returns the turns at the server whose value is read; NULL if the key is a command that reads
 * no value.
 */
static struct server_turns *turns_of(struct clients *all, struct slice key)
{
	const struct command_keys *keys = &all->generation->host.env.rules->commands;

	return command_key_is(keys, key) ? turns_of_command(all, keys, key)
					 : turns_of_item(all, key);
}

/*
 * Each value is expected to have `size` bytes, or the request has so many. Bytes that servers
 * wrote for the client's earlier rewrites count, too.
 */
static bool must_await_turn(struct client *c, const struct request *request, uint64_t size)
{
	size_t keys = request->keys ? request->keys : 1;
	struct slice rest = request->rest, key = request->key;
	bool counts = false;

	/*
	 * A base64 key is looked up by its text: the turn may then be at another server than
	 * the item.
	 */
	for (size_t i = 0; i < keys && i < ORDER_KEYS_FIRST; i++) {
		struct server_turns *at = turns_of(c->clients, key);
		if (at && must_wait_at(c, at)) {
			wait_at(c, at);
			return true;
		}
		counts = counts || at;
		key = slice_token(&rest);
	}
	size *= keys < ORDER_KEYS_FIRST ? keys : ORDER_KEYS_FIRST;
	if (counts) {
		size += c->account.rewritten;
		c->account.rewritten = 0;
	}
	if (has_turn(c))
		turn_charge(&c->turn.turn, size);
	else
		turn_free_of_charge(&c->turn.turn);
	return false;
}

bool client_turn_must_wait(struct client *c, const struct request *request)
{
	size_t size = request->command->reads_values ? window_expected(c) : 0;

	if (size == 0 && request->consumed > WRITES)
		size = request->consumed;
	return (size || c->account.rewritten > REWRITTEN) && must_await_turn(c, request, size);
}

/*
 * Resumes a client. The slice belongs to the client: the requests that it has sent are carried
 * out within it.
 */
static void turns_on_payer_turn(struct loop_job *job)
{
	struct client *c = (struct client *)((char *)job - offsetof(struct client, turn.go_on));

	c->clients->turns->take(c);
	stream_kick(&c->stream);
	stream_read_more(&c->stream);
}

void client_turn_give_way(struct client *c)
{
	work_add(&c->clients->loop->work, &c->turn.payer, &c->turn.go_on);
	client_pause(c, PAUSE_TURN);
}

void client_turn_open(struct client *c)
{
	payer_init(&c->turn.payer);
	c->account.payer = &c->turn.payer;
	c->turn.go_on.run = turns_on_payer_turn;
}

void client_turn_close(struct client *c)
{
	client_turn_leave(c);
	payer_leave(&c->turn.payer, &c->clients->loop->work);
}

void client_turn_leave(struct client *c)
{
	loop_forget(c->clients->loop, &c->turn.go_on);
	if (c->turn.turn.waits)
		turns_leave(&c->turn.at->turns, &c->turn.turn);
	c->turn.at = NULL;
}
