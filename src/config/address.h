/* Addresses in the configuration: "host:port", "[::1]:11211", "unix:/path", "tls:host:port", "dns:host:port". */
#ifndef CONFIG_ADDRESS_H
#define CONFIG_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

struct address {
	char host[256]; /* or the path of a Unix socket */
	uint16_t port;  /* 0 for a Unix socket */
	bool tls;       /* "tls:" stands before it */
	bool dns;       /* "dns:" precedes it: each address of the host is a server */
	char *name;     /* the host that `dns` replaced by this one of its addresses; or NULL */
	uint32_t weight;
	unsigned line; /* of the configuration file; 0 if that does not have it */
};

/*
 * Parses an address; `port` is the default port. `weighted` allows " weight=N" behind it, and "dns:" but not "tls:" before it. Gives
 * NULL, or the error: a constant text.
 */
const char *address_parse(const char *text, uint16_t port, bool weighted, struct address *out);

/* True when both are one place, as far as their text tells. */
bool address_same(const struct address *a, const struct address *b);

#endif
