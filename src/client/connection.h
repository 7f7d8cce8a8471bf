/*
 * A client's connection. Replies are in the order of the requests.
 *
 *     on_data -> take_request -> carry_out (makes a task) -> reply.c: begin -> reply -> done -> client_settle -> on_written
 *
 * Tasks are queued in the order of their requests. The first one writes to the connection's buffer. Each other task writes to a
 * buffer of its own, task.spill, which is moved to the connection's buffer when the task becomes the first.
 */
#ifndef CLIENT_CONNECTION_H
#define CLIENT_CONNECTION_H

#include <stdbool.h>

struct client;
struct clients;
struct tls;

/* As clients_open. */
void client_open(struct clients *clients, int fd, struct tls *tls, bool is_new);

/* Closes now. The client's tasks continue, but their replies are discarded. The client is freed at the end of the turn. */
void client_close(struct client *client);

/* Replies with an error to the request that is incomplete, and drains the client. */
void client_refuse(struct client *client, const char *error);

/* Stops reading, and closes when all requests are answered: at once, if they are. */
void client_drain(struct client *client);

/* There is a new generation: the client's next request begins in it, when all earlier ones are answered. */
void client_renew(struct client *client);

/* The client waits for its turn no longer: the request that waits is carried out. For client_turns_open. */
void client_take_turn(struct client *client);

/*
 * The account of the client has changed in this turn: weighs the client, and does what follows from its tasks and replies. A task that
 * waits for room goes on, the client's requests are carried out again after a pause, or it is closed, or handed to another worker.
 */
void client_settle(struct client *client);

#endif
