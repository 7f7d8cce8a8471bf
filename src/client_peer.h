/* Who a client is, for the log; and who may connect to a Unix socket. */
#ifndef CLIENT_PEER_H
#define CLIENT_PEER_H

#include <arpa/inet.h>

#include "client.h"

enum { CLIENT_PEER = INET6_ADDRSTRLEN + 16 };

/* Writes "address:port", or what else there is to say. */
void client_peer(const struct client *client, char name[static CLIENT_PEER]);

/*
 * Whether the peer of an accepted socket may connect: always on TCP; on a Unix socket, if socket_users names any, one of these
 * users, the daemon's own and root. Otherwise the peer gets an error line, and the socket is closed.
 */
bool client_peer_admit(const struct config *config, int fd);

#endif
