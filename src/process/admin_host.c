#include "process/admin_host.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "util/num.h"

static bool is_port(const char *text)
{
	uint32_t port;

	return !*text || (*text == ':' && num_parse_u32(slice_of(text + 1, strlen(text + 1)), &port) && port <= 65535);
}

/* Copies what stands before the port, without brackets. Gives false if there is no such thing. */
static bool cut_name(const char *host, char name[256])
{
	size_t n = *host == '[' ? strcspn(host, "]") : strcspn(host, ":");

	if (*host == '[') {
		if (host[n] != ']' || !is_port(host + n + 1))
			return false;
		host++;
		n--;
	} else if (!is_port(host + n)) {
		return false;
	}
	if (n == 0 || n >= 256)
		return false;
	snprintf(name, 256, "%.*s", (int)n, host);
	return true;
}

bool admin_host_allowed(const struct config *config, const char *host)
{
	unsigned char address[16];
	char name[256];

	if (!cut_name(host, name))
		return false;
	if (*host == '[')
		return inet_pton(AF_INET6, name, address) == 1;
	if (inet_pton(AF_INET, name, address) == 1 || strcasecmp(name, "localhost") == 0)
		return true;
	for (size_t i = 0; i < config->admin_hosts.count; i++) {
		if (strcasecmp(name, config->admin_hosts.at[i]) == 0)
			return true;
	}
	return false;
}
