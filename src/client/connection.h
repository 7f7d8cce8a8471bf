/*
 * A client's connection. Replies are sent in the order of the requests.
 *
 *     on_data -> take_request -> carry_out (makes a task)
 *             -> reply.c: begin -> reply -> done -> client_end_turn -> on_written
 *
 * Tasks are queued in the order of their requests. The first task writes to the connection's
 * buffer. Each other task writes to its own buffer, task.spill, which is moved to the
 * connection's buffer when the task becomes the first.
 */
#ifndef CLIENT_CONNECTION_H
#define CLIENT_CONNECTION_H

#include <stdbool.h>

struct client;
struct clients;
struct tls;

/* Implements clients_open. */
void client_open(struct clients *clients, int fd, struct tls *tls, bool is_new);

/*
 * Closes now. The client's tasks continue, but their replies are discarded. The client is freed
 * at the end of the turn.
 */
void client_close(struct client *client);

/*
 * Sends an error for the incomplete request, unless the protocol does not allow it, and drains
 * the client.
 */
void client_refuse(struct client *client, const char *error);

/* Stops reading, and closes the client when all requests are answered, or at once if they are. */
void client_drain(struct client *client);

/*
 * Must be called for a new generation: the client's next request begins in it, when all earlier
 * ones are answered.
 */
void client_renew(struct client *client);

/* Carries out the pending request when it is the client's turn. For client_turns_open. */
void client_take_turn(struct client *client);

/*
 * Processes a client whose account has changed in this turn: updates its rank, and handles its
 * tasks and replies. Resumes a task that waits for room, carries out requests again after a
 * pause, closes the client, or hands it over to another worker.
 */
void client_end_turn(struct client *client);

#endif
