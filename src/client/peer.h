/* Who a client is, for the log; and who may connect to a Unix socket. */
#ifndef CLIENT_PEER_H
#define CLIENT_PEER_H

#include <arpa/inet.h>

#include "client/client.h"
#include "util/log.h"

enum { CLIENT_PEER = INET6_ADDRSTRLEN + 16 };

/* Writes "address:port", "unix" or "unknown". */
void client_peer(const struct client *client, char name[static CLIENT_PEER]);

/* Logs, for information, what happened to a client: a text. */
#define client_log(client, what) \
	do { \
		char name_[CLIENT_PEER] = ""; \
		if (log_level() >= LOG_LEVEL_INFO) \
			client_peer((client), name_); \
		log_info("client %s: %s", name_, (what)); \
	} while (0)

/*
 * Whether the peer of an accepted socket may connect: always on TCP; on a Unix socket, if socket_users names any, one of these
 * users, the daemon's own and root. Otherwise the peer gets an error line, and the socket is closed.
 */
bool client_peer_admit(const struct config *config, int fd);

#endif
