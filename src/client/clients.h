/*
 * The clients of a worker: the door of this room. A worker has one struct clients, and a client knows nothing of the world above but
 * what this says. All functions are for the worker's thread, unless they say otherwise.
 *
 *     memory      all clients of the daemon together take client_memory; above it those that take most are closed
 *     time        a client is closed if it leaves a request incomplete, does not take its replies, or is idle
 */
#ifndef CLIENT_CLIENTS_H
#define CLIENT_CLIENTS_H

#include "client/common.h"
#include "command/host.h"

/* The functions of struct host for tasks of clients. generations.arg must be the clients. */
extern const struct host clients_functions;

/* The owner has set the members before `config` in `clients`. The rest is zero. */
void clients_init(struct clients *clients, const struct config *config, struct generation *generation);

/* Requires that no client is left. The generation exists still. */
void clients_fini(struct clients *clients);

/*
 * Looks at all clients whose accounts have changed: weighs them, lets them go on, or closes them. To be called before and after the
 * writes of each turn of the loop.
 */
void clients_settle(struct clients *clients);

/* Limits are those of this configuration from now on. It is borrowed until the next one. */
void clients_set_config(struct clients *clients, const struct config *config);

/* Requests begin in this generation from now on: each client's next one, when all its earlier ones are answered. */
void clients_set_generation(struct clients *clients, struct generation *generation);

/*
 * Takes the socket of a client and its TLS session or NULL. A new client must authenticate, if users are configured; another one comes
 * from another worker.
 */
void clients_open(struct clients *clients, int fd, struct tls *tls, bool is_new);

/* Closes idle clients now, and the others when their requests are answered. */
void clients_drain(struct clients *clients);

/* Closes all clients now. */
void clients_close(struct clients *clients);

/* Closes clients until all of the daemon take no more than client_memory, or the largest one is another worker's. */
void clients_reclaim(struct clients *clients);

/*
 * Closes a client, so that a new one has its place: the one that waits longest to be authenticated, or with replace_idle the one that is
 * idle longest. Gives false if there is none.
 */
bool clients_replace(struct clients *clients);

/*
 * How near a client is to losing its place to a new one: less is nearer. First come those that are not authenticated, then those that
 * have been silent longest. The other one: whether a client is not authenticated. From any thread.
 */
uint64_t clients_oldest(const struct clients *clients);
bool clients_have_stranger(const struct clients *clients);

/* Hands every second client that was busy since the last clients_watch to the worker `to`: `most` of them, each once it is quiet. */
void clients_hand_over(struct clients *clients, void *to, unsigned most);
void clients_watch(struct clients *clients);

/*
 * Whether the peer of an accepted socket may connect: always on TCP; on a Unix socket, if socket_users names any, one of these
 * users, the daemon's own and root. Otherwise the peer gets an error line, and the socket is closed.
 */
bool clients_admit(const struct config *config, int fd);

#endif
