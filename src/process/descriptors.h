/* How many file descriptors the daemon may have, and how many of them are for clients. */
#ifndef PROCESS_DESCRIPTORS_H
#define PROCESS_DESCRIPTORS_H

#include "config/config.h"

/* Connections beyond max_connections, each of which waits for an idle one to be closed. */
enum { DESCRIPTORS_REPLACING = 16 };

/*
 * Raises the limit of the process as far as needed and allowed. Servers come first: what they, the listeners and the workers need is set
 * aside, and clients share what is left: max_connections is lowered to that. If nothing is left, gives false, with the numbers in `error`.
 */
bool descriptors_fit(struct config *config, int servers, char error[256]) __attribute__((warn_unused_result));

#endif
