/* All servers, as one worker sees them: a connection to each, and the ring that says which holds a key. */
#ifndef UPSTREAM_SERVERS_H
#define UPSTREAM_SERVERS_H

#include "upstream/ring.h"
#include "upstream/server.h"

struct servers;

/* `ring`, `options` and `random` are borrowed until the end. */
struct servers *servers_create(
	struct loop *loop, const struct ring *ring, const struct server_options *options, uint64_t *random);
/*
 * The end, in three steps: calls under way get their errors now, and so does all that is called from then on, at the latest in
 * servers_drain.
 */
void servers_stop(struct servers *servers);
void servers_drain(struct servers *servers);
void servers_free(struct servers *servers);

/* Connects to all; `settled` is called once, when each first attempt has ended well or badly. */
void servers_start(struct servers *servers, void (*settled)(void *arg), void *arg);

/* Sends a call to the server of its key, or to the one it names. */
void servers_call(struct servers *servers, const struct call *call, struct waiter *waiter);

/* How many, and one of them, for what other threads may read: its name and its statistics. */
int servers_count(const struct servers *servers);
const struct server *servers_get(const struct servers *servers, int index);

#endif
