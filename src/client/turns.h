/*
 * Clients that ask for large values take turns at each server, as util/turns.h says. A request that must wait for its turn stays
 * unread, so the order of the client's requests does not change. All that is on the way from a server is about SERVER_ROOM
 * bytes, and another client's small request waits for no more than that.
 *
 * Clients whose requests make servers rewrite much take turns, too: an lset in the middle of a large list does. The bytes of a
 * rewrite are known only afterwards. So they count for the client's next request, which waits while others stand in line, or while
 * the server has no room.
 *
 * Turns are of the generation in which requests begin. In a former one no request begins.
 */
#ifndef CLIENT_TURNS_H
#define CLIENT_TURNS_H

#include "client/client.h"

/*
 * Sets clients->turns, for the servers of clients->generation. A client whose turn comes is given to `take`: it sends its requests,
 * or is closed, before the next one is.
 */
void client_turns_open(struct clients *clients, void (*take)(struct client *client));
/* No client may have a turn or wait for one. */
void client_turns_close(struct clients *clients);

/* Whether a request must wait for a turn. If so, queues the client, which then has PAUSE_TURN. */
bool client_turn_must_wait(struct client *client, const struct request *request);

/* The client's turn has passed, unless it waits for another one. */
static inline void client_turn_end(struct client *client)
{
	if (!client->turn.turn.waits)
		client->turn.at = NULL;
}

/* The client's next requests wait until it has a slice of work, as net/work.h says: it has PAUSE_TURN until then. */
void client_turn_give_way(struct client *client);

void client_turn_open(struct client *client);
/* The client goes: it waits for nothing. */
void client_turn_close(struct client *client);

/* Removes the client from all queues: it was closed, reads no more requests, or moves to another generation. */
void client_turn_leave(struct client *client);

#endif
