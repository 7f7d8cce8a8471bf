/* What a GAT of one key does besides reading, for tasks that write a reply of their own. */
#ifndef COMMAND_GET_H
#define COMMAND_GET_H

#include "command/host.h"

/* To be called with the result of item_read for a GAT: it sets the time to live of the other items of a set or list, too. */
void get_touched(struct host *host, struct slice key, int64_t exptime, const struct result *r);

#endif
