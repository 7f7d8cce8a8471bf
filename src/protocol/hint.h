/* Replies to commands that do not exist. */
#ifndef PROTOCOL_HINT_H
#define PROTOCOL_HINT_H

#include "util/slice.h"

/*
 * Returns "ERROR", or if the name is that of a command in another case, or that of a command of another database, "ERROR " and a
 * hint. A constant text.
 */
const char *hint_unknown(struct slice name);

#endif
