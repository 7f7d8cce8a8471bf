/*
 * Addresses in the configuration: "host:port", "[::1]:11211", "unix:/path", "tls:host:port" and
 * "dns:host:port".
 */
#ifndef CONFIG_ADDRESS_H
#define CONFIG_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

struct address {
	char host[256]; /* Host, or the path of a Unix socket. */
	uint16_t port;  /* 0 for a Unix socket. */
	bool tls;       /* The address has the prefix "tls:". */
	/* The address has the prefix "dns:": each address of the host is a server. */
	bool dns;
	/* With "dns:", the original host, of which `host` is one address; otherwise NULL. */
	char *name;
	uint32_t weight;
	unsigned line; /* Line in the configuration file; 0 if the address is not from the file. */
};

/*
 * Parses an address; `port` is the default port. `weighted` permits a suffix " weight=N" and
 * the prefix "dns:", but not "tls:". Returns NULL, or the error: a constant text.
 */
const char *address_parse(const char *text, uint16_t port, bool weighted, struct address *out);

/* Returns whether both texts mean the same address, without any lookup. */
bool address_same(const struct address *a, const struct address *b);

#endif
