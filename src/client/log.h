/* Log lines about a client. */
#ifndef CLIENT_LOG_H
#define CLIENT_LOG_H

#include <netinet/in.h>

#include "util/log.h"

struct client;

enum { CLIENT_NAME = INET6_ADDRSTRLEN + 16 };

/* Writes "address:port", "unix" or "unknown". */
void client_name(const struct client *client, char name[static CLIENT_NAME]);

/* Logs an event of a client, a text, at level info. */
#define client_log(client, what) \
	do { \
		char name_[CLIENT_NAME] = ""; \
		if (log_level() >= LOG_LEVEL_INFO) \
			client_name((client), name_); \
		log_info("client %s: %s", name_, (what)); \
	} while (0)

/*
 * The same for events that are logged even without -v, but then at most one line a minute for
 * each place; the others are counted.
 */
#define client_notice(client, what) \
	do { \
		if (log_level() >= LOG_LEVEL_INFO) { \
			client_log((client), (what)); \
		} else { \
			char name_[CLIENT_NAME]; \
			client_name((client), name_); \
			log_rare("client %s: %s", name_, (what)); \
		} \
	} while (0)

#endif
