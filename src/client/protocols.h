/* The table of all protocols. */
#ifndef CLIENT_PROTOCOLS_H
#define CLIENT_PROTOCOLS_H

#include "client/protocol.h"

/* The protocol of a connection that begins with this byte. */
const struct protocol *protocol_of(unsigned char first);

#endif
