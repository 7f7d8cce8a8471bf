/* The Host header of a request, as a defence against DNS rebinding. */
#ifndef PROCESS_ADMIN_HOST_H
#define PROCESS_ADMIN_HOST_H

#include <stdbool.h>

#include "config/config.h"

/*
 * Whether a request for this host is answered: an IP address, localhost, or one of admin_hosts, with or without a port. A page of a
 * stranger in a browser on this network can give its own name our address, and would then read what we answer. But its requests
 * have its name.
 */
bool admin_host_allowed(const struct config *config, const char *host);

#endif
