/*
 * Carries out commands as keys. Each is a task inside of the task of the get or set that names it. A get of many keys is a fan.
 *
 *     get q|scard|a b  -> command_key_parse -> scard a -> task inside -> command_key_value -> VALUE q|scard|a 0 1
 *                      -> item_read of b                              -> VALUE b
 */
#ifndef COMMAND_KEYED_H
#define COMMAND_KEYED_H

#include "command/task.h"

/* Start a get or gets of which some key is a command; and a set or cas whose key is one. Of the type in command/start.h. */
void keyed_get_start(struct host *host, const struct request *request, void *owner);
void keyed_set_start(struct host *host, const struct request *request, void *owner);

#endif
