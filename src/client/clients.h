/*
 * The clients of a worker: the public interface of this room. A worker has one struct clients.
 * Clients depend on the layers above only through this file. All functions must be called in
 * the worker's thread, unless noted otherwise.
 *
 *     memory      the clients of the daemon share client_memory; above it the largest are closed
 *     time        a client is closed if it is idle, does not read its replies, or leaves a request
 *                 incomplete
 */
#ifndef CLIENT_CLIENTS_H
#define CLIENT_CLIENTS_H

#include "client/common.h"
#include "command/host.h"

/* The functions of struct host for tasks of clients. generations.arg must be the clients. */
extern const struct host clients_functions;

/* Initializes `clients`. The owner has set the members before `config`; the others are zero. */
void clients_init(
	struct clients *clients, const struct config *config, struct generation *generation);

/* Requires that no client is left. The generation must still exist. */
void clients_fini(struct clients *clients);

/*
 * Processes all clients whose accounts have changed: updates their rank, and resumes or closes
 * them. Must be called before and after the writes of each turn of the loop.
 */
void clients_end_turn(struct clients *clients);

/* Applies the limits of this configuration, which is borrowed until the next call. */
void clients_set_config(struct clients *clients, const struct config *config);

/*
 * Sets the generation of new requests. A client changes over when all its earlier requests are
 * answered.
 */
void clients_set_generation(struct clients *clients, struct generation *generation);

/*
 * Takes ownership of a client's socket and its TLS session or NULL. A new client must
 * authenticate if users are configured; a client that is not new was handed over by another
 * worker.
 */
void clients_open(struct clients *clients, int fd, struct tls *tls, bool is_new);

/* Closes idle clients now, and the others when their requests are answered. */
void clients_drain(struct clients *clients);

/* Closes all clients now. */
void clients_close(struct clients *clients);

/*
 * Closes clients until the daemon's total is within client_memory, or the largest client
 * belongs to another worker.
 */
void clients_reclaim(struct clients *clients);

/*
 * Closes a client to make room for a new one: the one that has been unauthenticated longest, or
 * with replace_idle the one that has been idle longest. Returns false if there is none.
 */
bool clients_replace(struct clients *clients);

/*
 * clients_oldest returns how soon a client would be closed for a new one, a lower value meaning
 * sooner: first clients that are not authenticated, then the ones that have been idle longest.
 * clients_have_stranger returns whether a client is not authenticated. Both may be called from
 * any thread.
 */
uint64_t clients_oldest(const struct clients *clients);
bool clients_have_stranger(const struct clients *clients);

/*
 * Hands over every second client that was busy since the last clients_watch to the worker `to`,
 * at most `most` clients, each once it is quiet.
 */
void clients_hand_over(struct clients *clients, void *to, unsigned most);
void clients_watch(struct clients *clients);

/*
 * Returns whether the peer of an accepted socket may connect. Always true on TCP. On a Unix
 * socket with socket_users, true for these users, the daemon's own user and root. Otherwise
 * sends an error line, and closes the socket.
 */
bool clients_admit(const struct config *config, int fd);

#endif
