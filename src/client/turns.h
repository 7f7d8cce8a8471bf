/*
 * Clients that request large values take turns at each server, see util/turns.h. A request that
 * must wait for its turn stays unparsed, so the order of the client's requests does not change.
 * About SERVER_ROOM bytes are in flight from a server, and a small request of another client is
 * delayed by no more than that.
 *
 * Clients that send large requests take turns, too. So no more than about SERVER_ROOM bytes of
 * them are queued for a server that is slow; all others remain in the input buffers of their
 * clients, where they count for client_memory.
 *
 * Clients whose requests make servers rewrite much also take turns, for example an lset in the
 * middle of a large list. The bytes of a rewrite are known only afterwards. So they count for
 * the client's next request, which is delayed while other clients are queued, or while the
 * server has no room.
 *
 * Turns belong to the generation in which requests begin. In a former generation no request
 * begins.
 */
#ifndef CLIENT_TURNS_H
#define CLIENT_TURNS_H

#include "client/client.h"

/*
 * Sets clients->turns, for the servers of clients->generation. `take` is called for a client
 * whose turn it is: it sends its requests, or is closed, before the next client is taken.
 */
void client_turns_open(struct clients *clients, void (*take)(struct client *client));
/* Requires that no client has a turn or waits for one. */
void client_turns_close(struct clients *clients);

/*
 * Returns whether a request must wait for a turn. If so, queues the client, which then has
 * PAUSE_TURN.
 */
bool client_turn_must_wait(struct client *client, const struct request *request);

/* Ends the client's turn, unless it waits for another one. */
static inline void client_turn_end(struct client *client)
{
	if (!client->turn.turn.waits)
		client->turn.at = NULL;
}

/*
 * Delays the client's next requests until it has a slice of work, see net/work.h. It has
 * PAUSE_TURN until then.
 */
void client_turn_give_way(struct client *client);

void client_turn_open(struct client *client);
/* Removes a closing client from all queues. */
void client_turn_close(struct client *client);

/*
 * Removes the client from all queues: it was closed, reads no more requests, or moves to
 * another generation.
 */
void client_turn_leave(struct client *client);

#endif
