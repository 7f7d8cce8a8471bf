/*
 * The connection to a former address of a server. It takes no more calls. It is closed when those that it has are answered, or
 * when the server makes no progress with them.
 */
#ifndef UPSTREAM_SERVER_FORMER_H
#define UPSTREAM_SERVER_FORMER_H

#include "net/stream.h"
#include "upstream/pipeline.h"

struct server_former;

/*
 * Takes the open stream and the pipeline of a server, and leaves both empty. `peer` is what goes into the results, and the name in
 * it is borrowed. `timeout` is in milliseconds. `gone` is called, after the return, when the connection was closed and freed.
 */
struct server_former *server_former_create(struct stream *stream, struct pipeline *pipeline, struct pipeline_peer peer,
	uint64_t timeout, void (*gone)(void *arg), void *arg);

/* Closes it without a call of `gone`; unanswered calls fail within this function. NULL does nothing. */
void server_former_destroy(struct server_former *former);

#endif
