/* Replies to unknown commands. */
#ifndef PROTOCOL_HINT_H
#define PROTOCOL_HINT_H

#include "util/slice.h"

/*
 * Returns "ERROR", or "ERROR " and a hint for the name of a command in the wrong case or of a
 * command of another database. The text is constant.
 */
const char *hint_unknown(struct slice name);

#endif
