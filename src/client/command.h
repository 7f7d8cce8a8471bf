/*
 * The commands about the proxy or the connection, for clients. The reply to `stats` is delayed
 * while the statistics of the servers are too old: see worker/poll.h.
 */
#ifndef CLIENT_COMMAND_H
#define CLIENT_COMMAND_H

struct client;
struct request;

/* Carries out a PROXY_COMMAND, now or later. */
void client_start_command(struct client *client, const struct request *request);

/* Starts any request. */
void client_start(struct client *client, struct request *request);

#endif
