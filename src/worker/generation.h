/*
 * What a worker carries out requests with: the servers, the lanes, and the rules of the settings they were made for. A reload that
 * changes these makes a new generation. Requests finish in the generation in which they began, and a client's later requests begin
 * in the new one when all its earlier ones are answered. So no operation meets two rings, and the order of each client's requests
 * stays. What two generations do at once to one key is safe, as with two proxies.
 */
#ifndef WORKER_GENERATION_H
#define WORKER_GENERATION_H

#include "collection/lane/lanes.h"
#include "command/host.h"
#include "config/settings.h"
#include "upstream/servers.h"

struct client;
struct worker;

struct generation {
	struct host host; /* first: a pointer to one is a pointer to the other */
	struct worker *worker;
	struct settings *settings;
	struct collection_options collection_options;
	struct servers *servers;
	struct server_turns *turns; /* of each server */
	size_t clients, tasks;      /* that use it */
	TAILQ_ENTRY(generation) link;
};

TAILQ_HEAD(generation_list, generation);

/*
 * Makes a generation, which keeps a reference to the settings. It shares the connections to those servers that `before` has too, which
 * may be NULL. The worker owns it.
 */
struct generation *generation_create(struct worker *worker, struct settings *settings, const struct generation *before);

/* Clients do not begin requests in it any more, and none waits for a turn in it. */
void generation_retire(struct generation *generation);

/* Whether nothing is in progress in it, and no client will use it. */
bool generation_is_idle(const struct generation *generation);

/* Requires generation_is_idle, or that all its servers were stopped. */
void generation_destroy(struct generation *generation);

#endif
