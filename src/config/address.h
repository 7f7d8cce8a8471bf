/* Addresses as people write them: "host:port", "[::1]:11211", "unix:/path". */
#ifndef CONFIG_ADDRESS_H
#define CONFIG_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

struct address {
	char host[256]; /* or the path of a Unix socket */
	uint16_t port;  /* 0 for a Unix socket */
	uint32_t weight;
};

/*
 * Reads one address; where it names no port it gets `port`. `weighted` allows " weight=N" behind it. NULL when it is good, else
 * what is wrong with it, in a few words.
 */
const char *address_parse(const char *text, uint16_t port, bool weighted, struct address *out);

#endif
