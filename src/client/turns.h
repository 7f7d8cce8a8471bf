/*
 * Clients that ask for large values take turns at each server, as command/turns.h says. A request that must wait for its turn stays
 * unread, so the order of the client's requests does not change. All that is on the way from a server is about SERVER_ROOM
 * bytes, and another client's small request waits for no more than that.
 */
#ifndef CLIENT_TURNS_H
#define CLIENT_TURNS_H

#include "client/client.h"

struct generation;

void client_turns_init(struct generation *generation);
/* No client may wait for a turn. Does nothing if it was called before. */
void client_turns_fini(struct generation *generation);

/* Whether this request must wait for a turn. If so, the client stands in line, and client_resume is called when its turn comes. */
bool client_turns_must_wait(struct client *client, const struct request *request);

/* The client's turn has passed. */
void client_turns_end(struct client *client);

/* The client waits no longer: it was closed, or reads no more requests. */
void client_turns_leave(struct client *client);

#endif
