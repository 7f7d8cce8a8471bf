/*
 * Requests whose keys stand for other requests: commands as keys, and types of events with plain_verbs. A get of many keys is a fan,
 * in which each command is a task inside of the task of the get.
 *
 *     get q|scard|a b  -> command_key_parse -> scard a -> task inside -> command_key_value -> VALUE q|scard|a 0 1
 *                      -> call for b                                  -> VALUE b
 */
#ifndef COMMAND_KEYED_H
#define COMMAND_KEYED_H

#include "command/task.h"
#include "protocol/command_key.h"

/* keyed_is_command, if the configuration has commands as keys. */
bool keyed_finds_command(const struct rules *rules, const struct request *request);

/* Whether any key of the request is a command. */
static inline bool keyed_is_command(const struct rules *rules, const struct request *request)
{
	return rules->commands.prefix.n && keyed_finds_command(rules, request);
}

/* Starts such a request, or refuses it: only get, gets, set and cas reach a command. */
void keyed_start(struct host *host, const struct request *request, void *owner);

/* keyed_needs, if the configuration has commands as keys, or plain_verbs for events. */
bool keyed_finds_needs(const struct rules *rules, const struct request *request, struct order_needs *out);

/* If any key of the request stands for another request, fills in `out` for request->needs, and gives true. */
static inline bool keyed_needs(const struct rules *rules, const struct request *request, struct order_needs *out)
{
	return (rules->commands.prefix.n || rules->plain_events) && keyed_finds_needs(rules, request, out);
}

#endif
