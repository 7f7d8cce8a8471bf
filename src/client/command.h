/*
 * The commands about the proxy or the connection, for clients. The reply to `stats` waits for the statistics of the servers, if they are
 * too old: see worker/poll.h.
 */
#ifndef CLIENT_COMMAND_H
#define CLIENT_COMMAND_H

#include "client/common.h"
#include "command/task.h"
#include "protocol/binary.h"

struct client;

/* A task for a PROXY_COMMAND. */
struct client_command {
	struct task task;
	struct clients_wait wait;
	struct clients *clients;
	void (*reply)(struct client_command *command, struct slice text); /* adds the reply to that of the task */
	struct binary_head head;                                          /* of a binary request */
};

/* Carries out a PROXY_COMMAND: `reply` gets the text of its reply, now or later. `head` is that of a binary request, or NULL. */
void client_start_command(struct client *client, const struct request *request, const struct binary_head *head,
	void (*reply)(struct client_command *command, struct slice text));

/* For client_start_command: the reply is the text. */
void client_reply_text(struct client_command *command, struct slice text);

#endif
